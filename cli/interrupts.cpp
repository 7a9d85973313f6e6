// SPDX-License-Identifier: Apache-2.0
#include "interrupts.hpp"

#include <cmath>
#include <initializer_list>

namespace thrum {

namespace {

bool is_ignored(int signal) {
    struct sigaction action;
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

Interrupts::Interrupts() {
    sigemptyset(&watched_);
    sigaddset(&watched_, SIGCHLD);
    sigaddset(&watched_, SIGTSTP);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (!is_ignored(signal))
            sigaddset(&watched_, signal);
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL; // ignored, children would be reaped before anyone asks for their times
    sigaction(SIGCHLD, &usual, &outer_child_);
    sigprocmask(SIG_BLOCK, &watched_, &outer_);
}

Interrupts::~Interrupts() {
    release();
    sigaction(SIGCHLD, &outer_child_, nullptr);
}

void Interrupts::release() {
    while (wait(0)) // what came late is not to end this process before it has said what it knows
        continue;
    sigprocmask(SIG_SETMASK, &outer_, nullptr);
}

void Interrupts::restore_in_child() const {
    sigaction(SIGCHLD, &outer_child_, nullptr);
    sigprocmask(SIG_SETMASK, &outer_, nullptr);
}

bool Interrupts::wait(double seconds) {
    const double whole = std::floor(seconds);
    const timespec time = {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
    siginfo_t info;
    const int signal = sigtimedwait(&watched_, &info, &time);
    if (signal <= 0 || signal == SIGCHLD || signal == SIGTSTP)
        return false;
    from_terminal_ = info.si_code == SI_KERNEL;
    if (caught_ == 0)
        caught_ = signal;
    return true;
}

} // namespace thrum
