// SPDX-License-Identifier: Apache-2.0
#include "stat/jit_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "process.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

namespace {

constexpr off_t kLargest = 256 << 20; // bytes of a file

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

} // namespace

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
    return JitName{std::prev(behind)->second.name, address - std::prev(behind)->first};
}

} // namespace thrum::stat
