// SPDX-License-Identifier: Apache-2.0
//
// Where a kept thread is woken (src/kthread/place.c): which way is chosen for what is known of a call site, and what is
// learned. A test sets what is known, or the moments that the thread has noted, rather than take the time itself.
#include <algorithm>

#include "layer.hpp"

extern "C" {
#include "kthread/crowd.h"
#include "kthread/place.h"
}

namespace {

uint64_t us(uint64_t n) {
    return n * ticks_per_us();
}

cpu_set_t usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
}

void confine_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    usleep(1000); // what creators know of their mask is too old then
}

// What the calling thread's yields do, and how many there were.
thread_local unsigned yield_takes_us = 0, yields = 0;

class Place : public Layer {
  protected:
    void SetUp() override {
        Layer::SetUp();
        ASSERT_TRUE(eventually([] { return ticks_per_us() != 0; }));
        crowd_init(); // whatever else runs on this machine
    }
    void TearDown() override {
        crowd_init();
        Layer::TearDown();
    }

    // A creator of its own, that nothing is known of, and that has one CPU: it does not probe, and its threads do not
    // spin for the next job.
    void as_creator(const std::function<void()> &work) {
        Plain([&] {
            confine_to(sched_getcpu());
            work();
        }).join();
    }

    // Starts it on the kept thread, once that sleeps, and notes which way was chosen.
    Started create(Job job, bool detached = false) {
        if (kept_ != nullptr) {
            EXPECT_TRUE(eventually([this] { return load_acquire(&kept_->post) == POST_SLEEPING; }));
        }
        const Started started = start(std::move(job), detached);
        if (kept_ == nullptr)
            kept_ = started.thread;
        how_ = kept_->order.how;
        return started;
    }
    // With a job that ends when its joiner sleeps, so that the join always waits; the way that was chosen.
    uint32_t create_and_wait(const std::function<void()> &in_job = [] {}) {
        join(create([this, in_job]() -> void * {
            in_job();
            eventually([this] { return load_acquire(&kept_->life) == LIFE_AWAITED; });
            return nullptr;
        }));
        return how_;
    }

    // The one kept thread, asleep, and what is known of the place that creates it: nothing.
    void begin() {
        join(create([] { return nullptr; }));
        site_ = kept_->order.site;
        know(0, 0);
    }
    // After a join: what the creation before it says of promptness has been learned by then.
    void know(uint32_t brief, uint32_t prompt) {
        site_->brief = brief;
        site_->medium = 0;
        site_->prompt = prompt;
        site_->prompt_needed = 8;
        site_->batch = 1;
        site_->batch_sure = 0;
    }
    void know_brief_and_prompt() { know(SITE_SCORE_MAX, 8); }
    void know_last_before_join() {
        know(0, 8);
        site_->medium = site_->batch_sure = SITE_SCORE_MAX;
    }
    void slept_here(bool here) { kept_->run.last_cpu = here ? sched_getcpu() : sched_getcpu() + 1; }

    kthread *kept_ = nullptr;
    site *site_ = nullptr;
    uint32_t how_ = PLACE_NEW;
};

TEST_F(Place, BriefJobsOfAPromptCreatorAreWokenOnItsCpu) {
    as_creator([this] {
        begin();
        know_brief_and_prompt();
        slept_here(false);
        EXPECT_EQ(create_and_wait(), PLACE_HERE);
        know_brief_and_prompt();
        slept_here(true);
        EXPECT_EQ(create_and_wait(), PLACE_STAY);
    });
}

TEST_F(Place, TheKernelChoosesForAllElse) {
    as_creator([this] {
        begin();
        slept_here(true);
        know(0, 8);
        EXPECT_EQ(create_and_wait(), PLACE_PLAIN) << "a long job";
        know(SITE_SCORE_MAX, 7);
        EXPECT_EQ(create_and_wait(), PLACE_PLAIN) << "a creator that does not come back at once";
        know_brief_and_prompt();
        create([] { return nullptr; }, true);
        EXPECT_EQ(how_, PLACE_PLAIN) << "a detached thread";
    });
}

