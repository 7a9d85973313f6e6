// SPDX-License-Identifier: Apache-2.0
//
// See preempt_outside.h. The clock is the machine's: it is set only where --clock-steps says so, by an hour and back.
#include "preempt_outside.h"

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <new>

namespace {

constexpr std::size_t kMemory = std::size_t{32} << 20;
constexpr time_t kClockStep = 3600;

void nap(std::uint64_t ns) {
    const timespec moment = {static_cast<time_t>(ns / THRUM_S), static_cast<long>(ns % THRUM_S)};
    nanosleep(&moment, nullptr);
}

// No thread of this process may take the signals of helpers that only disturb it.
class NoSignals {
  public:
    NoSignals() {
        sigset_t all;
        sigfillset(&all);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &before_), 0);
    }
    ~NoSignals() { CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before_, nullptr), 0); }
    NoSignals(const NoSignals &) = delete;

  private:
    sigset_t before_;
};

std::atomic<std::uint64_t> clock_steps{0}, stops{0};

// By so many seconds exactly, whatever time goes by meanwhile. False: one may not.
bool step_clock(time_t seconds) {
    timex step = {};
    step.modes = ADJ_SETOFFSET;
    step.time.tv_sec = seconds;
    return clock_adjtime(CLOCK_REALTIME, &step) >= 0;
}

} // namespace

bool clock_may_be_set() {
    timex now = {};
    if (clock_adjtime(CLOCK_REALTIME, &now) < 0)
        return false;
    now.modes = ADJ_STATUS; // as it is
    return clock_adjtime(CLOCK_REALTIME, &now) >= 0;
}

std::uint64_t clock_steps_so_far() {
    return clock_steps;
}

std::uint64_t stops_so_far() {
    return stops;
}

// It is told to go rather than killed, which might be between the two.
void Outside::stop_and_continue(pid_t parent, Shared &shared, Random random) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        nap((5 + random.below(50)) * THRUM_MS);
        if (!shared.stays || getppid() != parent || kill(parent, SIGSTOP) != 0)
            return;
        nap(random.below(4000) * THRUM_US);
        kill(parent, SIGCONT);
        shared.stops++;
    }
}

// In a process of its own, with all signals blocked: whatever becomes of its parent it is there to put the clock back.
void Outside::set_clock(pid_t parent, Shared &shared, Random random) {
    while (shared.stays && getppid() == parent) {
        const time_t step = random.one_in(2) ? kClockStep : -kClockStep;
        if (!step_clock(step))
            return;
        nap((1 + random.below(4)) * THRUM_MS);
        const bool is_back = step_clock(-step);
        shared.clock_steps += 2;
        if (!is_back)
            return;
        nap((1 + random.below(20)) * THRUM_MS);
    }
}

template <typename Does>
pid_t Outside::have_child(const Does &does, Random random) {
    const pid_t parent = getpid(), child = fork();
    CHECK(child >= 0);
    if (child != 0)
        return child;
    does(parent, *shared_, random);
    _exit(0);
}

Outside::Outside(const Disturbances &may, std::uint64_t seed) {
    if (!may.stops && !may.clock && !may.memory)
        return;
    Random random(seed);
    const NoSignals none;
    void *shared = mmap(nullptr, sizeof *shared_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    shared_ = new (shared) Shared;
    if (may.stops && random.one_in(2))
        stopper_ = have_child(stop_and_continue, Random(random.next()));
    if (may.clock)
        clock_ = have_child(set_clock, Random(random.next()));
    if (may.memory && random.one_in(2))
        memory_ = std::thread(&Outside::take_memory, this);
}

Outside::~Outside() {
    ends_ = true;
    if (memory_.joinable())
        memory_.join();
    if (shared_ == nullptr)
        return;
    shared_->stays = false;
    for (const pid_t child : {stopper_, clock_})
        if (child > 0)
            CHECK_EQ(waitpid(child, nullptr, 0), child);
    clock_steps += shared_->clock_steps;
    stops += shared_->stops;
    munmap(shared_, sizeof *shared_);
}

// Takes pages, gives them back, and lets malloc give back what it does not need.
void Outside::take_memory() {
    while (!ends_) {
        void *memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != MAP_FAILED) {
            std::memset(memory, 1, kMemory);
            munmap(memory, kMemory);
        }
        malloc_trim(0);
        nap(20 * THRUM_MS);
    }
}

namespace {

// malloc as ever, but from time to time the process may have no more memory than it has.
class Pressure : public Torture {
  public:
    const char *name() const override { return "pressure"; }
    bool alone() const override { return true; }
    bool fits() const override { return malloc_->fits(); }

    void begin(unsigned actors) override {
        malloc_->begin(actors);
        absent_ = static_cast<long>(actors);
    }
    void step(Actor &actor) override {
        if (actor.steps == 0)
            absent_--;
        if (absent_ == 0 && !squeezing_.exchange(true)) { // all of them have been made
            squeeze(actor.random.below(8));
            squeezing_ = false;
        }
        malloc_->step(actor);
    }
    void last_step(Actor &actor) override { malloc_->last_step(actor); }
    void end() override {
        squeeze(1);
        malloc_->end();
    }

  private:
    static void squeeze(unsigned how) {
        rlimit limit;
        CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
        limit.rlim_cur = how == 0 ? size_now() + (std::size_t{1} << 20) : limit.rlim_max;
        CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    }

    static std::size_t size_now() {
        std::size_t pages = 0;
        std::FILE *file = std::fopen("/proc/self/statm", "re");
        if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1)
            pages = std::size_t{1} << 30;
        if (file != nullptr)
            std::fclose(file);
        return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    }

    std::unique_ptr<Torture> malloc_ = make_malloc();
    std::atomic<bool> squeezing_{false};
    std::atomic<long> absent_{0};
};

} // namespace

void add_pressure(Tortures &all) {
    all.push_back(std::make_unique<Pressure>());
}
