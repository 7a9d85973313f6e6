// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>

#include "command.hpp"

namespace thrum {

namespace {

// An option that takes a number, and the variable that it sets.
struct Number {
    const char *option;
    const char *variable;
    const char *unit;
    unsigned long most;
    const char *help;
};

constexpr Number kNumbers[] = {
    {"--min-rest", "THRUM_CACHE_MIN_REST", "MS", 3600000,
     "Reuse a terminated thread only after MS milliseconds\n(0 to 3600000; default 0)"},
    {"--max-idle", "THRUM_CACHE_MAX_IDLE", "N", 1000000,
     "Keep at most N idle threads (0 to 1000000; default 512, and as\nmany more as were reused)"},
    {"--max-age", "THRUM_CACHE_MAX_AGE", "MS", 86400000,
     "End a thread that was not needed for MS/2 to MS milliseconds\n(0: never, to 86400000; default 6000)"},
    {"--thread-seconds", "THRUM_CACHE_THREAD_SECONDS", "S", 1000000000,
     "End the longest idle threads when the idle times of all add up to\nS seconds (0 to 1000000000; default "
     "0: never)"},
    {"--trim-after", "THRUM_CACHE_TRIM_AFTER", "MS", 86400000,
     "Return an idle thread's stack memory to the kernel after MS\nmilliseconds (0: never, to 86400000; "
     "default 1000)"},
};

constexpr const char *kPressure = "THRUM_CACHE_PRESSURE";
constexpr const char *kWipeStack = "THRUM_CACHE_WIPE_STACK";
constexpr const char *kSwitches[] = {"THRUM_CACHE", "THRUM_CACHE_VERBOSE", "THRUM_VERBOSE", kPressure,
                                     kWipeStack};
constexpr const char *kSwitchValues[] = {"on", "off", "1", "0"};

void check_switch(const std::string &variable, const std::string &value) {
    if (std::find(std::begin(kSwitchValues), std::end(kSwitchValues), value) == std::end(kSwitchValues))
        throw Failure(kUsage, variable + " takes on or off (or 1 or 0), not '" + value + "'");
}

// Empty is as unset, for the library too.
std::optional<std::string> variable(const char *name) {
    const char *value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

} // namespace

unsigned long whole_number(const std::string &option, const std::string &text, unsigned long least,
                           unsigned long most) {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    errno = 0;
    const unsigned long number = digits ? std::strtoul(text.c_str(), nullptr, 10) : 0;
    const std::string range = most == std::numeric_limits<unsigned long>::max()
                                  ? " of at least " + std::to_string(least)
                                  : " from " + std::to_string(least) + " to " + std::to_string(most);
    if (!digits || number < least || number > most || errno != 0)
        throw Failure(kUsage, option + " takes a whole number" + range + ", not '" + text + "'");
    return number;
}

double parse_seconds(const std::string &option, const std::string &text) {
    // What strtod takes besides is not meant.
    const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
    char *end = nullptr;
    const double number = plain ? std::strtod(text.c_str(), &end) : 0;
    if (!plain || *end != '\0' || number < 0.001 || number > 86400)
        throw Failure(kUsage, option + " takes seconds from 0.001 to 86400, not '" + text + "'");
    return number;
}

void check_file_name(const std::string &option, const std::string &name) {
    if (name.empty())
        throw Failure(kUsage, option + " takes a file name, not ''");
}

void add_file(Command &command, const std::string &option, const std::string &help, std::string &name) {
    command.value(option, "FILE", help, [option, &name](const std::string &given) {
        check_file_name(option, given);
        name = given;
    });
}

void check_cache_environment() {
    for (const Number &number : kNumbers)
        if (const auto value = variable(number.variable))
            whole_number(number.variable, *value, 0, number.most);
    for (const char *name : kSwitches)
        if (const auto value = variable(name))
            check_switch(name, *value);
}

std::vector<std::string> split(const std::string &list, const char *separators) {
    std::vector<std::string> parts;
    std::size_t from = 0;
    while ((from = list.find_first_not_of(separators, from)) != std::string::npos) {
        const std::size_t to = std::min(list.find_first_of(separators, from), list.size());
        parts.push_back(list.substr(from, to - from));
        from = to;
    }
    return parts;
}

std::vector<std::string> program_words(const Command &command, const std::vector<std::string> &behind_mark) {
    const std::vector<std::string> left = command.words();
    const std::string name = "thrum " + command.name();
    if (left.empty()) {
        if (behind_mark.size() < 2)
            throw Failure(kUsage, "missing program: " + name + " [OPTIONS] -- PROG ARGS...");
        return {behind_mark.begin() + 1, behind_mark.end()};
    }
    if (left.front().size() > 1 && left.front()[0] == '-')
        throw Failure(kUsage, "unknown option '" + left.front() + "'; see " + name + " --help");
    std::vector<std::string> words = left;
    words.insert(words.end(), behind_mark.begin(), behind_mark.end());
    return words;
}

void add_cache_options(Command &command) {
    for (const Number &number : kNumbers)
        command.value(number.option, number.unit, std::string(number.help) + "\n[" + number.variable + "]",
                      [&number](const std::string &text) {
                          whole_number(number.option, text, 0, number.most);
                          setenv(number.variable, text.c_str(), 1);
                      });
    command.flag("--pressure",
                 std::string("End all idle threads when memory is short (pressure stall information,\nread "
                             "once a second)\n[") +
                     kPressure + "=1]",
                 [] { setenv(kPressure, "1", 1); });
    command.flag("--wipe-stack",
                 std::string("Return a thread's stack memory to the kernel before every reuse,\nso that it "
                             "reads as zeros\n[") +
                     kWipeStack + "=1]",
                 [] { setenv(kWipeStack, "1", 1); });
}

bool has_cache_options(const Command &command) {
    return std::any_of(std::begin(kNumbers), std::end(kNumbers),
                       [&command](const Number &number) { return command.has(number.option); }) ||
           command.has("--pressure") || command.has("--wipe-stack");
}

} // namespace thrum