TEST_F(Place, TheLastJobBeforeAJoinGetsTheCpuThatTheJoinerLeaves) {
    as_creator([this] {
        begin();
        know_last_before_join();
        EXPECT_EQ(create_and_wait(), PLACE_HERE);
        know_last_before_join();
        site_->batch = 2;
        EXPECT_EQ(create_and_wait(), PLACE_PLAIN) << "another one comes before the join";
        know_last_before_join();
        site_->medium = 0;
        EXPECT_EQ(create_and_wait(), PLACE_PLAIN) << "it runs for long";
    });
}

// What failed n times in a row is passed up 2^n - 1 times, and begins anew after a success.
TEST_F(Place, StayingIsPassedUpAfterItFailed) {
    as_creator([this] {
        begin();
        const auto run_once = [this](bool stays) {
            know_brief_and_prompt();
            slept_here(true);
            return create_and_wait([this, stays] {
                if (!stays)
                    store_relaxed(&kept_->run.cpu, kept_->order.creator_cpu + 1);
            });
        };
        for (unsigned n = 1; n <= 3; n++) {
            EXPECT_EQ(run_once(false), PLACE_STAY);
            for (unsigned passed = 0; passed < (1u << n) - 1; passed++)
                EXPECT_EQ(run_once(true), PLACE_HERE) << n << " failures, passed up " << passed;
        }
        EXPECT_EQ(run_once(true), PLACE_STAY);
        EXPECT_EQ(run_once(false), PLACE_STAY);
        EXPECT_EQ(run_once(true), PLACE_HERE);
        EXPECT_EQ(run_once(true), PLACE_STAY);
    });
}

// A thread that was woken on its creator's CPU and began late had to wait for others there.
TEST_F(Place, TheJoinersCpuIsPassedUpAfterAJobBeganLateThere) {
    as_creator([this] {
        begin();
        const auto run_once = [this](bool late) {
            know_last_before_join();
            return create_and_wait(
                [this, late] { kept_->run.started = kept_->order.posted + (late ? us(1000) : 0); });
        };
        for (unsigned n = 1; n <= 3; n++) {
            EXPECT_EQ(run_once(true), PLACE_HERE);
            for (unsigned passed = 0; passed < (1u << n) - 1; passed++)
                EXPECT_EQ(run_once(false), PLACE_PLAIN) << n << " failures, passed up " << passed;
        }
        EXPECT_EQ(run_once(false), PLACE_HERE);
        EXPECT_EQ(run_once(true), PLACE_HERE);
        EXPECT_EQ(run_once(false), PLACE_PLAIN);
        EXPECT_EQ(run_once(false), PLACE_HERE);
    });
}

// --- a crowd on the CPUs (crowd.h) --------------------------------------------------------------------------

// Made-up times to come, of a CPU that no test runs on.
class Crowd : public Place {
  protected:
    // Long after the last test, whose window is over then. The first slice of others only makes it begin to look.
    void SetUp() override {
        static uint64_t tests;
        Place::SetUp();
        now_ = arch_ticks() + us(1000000000 + 100000000 * ++tests);
        take(0, 10000);
        ASSERT_FALSE(dense());
    }
    // One of the process's has the CPU for so long, then others.
    void take(uint64_t own_us, uint64_t others_us) {
        now_ += us(own_us);
        crowd_seen(kCpu, now_);
        now_ += us(others_us);
        crowd_waited(kCpu, now_);
    }
    bool dense(uint64_t in_us = 0) { return crowd_is_dense(now_ + us(in_us)); }

    static constexpr int kCpu = 200;
    uint64_t now_ = 0;
};

TEST_F(Crowd, OthersThatTakeMostOfTheTimeMakeItDense) {
    take(300, 30000);
    EXPECT_TRUE(dense());
    EXPECT_TRUE(dense(32 * 30000));
    EXPECT_FALSE(dense(32 * 30301));
}

TEST_F(Crowd, OneOtherIsNone) {
    for (int i = 0; i < 100; i++) {
        take(3000, 3000);
        ASSERT_FALSE(dense());
    }
}

// Each comes back after the turns of many others of the process.
TEST_F(Crowd, TheProcesssOwnAreNone) {
    for (int i = 0; i < 10000; i++) {
        take(5, 400);
        ASSERT_FALSE(dense());
    }
}

TEST_F(Crowd, SlicesOfManyOthersAddUp) {
    take(300, 12000);
    EXPECT_FALSE(dense()) << "not looked at for long enough";
    take(300, 12000);
    EXPECT_TRUE(dense());
}

