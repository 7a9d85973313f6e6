// SPDX-License-Identifier: Apache-2.0
#include "interrupts.hpp"

#include <sys/resource.h>

#include <cmath>

#include "tools/clock.hpp"

namespace thrum {

namespace {

constexpr int kEndings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// The first that came while they were not blocked. The next one finds no handler, and ends the process.
volatile sig_atomic_t noted;

void note(int signal) {
    struct sigaction present;
    noted = signal;
    for (const int each : kEndings)
        if (sigaction(each, nullptr, &present) == 0 && present.sa_handler == note)
            ::signal(each, SIG_DFL);
}

bool is_ignored(int signal) {
    struct sigaction action;
    return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

} // namespace

void die_of(int signal) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::signal(signal, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    raise(signal);
}

Interrupts::Interrupts() {
    noted = 0;
    sigemptyset(&watched_);
    sigaddset(&watched_, SIGCHLD);
    sigaddset(&watched_, SIGTSTP);
    for (const int signal : kEndings)
        if (!is_ignored(signal))
            sigaddset(&watched_, signal);
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL; // ignored, children would be reaped before anyone asks for their times
    sigaction(SIGCHLD, &usual, &outer_child_);
    sigprocmask(SIG_BLOCK, &watched_, &outer_);
}

Interrupts::~Interrupts() {
    watch();
    release();
    sigaction(SIGCHLD, &outer_child_, nullptr);
}

void Interrupts::release() {
    while (wait(0)) // what came late is not to end this process before it has said what it knows
        continue;
    sigprocmask(SIG_SETMASK, &outer_, nullptr);
}

int Interrupts::caught() const {
    return caught_ != 0 ? caught_ : noted;
}

void Interrupts::release_second() {
    if (caught() != 0) {
        release();
        return;
    }
    struct sigaction once = {};
    once.sa_handler = note;
    once.sa_flags = SA_RESTART;
    for (const int signal : kEndings)
        if (sigismember(&watched_, signal) == 1)
            sigaction(signal, &once, nullptr);
    has_handlers_ = true;
    sigprocmask(SIG_SETMASK, &outer_, nullptr);
}

void Interrupts::watch() {
    if (!has_handlers_)
        return;
    sigprocmask(SIG_BLOCK, &watched_, nullptr);
    for (const int signal : kEndings)
        if (sigismember(&watched_, signal) == 1)
            ::signal(signal, SIG_DFL);
    has_handlers_ = false;
}

void Interrupts::restore_in_child() const {
    sigaction(SIGCHLD, &outer_child_, nullptr);
    sigprocmask(SIG_SETMASK, &outer_, nullptr);
}

bool Interrupts::wait(double seconds) {
    if (caught_ == 0 && noted != 0) { // between two waits
        caught_ = latest_ = noted;
        return true;
    }
    const double whole = std::floor(seconds);
    const timespec time = {static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
    siginfo_t info;
    const int signal = sigtimedwait(&watched_, &info, &time);
    if (signal == SIGTSTP) {
        stop_came_ = true;
        stop_by_terminal_ = info.si_code == SI_KERNEL;
    }
    if (signal <= 0 || signal == SIGCHLD || signal == SIGTSTP)
        return false;
    from_terminal_ = info.si_code == SI_KERNEL;
    if (caught_ == 0)
        caught_ = signal;
    latest_ = signal;
    return true;
}

bool Interrupts::take_stop(bool *by_terminal) {
    if (by_terminal != nullptr)
        *by_terminal = stop_by_terminal_;
    const bool came = stop_came_;
    stop_came_ = false;
    return came;
}

// By SIGTSTP's own action, not SIGSTOP: without a shell that could continue this process the kernel does not stop it.
double Interrupts::suspend(pid_t target) {
    if (!take_stop())
        return 0;
    const double begin = seconds_now();
    if (target != 0)
        kill(target, SIGSTOP);
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &one, &before);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (target != 0)
        kill(target, SIGCONT);
    return seconds_now() - begin;
}

} // namespace thrum
