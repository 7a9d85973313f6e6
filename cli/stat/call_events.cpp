// SPDX-License-Identifier: Apache-2.0
#include "stat/call_events.hpp"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

namespace thrum::stat {

namespace {

// What programs with threads make a lot of, but for those that libthrum-stat.so counts. A new thread gets its own of each
// event, so there are not all of them.
constexpr const char *kCalls[] = {
    "read",     "write",     "readv",      "writev",          "pread64",     "pwrite64",
    "openat",   "close",     "mmap",       "munmap",          "mprotect",    "madvise",
    "mremap",   "brk",       "clone",      "clone3",          "poll",        "ppoll",
    "pselect6", "nanosleep", "epoll_wait", "clock_nanosleep", "recvfrom",    "sendto",
    "recvmsg",  "sendmsg",   "gettid",     "tgkill",          "epoll_pwait", "getrandom",
    "fsync",    "fdatasync"};
constexpr const char *kFolders[] = {"/sys/kernel/tracing/events/syscalls/",
                                    "/sys/kernel/debug/tracing/events/syscalls/"};

// The number that tracepoints are asked for by; 0: there is none, or it may not be read.
std::uint64_t id_of(const std::string &call) {
    std::uint64_t id = 0;
    for (const std::string folder : kFolders)
        if (std::ifstream(folder + "sys_enter_" + call + "/id") >> id)
            break;
    return id;
}

int open_event(std::uint64_t id, pid_t pid) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof attributes;
    attributes.config = id;
    attributes.disabled = 1;
    attributes.enable_on_exec = 1;
    attributes.inherit = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, pid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

} // namespace

bool CallEvents::begin(pid_t child) {
    for (const char *call : kCalls) {
        const std::uint64_t id = id_of(call);
        Descriptor event(id != 0 ? open_event(id, child) : -1);
        if (event.is_open())
            events_.emplace_back(call, std::move(event));
    }
    return !events_.empty();
}

std::vector<std::pair<std::string, std::uint64_t>> CallEvents::counts() const {
    std::vector<std::pair<std::string, std::uint64_t>> made;
    for (const auto &[call, event] : events_) {
        std::uint64_t count = 0;
        if (read(event.get(), &count, sizeof count) == sizeof count && count != 0)
            made.emplace_back(call, count);
    }
    return made;
}

} // namespace thrum::stat