TEST_F(Crowd, AWindowIsNotKeptOpenForLong) {
    take(1000, 1000);
    take(0, 60000000); // there may have been none
    EXPECT_FALSE(dense());
}

TEST_F(Crowd, ItIsForgotten) {
    for (int i = 0; i < 1000; i++)
        take(100, 0);
    take(10, 30000);
    EXPECT_FALSE(dense()) << "30 of 130 ms";
}

// The whole of it: others take 300 ms with each yield.
TEST_F(Place, YieldsThatOthersTakeKeepTheWholeProcessFromYielding) {
    const auto join_once = [this] {
        know_brief_and_prompt();
        create_and_wait();
    };
    as_creator([&] {
        begin();
        yield_takes_us = 300000; // so that the rest outlasts what follows
        EXPECT_TRUE(eventually([&] {
            join_once();
            return yields >= 2 && crowd_is_dense(arch_ticks());
        }));
        yields = 0;
        for (int i = 0; i < 5; i++)
            join_once();
        EXPECT_EQ(yields, 0u);
    });
    as_creator([&] {
        join_once();
        EXPECT_EQ(yields, 0u) << "another creator";
    });
}

TEST_F(Place, JoinsThatFindTheThreadEndedTeachHowManyAreCreatedBeforeOne) {
    as_creator([this] {
        begin();
        site_->batch_sure = 0;
        for (int round = 0; round < 8; round++) {
            const Started two[2] = {start([] { return nullptr; }), start([] { return nullptr; })};
            for (const Started &one : two)
                EXPECT_TRUE(eventually([&one] { return load_acquire(&one.thread->life) == LIFE_ENDED; }));
            for (const Started &one : two)
                join(one);
        }
        EXPECT_EQ(site_->batch, 2u);
        EXPECT_TRUE(site_says(&site_->batch_sure));
    });
}

TEST_F(Place, AllButTheLastOfABatchOfLongJobsHadBetterNotSleepHere) {
    as_creator([this] {
        EXPECT_EQ(place_avoids(), -1) << "nothing is known";
        begin();
        const auto know_batch = [this](uint32_t batch, uint32_t brief) {
            know(brief, 0);
            site_->batch = batch;
            site_->batch_sure = SITE_SCORE_MAX;
        };
        know_batch(2, 0);
        EXPECT_EQ(place_avoids(), sched_getcpu());
        know_batch(2, SITE_SCORE_MAX);
        EXPECT_EQ(place_avoids(), -1) << "a brief one is best where its creator is";
        know_batch(1, 0);
        EXPECT_EQ(place_avoids(), -1);
        know_batch(2, 0);
        const Started first = create([] { return nullptr; });
        know_batch(2, 0);
        EXPECT_EQ(place_avoids(), -1) << "the last one";
        know_batch(3, 0);
        EXPECT_EQ(place_avoids(), sched_getcpu());
        join(first);
    });
}

// The whole of it, with nothing set from outside.
TEST_F(Place, ACreatorThatComesBackAtOnceIsLearned) {
    as_creator([this] {
        begin();
        EXPECT_TRUE(eventually([this] {
            for (int i = 0; i < 20; i++) {
                join(create([] { return nullptr; }));
                if (how_ == PLACE_HERE || how_ == PLACE_STAY)
                    return true;
            }
            return false;
        }));
    });
}

TEST_F(Place, NowAndThenABriefJobIsTriedOnAnotherCpu) {
    const cpu_set_t all = usable_cpus();
    if (CPU_COUNT(&all) < 2)
        GTEST_SKIP() << "one CPU";
    begin();
    EXPECT_TRUE(eventually([this] {
        know_brief_and_prompt();
        join(create([] { return nullptr; }));
        return how_ == PLACE_PROBE;
    }));
}

// --- what a thread learns by itself -------------------------------------------------------------------------

// A thread with a job that began so long ago.
struct PastJob {
    explicit PastJob(uint64_t ran_us) {
        descriptor.notes.order.site = &place;
        descriptor.notes.order.creator_cpu = -1; // not where it runs: it may spin
        descriptor.run.started = arch_ticks() - us(ran_us);
    }
    site place{};
    kthread descriptor{};
};

