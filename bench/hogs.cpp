// SPDX-License-Identifier: Apache-2.0
#include "hogs.hpp"

#include <csignal>
#include <cstring>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.hpp"

namespace bench {

namespace {

unsigned cpus() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

[[noreturn]] void spin(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    for (volatile unsigned long n = 0;; n = n + 1) {
    }
}

} // namespace

Hogs::Hogs(unsigned per_cpu) {
    const pid_t parent = getpid();
    for (unsigned i = 0; i < per_cpu * cpus(); i++) {
        const pid_t child = fork();
        if (child == 0)
            spin(parent);
        if (child < 0) {
            const int error = errno;
            end();
            throw Failure(std::string("cannot start a process that keeps a CPU busy: ") +
                          std::strerror(error));
        }
        processes_.push_back(child);
    }
}

Hogs::~Hogs() {
    end();
}

void Hogs::end() {
    for (const pid_t process : processes_)
        kill(process, SIGKILL);
    for (const pid_t process : processes_)
        waitpid(process, nullptr, 0);
    processes_.clear();
}

} // namespace bench
