// SPDX-License-Identifier: Apache-2.0
//
// See preempt_options.h.
#include "preempt_options.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr std::array<Mode, 6> kModes = {Mode::kPthread, Mode::kNone,   Mode::kYield,
                                        Mode::kLend,    Mode::kOwnTls, Mode::kKlt};

// In the order of enum thrum_tick_source.
constexpr std::array<std::string_view, 3> kSources = {"auto", "timer", "monitor"};

[[noreturn]] void usage() {
    std::fprintf(
        stderr,
        "usage: stress-preempt [--mode MODE,...] [--workers N,...] [--threads N,...] [--slice US,...]\n"
        "                      [--source auto|timer|monitor] [--monitor-each N]\n"
        "                      [--seconds S] [--round S] [--only TORTURE,...] [--seed N]\n"
        "                      [--least-hits N] [--least-preemptions N] [--stall S] [--undisturbed]\n"
        "                      [--clock-steps | --no-clock-steps]\n"
        "                      [--lose N,OF] [--unheeded N,OF] [--bites malloc|turns|overflow]\n"
        "MODE: pthread (kernel threads, as a control), none (safepoints), yield, lend, own-tls, klt\n");
    std::exit(2);
}

std::vector<std::string> parts_of(const std::string &list) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        parts.push_back(list.substr(at, comma - at));
        at = comma + 1;
    }
    return parts;
}

unsigned long number(const char *option, const std::string &text, unsigned long least, unsigned long most) {
    char *end = nullptr;
    const unsigned long value = std::strtoul(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < least || value > most) {
        std::fprintf(stderr, "stress-preempt: %s takes numbers from %lu to %lu, not '%s'\n", option, least,
                     most, text.c_str());
        std::exit(2);
    }
    return value;
}

std::vector<unsigned> numbers(const char *option, const std::string &list, unsigned least, unsigned most) {
    std::vector<unsigned> values;
    for (const std::string &part : parts_of(list))
        values.push_back(static_cast<unsigned>(number(option, part, least, most)));
    return values;
}

Mode mode_named(const std::string &name) {
    for (const Mode mode : kModes)
        if (name == name_of(mode))
            return mode;
    std::fprintf(stderr, "stress-preempt: there is no mode '%s'\n", name.c_str());
    usage();
}

thrum_tick_source source_named(const std::string &name) {
    const auto *const found = std::find(kSources.begin(), kSources.end(), name);
    if (found == kSources.end()) {
        std::fprintf(stderr, "stress-preempt: ticks come from a timer or the monitor, not '%s'\n",
                     name.c_str());
        usage();
    }
    return static_cast<thrum_tick_source>(found - kSources.begin());
}

Kept kept(const char *option, const std::string &list) {
    const std::vector<std::string> parts = parts_of(list);
    if (parts.size() != 2) {
        std::fprintf(stderr, "stress-preempt: %s takes two numbers, ticks and of how many, not '%s'\n",
                     option, list.c_str());
        std::exit(2);
    }
    const auto of = static_cast<unsigned>(number(option, parts[1], 1, 1 << 20));
    return {static_cast<unsigned>(number(option, parts[0], 0, of)), of};
}

double seconds(const char *option, const std::string &text) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value > 0 && value < 1e7)) {
        std::fprintf(stderr, "stress-preempt: %s takes seconds, not '%s'\n", option, text.c_str());
        std::exit(2);
    }
    return value;
}

bool take_flag(CommandLine &line, const std::string &option) {
    if (option == "--undisturbed")
        line.common.disturbed = false;
    else if (option == "--clock-steps")
        line.common.clock_steps = true;
    else if (option == "--no-clock-steps")
        line.common.clock_steps = false;
    else if (option == "--overflow")
        line.overflow = true;
    else
        return false;
    return true;
}

bool take_value(CommandLine &line, const char *option, const std::string &value) {
    const std::string name = option;
    if (name == "--mode") {
        line.modes.clear();
        for (const std::string &part : parts_of(value))
            line.modes.push_back(mode_named(part));
    } else if (name == "--workers") {
        line.workers = numbers(option, value, 1, 1024);
    } else if (name == "--threads") {
        line.threads = numbers(option, value, 1, 5000);
    } else if (name == "--slice") {
        line.slices = numbers(option, value, THRUM_SLICE_MIN, 999999);
    } else if (name == "--source") {
        line.common.source = source_named(value);
    } else if (name == "--monitor-each") {
        line.monitor_each = static_cast<unsigned>(number(option, value, 0, 1 << 20));
    } else if (name == "--seconds") {
        line.common.seconds = seconds(option, value);
    } else if (name == "--round") {
        line.common.round = seconds(option, value);
    } else if (name == "--stall") {
        line.common.stall = seconds(option, value);
    } else if (name == "--only") {
        line.only = value;
        line.common.only = parts_of(value);
    } else if (name == "--bites") {
        line.bites = value;
    } else if (name == "--lose") {
        line.common.lost = kept(option, value);
    } else if (name == "--unheeded") {
        line.common.unheeded = kept(option, value);
    } else if (name == "--seed") {
        line.common.seed = number(option, value, 0, ~0UL);
    } else if (name == "--least-hits") {
        line.common.least_hits = number(option, value, 0, ~0UL);
    } else if (name == "--least-preemptions") {
        line.common.least_preemptions = number(option, value, 0, ~0UL);
    } else if (name == "--report-to") {
        line.report_to = static_cast<int>(number(option, value, 0, 1 << 20));
    } else if (name == "--places-to") {
        line.places_to = static_cast<int>(number(option, value, 0, 1 << 20));
    } else {
        return false;
    }
    return true;
}

} // namespace

const char *name_of(thrum_tick_source source) {
    return kSources[source].data();
}

const char *name_of(Mode mode) {
    static constexpr std::array<const char *, 6> kNames = {"pthread", "none",    "yield",
                                                           "lend",    "own-tls", "klt"};
    return kNames[static_cast<std::size_t>(mode == Mode::kPthread ? 0 : static_cast<unsigned>(mode))];
}

CommandLine command_line(int argc, char **argv) {
    CommandLine line;
    line.common.seed =
        static_cast<std::uint64_t>(time(nullptr)) * 1000 + static_cast<std::uint64_t>(getpid()) % 1000;
    for (int i = 1; i < argc; i++) {
        if (take_flag(line, argv[i]))
            continue;
        if (i + 1 == argc || !take_value(line, argv[i], argv[i + 1]))
            usage();
        i++;
    }
    return line;
}