TEST_F(Place, FourLongJobsInARowAndAPlaceIsNotBriefAnyMore) {
    PastJob job(21);
    job.place.brief = SITE_SCORE_MAX;
    for (int wrong = 1; wrong <= 4; wrong++) {
        EXPECT_TRUE(site_says(&job.place.brief)) << wrong - 1 << " wrong guesses";
        place_end(&job.descriptor);
    }
    EXPECT_FALSE(site_says(&job.place.brief));
}

TEST_F(Place, JobsAreScoredByTheirLength) {
    PastJob of_100us(100), of_3ms(3000), brief(0);
    of_100us.place.brief = of_3ms.place.brief = of_3ms.place.medium = 8;
    place_end(&of_3ms.descriptor);
    EXPECT_FALSE(of_3ms.descriptor.notes.short_job);
    EXPECT_EQ(of_3ms.place.brief, 4u);
    EXPECT_EQ(of_3ms.place.medium, 4u);
    place_end(&of_100us.descriptor);
    EXPECT_EQ(of_100us.place.brief, 4u);
    EXPECT_TRUE(eventually([&] { // unless something came in between
        brief.descriptor.run.started = arch_ticks();
        place_end(&brief.descriptor);
        return site_says(&brief.place.brief) && site_says(&brief.place.medium) &&
               brief.descriptor.notes.short_job;
    }));
}

TEST_F(Place, SpinningIsPassedUpAfterItWasForNothing) {
    const cpu_set_t all = usable_cpus();
    if (CPU_COUNT(&all) < 2)
        GTEST_SKIP() << "one CPU: nobody spins";
    PastJob job(0);
    for (unsigned n = 1; n <= 4; n++) {
        place_linger(&job.descriptor);
        EXPECT_EQ(job.descriptor.notes.fails, n);
        for (unsigned passed = 0; passed < (1u << n) - 1; passed++)
            place_linger(&job.descriptor);
        EXPECT_EQ(job.descriptor.notes.fails, n);
        EXPECT_EQ(job.descriptor.notes.skip, 0u);
    }
    job.descriptor.post = POST_JOB;
    place_linger(&job.descriptor);
    EXPECT_EQ(job.descriptor.notes.fails, 0u) << "the next job came";
}

TEST_F(Place, NoThreadSpinsOnTheCreatorsCpuNorWhereThereIsOnlyOne) {
    as_creator([] {
        PastJob job(0);
        job.descriptor.notes.order.creator_cpu = sched_getcpu();
        place_linger(&job.descriptor);
        EXPECT_EQ(job.descriptor.notes.fails, 0u);
    });
    EXPECT_EQ(in_child([] {
                  confine_to(sched_getcpu());
                  place_init(); // counts the CPUs
                  PastJob job(0);
                  place_linger(&job.descriptor);
                  return static_cast<int>(job.descriptor.notes.fails);
              }),
              0);
}

// --- what runs in parallel without the library ----------------------------------------------------------------

// Jobs that compute, of a place that has been brief so far: each of them takes part until two have been on different
// CPUs at one time.
TEST_F(Place, JobsThatComputeGetMoreThanOneCpu) {
    const cpu_set_t all = usable_cpus();
    if (CPU_COUNT(&all) < 2)
        GTEST_SKIP() << "one CPU";
    begin();
    know_brief_and_prompt();
    constexpr size_t kJobs = 4;
    std::atomic<int> on[kJobs];
    std::fill(std::begin(on), std::end(on), -1);
    std::atomic<bool> spread{false};
    std::vector<Started> jobs;
    for (std::atomic<int> &own : on)
        jobs.push_back(start([&]() -> void * {
            const auto elsewhere = [&own](const std::atomic<int> &other) {
                return other >= 0 && other != own;
            };
            const uint64_t give_up = clock_monotonic_ns() + 20000000000u;
            do {
                own = sched_getcpu();
                if (std::any_of(std::begin(on), std::end(on), elsewhere))
                    spread = true;
            } while (!spread && clock_monotonic_ns() < give_up);
            return nullptr;
        }));
    for (const Started &one : jobs)
        join(one);
    EXPECT_TRUE(spread);
}

} // namespace

extern "C" int __real_sched_yield() noexcept;
extern "C" int __wrap_sched_yield() noexcept;
extern "C" int __wrap_sched_yield() noexcept {
    yields++;
    return yield_takes_us != 0 ? usleep(yield_takes_us) : __real_sched_yield();
}
