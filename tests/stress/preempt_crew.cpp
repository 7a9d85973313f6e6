// SPDX-License-Identifier: Apache-2.0
//
// See preempt_crew.h.
#include "preempt_crew.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <thrum/worker.h>
#include <time.h>

#include <cstdio>
#include <deque>

#include "preempt_outside.h"
#include "preempt_pcs.h"
#include "preempt_watch.h"

std::atomic<bool> over;
CrewTotals crew_totals;

namespace {

constexpr std::size_t kPthreadStack = std::size_t{256} << 10;

struct Crew {
    std::deque<Actor> actors;
    const std::vector<Torture *> &tortures;
    explicit Crew(const std::vector<Torture *> &of) : tortures(of) {}
};

struct Start {
    Crew *crew;
    Actor *actor;
};

void *act(void *arg) {
    const auto *start = static_cast<const Start *>(arg);
    Actor &actor = *start->actor;
    const std::vector<Torture *> &tortures = start->crew->tortures;
    pcs_here(actor);
    while (!over.load(std::memory_order_relaxed)) {
        Torture *torture = tortures[actor.random.below(static_cast<unsigned>(tortures.size()))];
        actor.torture.store(torture->name(), std::memory_order_relaxed);
        torture->step(actor);
        actor.steps.store(actor.steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    for (Torture *torture : tortures) {
        actor.torture.store(torture->name(), std::memory_order_relaxed);
        torture->last_step(actor);
    }
    actor.ended = true;
    return nullptr;
}

int tick_signal() {
    return SIGRTMIN + 4;
}

// --- as kernel threads ----------------------------------------------------------------------------------------

void nothing(int, siginfo_t *, void *) {}

// One timer for the process: it interrupts whatever runs.
class Interruptions {
  public:
    Interruptions() {
        struct sigaction action = {};
        action.sa_sigaction = nothing;
        action.sa_flags = SA_RESTART | SA_SIGINFO;
        CHECK_EQ(sigaction(tick_signal(), &action, nullptr), 0);
    }
    void start() {
        sigevent event = {};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = tick_signal();
        CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer_), 0);
        const timespec slice = {0, static_cast<long>(options.slice_ns())};
        const itimerspec every = {slice, slice};
        CHECK_EQ(timer_settime(timer_, 0, &every, nullptr), 0);
    }
    void stop() const { CHECK_EQ(timer_delete(timer_), 0); }

  private:
    timer_t timer_ = nullptr;
};

void run_on_kernel_threads(std::vector<Start> &starts) {
    std::vector<pthread_t> threads(starts.size());
    Interruptions interruptions;
    pcs_begin(tick_signal(), false);
    interruptions.start();
    pthread_attr_t attr;
    CHECK_EQ(pthread_attr_init(&attr), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attr, kPthreadStack), 0);
    for (std::size_t i = 0; i < starts.size(); i++)
        CHECK_EQ(pthread_create(&threads[i], &attr, act, &starts[i]), 0);
    for (const pthread_t thread : threads)
        CHECK_EQ(pthread_join(thread, nullptr), 0);
    interruptions.stop();
    pcs_end();
}

// --- as threads of libthrum -----------------------------------------------------------------------------------

void add_counters() {
    const unsigned workers = thrum_workers();
    for (unsigned i = 0; i < workers; i++) {
        thrum_worker_counters counters = {};
        CHECK_EQ(thrum_worker_get_counters(i, &counters), 0);
        crew_totals.preemptions += counters.preemptions;
        crew_totals.ticks += counters.ticks;
    }
}

// The slice is the runtime's, or each thread's own. Those of mode NONE live in a runtime that has ticks, which they see
// at safepoints.
void run_on_workers(std::vector<Start> &starts, Torture &torture, bool by_attribute, bool nested) {
    thrum_config config = {};
    config.workers = torture.workers();
    config.preempt.mode =
        options.mode == Mode::kNone ? unsigned{THRUM_PREEMPT_LEND} : static_cast<unsigned>(options.mode);
    config.preempt.slice = by_attribute ? unsigned{THRUM_SLICE_MAX} : options.slice;
    config.preempt.source = options.source;
    config.preempt.signal = tick_signal();
    const int error = thrum_init(&config);
    if (error != 0)
        fail(__FILE__, __LINE__, "thrum_init: error %d", error);
    pcs_begin(tick_signal(), nested);
    for (Torture *each : starts[0].crew->tortures)
        each->started();
    std::vector<thrum_t> threads(starts.size());
    for (std::size_t i = 0; i < starts.size(); i++) {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        CHECK_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED), 0);
        if (torture.bound())
            CHECK_EQ(thrum_attr_set_worker(&attr, static_cast<unsigned>(i) % torture.workers()), 0);
        if (by_attribute || options.mode == Mode::kNone)
            CHECK_EQ(thrum_attr_set_preempt(&attr, static_cast<unsigned>(options.mode)), 0);
        if (by_attribute)
            CHECK_EQ(thrum_attr_set_slice(&attr, options.slice), 0);
        int spawned = thrum_spawn(&threads[i], &attr, act, &starts[i]);
        if (spawned == EAGAIN && torture.may_refuse()) { // then without a block of its own
            CHECK_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_LEND), 0);
            spawned = thrum_spawn(&threads[i], &attr, act, &starts[i]);
        }
        CHECK_EQ(spawned, 0);
    }
    torture.spawned();
    for (const thrum_t thread : threads)
        CHECK_EQ(thrum_join(thread, nullptr), 0);
    add_counters();
    pcs_end();
    CHECK_EQ(thrum_fini(), 0);
}

} // namespace

void crew_run(const std::vector<Torture *> &tortures, double seconds, std::uint64_t seed) {
    Torture &first = *tortures[0];
    first.next_round();
    const unsigned many = first.actors();
    Random random(seed);
    Crew crew(tortures);
    std::vector<Start> starts(many);
    for (unsigned i = 0; i < many; i++) {
        Actor &actor = crew.actors.emplace_back();
        actor.number = i;
        actor.random = Random(random.next());
        starts[i] = {&crew, &actor};
    }
    over = false;
    for (Torture *torture : tortures)
        torture->begin(many);
    watch_round(crew.actors, seconds);
    {
        const bool disturbed = options.disturbed && !first.alone();
        const Outside outside(
            {options.disturbed && first.may_be_stopped(), disturbed && options.clock_steps, disturbed},
            random.next());
        if (options.has_ults())
            run_on_workers(starts, first, random.one_in(4), disturbed && random.one_in(2));
        else
            run_on_kernel_threads(starts);
    }
    watch_nothing();
    for (Torture *torture : tortures)
        torture->end();
    for (const Actor &actor : crew.actors)
        crew_totals.steps += actor.steps;
}
