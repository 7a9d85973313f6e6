// SPDX-License-Identifier: Apache-2.0
#include "stat/call_events.hpp"

#include <unistd.h>

#include "stat/perf_events.hpp"

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
// And those that it counts.
constexpr const char *kTrapped[] = {"futex", "sched_yield", "rt_sigprocmask", "rt_sigaction"};

} // namespace

void CallEvents::add(const char *call, pid_t child) {
    const std::uint64_t number = tracepoint_number(std::string("syscalls/sys_enter_") + call);
    if (number == 0)
        return;
    Descriptor event(open_event(event_of_program(PERF_TYPE_TRACEPOINT, number), child, -1));
    if (event.is_open())
        events_.emplace_back(call, std::move(event));
}

bool CallEvents::begin(pid_t child, bool with_trapped) {
    for (const char *call : kCalls)
        add(call, child);
    for (const char *call : kTrapped)
        if (with_trapped)
            add(call, child);
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
