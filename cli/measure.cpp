// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "footprint.hpp"
#include "interrupts.hpp"
#include "program.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"
#include "tools/words.hpp"

namespace thrum {

// --- the counters ------------------------------------------------------------------------------------

// In memory, so that nothing is left behind however this process ends. Its children find it under /proc.
Total::Total()
    : file_(memfd_create("thrum-total", MFD_CLOEXEC)),
      path_("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get())) {
    void *at = MAP_FAILED;
    if (file_.get() >= 0 && ftruncate(file_.get(), sizeof *at_) == 0)
        at = mmap(nullptr, sizeof *at_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED)
        throw Failure(kFailed, std::string("no memory for counters: ") + std::strerror(errno));
    at_ = static_cast<struct thrum_cache_total *>(at);
}

Total::~Total() {
    munmap(at_, sizeof *at_);
}

void Total::clear() {
    std::memset(at_, 0, sizeof *at_);
    at_->version = THRUM_CACHE_COUNTERS_VERSION;
    at_->size = sizeof *at_;
}

std::optional<Counters> Total::read() const {
    if (at_->loaded == 0 || at_->ended == 0)
        return std::nullopt;
    return at_->sum;
}

// --- one run -----------------------------------------------------------------------------------------

namespace {

constexpr double kGrace = 2; // seconds from asking a program to end to ending it

// What posix_spawn does between fork and exec. It uses vfork, so that this process's size costs nothing.
class Preparation {
  public:
    Preparation(int in, int out, int err, const sigset_t &mask) {
        posix_spawn_file_actions_init(&streams_);
        const int fds[] = {in, out, err};
        for (int i = 0; i < 3; i++)
            posix_spawn_file_actions_adddup2(&streams_, fds[i], i);
        posix_spawnattr_init(&attributes_);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigmask(&attributes_, &mask);
    }
    ~Preparation() {
        posix_spawnattr_destroy(&attributes_);
        posix_spawn_file_actions_destroy(&streams_);
    }
    Preparation(const Preparation &) = delete;
    Preparation &operator=(const Preparation &) = delete;

    int spawn(pid_t &pid, const char *path, char **arguments, char **environment) const {
        return posix_spawn(&pid, path, &streams_, &attributes_, arguments, environment);
    }

  private:
    posix_spawn_file_actions_t streams_;
    posix_spawnattr_t attributes_;
};

pid_t start(const Program &program, const std::vector<std::string> &environment,
            const Preparation &preparation) {
    std::vector<char *> arguments = pointers(program.words), variables = pointers(environment);
    pid_t pid = 0;
    int error = preparation.spawn(pid, program.path.c_str(), arguments.data(), variables.data());
    if (error == ENOEXEC) {
        give_to_shell(program.path, arguments);
        error = preparation.spawn(pid, kShell, arguments.data(), variables.data());
    }
    if (error != 0)
        throw not_executed(program.path, error);
    return pid;
}

// How long a program may run, and what happens then: it is asked to end, and a little later it is ended, with
// all that it started. Several interrupts mean that someone is in a hurry.
class Patience {
  public:
    Patience(pid_t pid, double time_limit, Run &run)
        : pid_(pid), deadline_(time_limit > 0 ? seconds_now() + time_limit : 0), run_(run) {}

    void interrupted(int signal) {
        run_.incomplete = true;
        end(signal);
    }
    void look_at_clock() {
        if (deadline_ == 0 || seconds_now() < deadline_)
            return;
        run_.timed_out = !run_.incomplete;
        end(SIGTERM);
    }
    double seconds_left() const {
        return deadline_ == 0 ? 1 : std::clamp(deadline_ - seconds_now(), 0.0, 1.0);
    }
    bool ran_out() const { return asked_; }
    void extend(double seconds) {
        if (deadline_ != 0)
            deadline_ += seconds;
    }

  private:
    void end(int signal) {
        kill(-pid_, asked_ ? SIGKILL : signal);
        asked_ = true;
        deadline_ = seconds_now() + kGrace;
    }

    pid_t pid_;
    double deadline_;
    Run &run_;
    bool asked_ = false;
};

void wait_for(pid_t pid, Run &run, double time_limit, Interrupts &interrupts,
              const std::function<void()> &on_tick) {
    Patience patience(pid, time_limit, run);
    Footprint footprint(pid);
    rusage usage;
    const double begin = seconds_now();
    for (double ticked = begin;;) {
        const pid_t ended = wait4(pid, &run.status, WNOHANG, &usage);
        if (ended == pid)
            break;
        if (ended < 0)
            throw Failure(kFailed, std::string("cannot wait for the program: ") + std::strerror(errno));
        footprint.look();
        if (interrupts.wait(std::min(patience.seconds_left(), footprint.seconds_to_next())))
            patience.interrupted(interrupts.caught());
        if (const double stopped = interrupts.suspend(-pid); stopped > 0) {
            run.stopped = true;
            patience.extend(stopped);
            on_tick();
        }
        patience.look_at_clock();
        if (seconds_now() - ticked >= 1) {
            on_tick();
            ticked = seconds_now();
        }
    }
    if (patience.ran_out())
        kill(-pid, SIGKILL); // those of its children that did not end with it
    run.user = seconds_of(usage.ru_utime);
    run.system = seconds_of(usage.ru_stime);
    run.voluntary = static_cast<std::uint64_t>(usage.ru_nvcsw);
    run.involuntary = static_cast<std::uint64_t>(usage.ru_nivcsw);
    footprint.store(run, 1024.0 * static_cast<double>(usage.ru_maxrss));
    run.faults = static_cast<std::uint64_t>(usage.ru_minflt) + static_cast<std::uint64_t>(usage.ru_majflt);
}

} // namespace

Run measure(const Program &program, const std::vector<std::string> &environment, Total &total, int errors,
            Interrupts &interrupts, const std::function<void()> &on_tick) {
    const Descriptor in = open_file(program.input, O_RDONLY), nowhere = open_file("/dev/null", O_WRONLY);
    const int out = program.show_output ? STDERR_FILENO : nowhere.get();
    const Preparation preparation(in.get(), out, errors >= 0 ? errors : out, interrupts.outer_mask());
    Run run;
    total.clear();
    const double begin = seconds_now();
    const pid_t pid = start(program, environment, preparation);
    wait_for(pid, run, program.time_limit, interrupts, on_tick);
    run.wall = seconds_now() - begin;
    run.counters = total.read();
    return run;
}

} // namespace thrum
