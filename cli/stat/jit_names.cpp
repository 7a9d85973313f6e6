// SPDX-License-Identifier: Apache-2.0
#include "stat/jit_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "process.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

namespace {

constexpr const char *kKinds[] = {"JS", "Eval", "LazyCompile", "Function", "Script"}; // of V8's functions
constexpr off_t kLargest = 256 << 20;                                                 // bytes of a file

// Empty where it is not there, or not to be trusted.
std::string read_map(const std::string &path) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status;
    if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size > kLargest)
        return "";
    if (status.st_uid != 0 && status.st_uid != geteuid() && geteuid() != 0)
        return "";
    return process::read_all("/proc/self/fd/" + std::to_string(file.get())).value_or("");
}

std::string last_component(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

// "12" of "page.js:12", which it takes off; -1: there is no number.
int take_number(std::string &text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon + 1 == text.size() ||
        text.find_first_not_of("0123456789", colon + 1) != std::string::npos)
        return -1;
    const long number = std::strtol(text.c_str() + colon + 1, nullptr, 10);
    text.resize(colon);
    return static_cast<int>(std::min<long>(number, INT_MAX));
}

// "KIND:*NAME FILE:LINE:COLUMN"; the mark says how far it was optimised. No function: it is not of V8.
JitName v8_name(const std::string &name) {
    JitName found;
    const std::size_t colon = name.find(':'), blank = name.rfind(' ');
    if (colon == std::string::npos || blank == std::string::npos || blank < colon)
        return found;
    const std::string kind = name.substr(0, colon);
    if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds))
        return found;
    std::string place = name.substr(blank + 1);
    const int column = take_number(place), line = take_number(place);
    if (column < 0 || line < 0)
        return found;
    const std::size_t begin = std::min(name.find_first_not_of("*~^+", colon + 1), blank);
    found.function = begin < blank ? name.substr(begin, blank - begin) : "(anonymous)";
    found.file = last_component(place);
    found.line = line;
    found.is_runtimes = place.compare(0, 5, "node:") == 0;
    return found;
}

// "py::NAME:FILE".
JitName python_name(const std::string &name) {
    JitName found;
    const std::size_t colon = name.compare(0, 4, "py::") == 0 ? name.find(':', 4) : std::string::npos;
    if (colon == std::string::npos)
        return found;
    found.function = name.substr(4, colon - 4);
    found.file = last_component(name.substr(colon + 1));
    return found;
}

// "RESULT CLASS.METHOD(PARAMETERS)".
JitName java_name(const std::string &name) {
    JitName found;
    const std::size_t open = name.find('(');
    if (open == std::string::npos || name.back() != ')')
        return found;
    const std::string method = name.substr(0, open);
    const std::size_t blank = method.rfind(' ');
    if (blank != std::string::npos && method.find('.', blank) != std::string::npos)
        found.function = method.substr(blank + 1);
    return found;
}

} // namespace

JitName jit_name(const std::string &name) {
    for (JitName (*const read)(const std::string &) : {v8_name, python_name, java_name})
        if (JitName found = read(name); !found.function.empty())
            return found;
    JitName found;
    found.function = name;
    return found;
}

// As the process itself sees /tmp, which in a container is another.
JitNames::JitNames(pid_t pid) {
    const std::string name = "/tmp/perf-" + std::to_string(pid) + ".map";
    const std::string inside = read_map("/proc/" + std::to_string(pid) + "/root" + name);
    add(inside.empty() ? read_map(name) : inside);
}

void JitNames::add(const std::string &text) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        char *rest = nullptr, *behind = nullptr;
        const std::uint64_t start = std::strtoull(line.c_str(), &rest, 16),
                            size = std::strtoull(rest, &behind, 16);
        if (rest == line.c_str() || behind == rest || *behind != ' ' || size == 0 || start + size < start)
            continue;
        auto at = functions_.lower_bound(start);
        if (at != functions_.begin() && std::prev(at)->second.end > start)
            std::prev(at)->second.end = start;
        while (at != functions_.end() && at->first < start + size)
            at = functions_.erase(at);
        functions_[start] = {start + size, behind + 1};
    }
}

std::optional<JitName> JitNames::at(std::uint64_t address) const {
    const auto behind = functions_.upper_bound(address);
    if (behind == functions_.begin() || std::prev(behind)->second.end <= address)
        return std::nullopt;
    JitName name = jit_name(std::prev(behind)->second.name);
    name.offset = address - std::prev(behind)->first;
    return name;
}

} // namespace thrum::stat
