// SPDX-License-Identifier: Apache-2.0
//
// See preempt_outside.h. The clock is the machine's: it is set only where --clock-steps says so, by an hour and back.
#include "preempt_outside.h"

#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

// Nobody of this process's signals for those that only disturb it.
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

// It is told to go rather than killed, which might be between the two.
[[noreturn]] void stop_and_continue(pid_t parent, const std::atomic<bool> &stays, std::uint64_t seed) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Random random(seed);
    for (;;) {
        nap((5 + random.below(50)) * THRUM_MS);
        if (!stays || getppid() != parent || kill(parent, SIGSTOP) != 0)
            _exit(0);
        nap(random.below(4000) * THRUM_US);
        kill(parent, SIGCONT);
    }
}

} // namespace

Outside::Outside(bool happens, std::uint64_t seed) {
    if (!happens)
        return;
    Random random(seed);
    const NoSignals none;
    if (random.one_in(2)) {
        void *shared =
            mmap(nullptr, sizeof *stopper_stays_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(shared != MAP_FAILED);
        stopper_stays_ = new (shared) std::atomic<bool>(true);
        const pid_t parent = getpid();
        stopper_ = fork();
        if (stopper_ == 0)
            stop_and_continue(parent, *stopper_stays_, random.next());
        CHECK(stopper_ > 0);
    }
    if (random.one_in(2))
        memory_ = std::thread(&Outside::take_memory, this);
    if (options.clock_steps)
        clock_ = std::thread(&Outside::set_clock, this);
}

Outside::~Outside() {
    ends_ = true;
    if (memory_.joinable())
        memory_.join();
    if (clock_.joinable())
        clock_.join();
    if (stopper_ > 0) {
        *stopper_stays_ = false;
        CHECK_EQ(waitpid(stopper_, nullptr, 0), stopper_);
        munmap(stopper_stays_, sizeof *stopper_stays_);
    }
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

void Outside::set_clock() {
    for (time_t step = kClockStep; !ends_ || step < 0; step = -step) {
        timespec now;
        CHECK_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
        now.tv_sec += step;
        if (clock_settime(CLOCK_REALTIME, &now) != 0)
            return; // who may not
        nap(2 * THRUM_MS);
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
