// SPDX-License-Identifier: Apache-2.0
//
// The alternatives without any preloading: where the front end would call libc's pthread_join, the tests call the function that
// stands behind it.
#include <sys/mman.h>

#include "layer.hpp"

extern "C" {
#include "behind.h"
#include "kthread/alternative.h"
#include "mode.h"
#include "stack_cache.h"
#include "standby.h"
}

namespace {

using Job = std::function<void()>;

void *run_job(void *job) {
    (*static_cast<Job *>(job))();
    return job;
}

void *return_at_once(void *argument) {
    return argument;
}

class Mode : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(layer_init().with_libc);
        before_ = mode_config;
        config_before_ = kthread_config;
    }
    void TearDown() override {
        mode_cull();
        mode_config = before_;
        kthread_config = config_before_;
        faults_clear();
        EXPECT_EQ(thrum_cache_counters.idle, 0u);
        EXPECT_TRUE(eventually([] { return threads_of_process() <= 1 + kForeignThreads; }));
    }

    static void use(const char *name, uint64_t standby = STANDBY_USUAL) {
        ASSERT_TRUE(mode_choose(name));
        mode_config.standby = standby;
    }

    // The function that the front end calls for one of libc's.
    template <class Function>
    static Function *behind_of(const char *name, Function *function) {
        return reinterpret_cast<Function *>(
            kthread_alternative->behind(name, reinterpret_cast<void *>(function)));
    }

    // As the front end does: by the mode, or by libc.
    static bool create(pthread_t *handle, void *(*fn)(void *), void *argument, bool detached = false,
                       const kthread_kind &kind = kKind) {
        if (kthread_alternative->start(&kind, detached, fn, argument, handle))
            return true;
        EXPECT_EQ(pthread_create(handle, nullptr, fn, argument), 0);
        if (detached)
            pthread_detach(*handle);
        return false;
    }

    static void join(pthread_t handle) {
        ASSERT_EQ(behind_of("pthread_join", pthread_join)(handle, nullptr), 0);
    }

    // Creates and joins; whether the mode did it.
    static bool run(
        Job job = [] {}, const kthread_kind &kind = kKind) {
        pthread_t handle;
        const bool by_mode = create(&handle, run_job, &job, false, kind);
        join(handle);
        return by_mode;
    }

    // The filler fills up to the level that the creations so far have raised.
    static void wait_until_ready(unsigned count) {
        EXPECT_TRUE(eventually([&] { return standby_ready(&kKind) >= count; })) << standby_ready(&kKind);
    }

  private:
    struct mode_config before_;
    struct kthread_config config_before_;
};

TEST_F(Mode, Names) {
    EXPECT_TRUE(mode_choose("standby"));
    EXPECT_EQ(mode_config.mode, MODE_STANDBY);
    EXPECT_TRUE(mode_choose("standby-helping"));
    EXPECT_EQ(mode_config.mode, MODE_STANDBY_HELPING);
    EXPECT_TRUE(mode_choose("stacks"));
    for (const char *name : {"", "reuse", "Standby", "standby ", "stack"})
        EXPECT_FALSE(mode_choose(name)) << name;
    EXPECT_EQ(mode_config.mode, MODE_STACKS);
}

// --- standby ---------------------------------------------------------------------------------------------------

TEST_F(Mode, StandbyServesAfterAMiss) {
    use("standby");
    EXPECT_FALSE(run());
    wait_until_ready(1);
    EXPECT_TRUE(run());
}

TEST_F(Mode, StandbyLevelDoublesUpToTheLimit) {
    use("standby", 6);
    for (int i = 0; i < 500 && standby_ready(&kKind) < 6; i++) {
        std::vector<pthread_t> handles(12);
        for (pthread_t &handle : handles)
            create(&handle, return_at_once, nullptr);
        for (pthread_t handle : handles)
            join(handle);
        usleep(1000);
    }
    wait_until_ready(6);
    a_while();
    EXPECT_EQ(standby_ready(&kKind), 6u);
    EXPECT_EQ(thrum_cache_counters.idle, 6u);
}

TEST_F(Mode, StandbyRunsOneJobEach) {
    use("standby");
    pid_t last = 0;
    for (int i = 0; i < 20; i++) {
        wait_until_ready(i == 0 ? 0 : 1);
        run([&] {
            EXPECT_NE(own_tid(), last);
            last = own_tid();
        });
    }
}

TEST_F(Mode, StandbyCullLeavesNoThread) {
    use("standby");
    run();
    wait_until_ready(1);
    EXPECT_GE(standby_cull(), 2u) << "one that stood by, and the filler";
    EXPECT_LE(threads_of_process(), 1 + kForeignThreads);
    EXPECT_EQ(standby_cull(), 0u);
    EXPECT_FALSE(run()) << "begins anew";
    wait_until_ready(1);
    EXPECT_TRUE(run());
}

TEST_F(Mode, StandbyHasWhatItsCreatorHas) {
    use("standby");
    run();
    wait_until_ready(1);
    sigset_t set, before, theirs;
    cpu_set_t one, all, mine;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &set, &before);
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    creator_affinity_changed(nullptr);
    EXPECT_TRUE(run([&] {
        pthread_sigmask(SIG_SETMASK, nullptr, &theirs);
        sched_getaffinity(0, sizeof mine, &mine);
    }));
    sched_setaffinity(0, sizeof all, &all);
    creator_affinity_changed(nullptr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    for (int signo = 1; signo < NSIG; signo++)
        EXPECT_EQ(sigismember(&theirs, signo) == 1, signo == SIGUSR2) << signo;
    EXPECT_TRUE(CPU_EQUAL(&mine, &one));
}

TEST_F(Mode, StandbyDetached) {
    use("standby");
    std::atomic<int> done{0};
    Job job = [&] { done++; };
    pthread_t handle;
    for (int i = 0; i < 50; i++)
        create(&handle, run_job, &job, true);
    EXPECT_TRUE(eventually([&] { return done == 50; }));
}

TEST_F(Mode, StandbyOfOneLineageServesNoOther) {
    use("standby");
    kthread_kind other = kKind;
    other.lineage = 12345;
    run();
    wait_until_ready(1);
    EXPECT_FALSE(run([] {}, other));
    a_while();
    EXPECT_EQ(standby_ready(&other), 0u);
    EXPECT_TRUE(run());
}

TEST_F(Mode, StandbyKindsTakeTurns) {
    use("standby");
    for (size_t i = 0; i < 6; i++) {
        kthread_kind kind{kStackSize + i * 65536, kGuardSize, 0, {}};
        run([] {}, kind);
        EXPECT_TRUE(eventually([&] { return standby_ready(&kind) >= 1; }));
        EXPECT_TRUE(run([] {}, kind));
    }
    EXPECT_LE(__atomic_load_n(&thrum_cache_counters.idle, __ATOMIC_RELAXED), 4u * 2)
        << "places for four kinds, few of each";
}

TEST_F(Mode, StandbyThatCannotBeMadeIsDoneWithout) {
    use("standby");
    faults.create.next(1000000, EAGAIN);
    for (int i = 0; i < 20; i++)
        EXPECT_FALSE(run());
    faults_clear();
    run();
    wait_until_ready(1);
    EXPECT_TRUE(run());
}

TEST_F(Mode, NothingStandsByUnderALimitOrWithoutPlaces) {
    for (const char *name : {"standby", "standby-helping"}) {
        use(name, 0);
        EXPECT_FALSE(run());
        use(name);
        kthread_config.memory_limited = true;
        EXPECT_FALSE(run());
        kthread_config.memory_limited = false;
        EXPECT_EQ(thrum_cache_counters.idle, 0u);
    }
}

TEST_F(Mode, HelpersMakeTheNext) {
    use("standby-helping");
    EXPECT_TRUE(run()); // new, but of the mode's making
    EXPECT_EQ(standby_ready(&kKind), 1u) << "made before the join returned";
    EXPECT_TRUE(run());
    EXPECT_EQ(standby_ready(&kKind), 1u);
    // One that was joined may still be listed for a moment. A filler would stay.
    EXPECT_TRUE(eventually([] { return threads_of_process() <= 2 + kForeignThreads; })) << "no filler";
}

TEST_F(Mode, HelpersHelpHoweverTheyEnd) {
    use("standby-helping");
    run([] { pthread_exit(nullptr); });
    EXPECT_EQ(standby_ready(&kKind), 1u);
    pthread_t handle;
    Job wait = [] {
        for (;;)
            pause();
    };
    create(&handle, run_job, &wait);
    EXPECT_EQ(standby_ready(&kKind), 0u);
    pthread_cancel(handle);
    void *result;
    ASSERT_EQ(pthread_join(handle, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_EQ(standby_ready(&kKind), 1u);
}

TEST_F(Mode, ForksChildBeginsWithoutAnyAndMakesNew) {
    for (const char *name : {"standby", "standby-helping"}) {
        use(name);
        run();
        wait_until_ready(1);
        EXPECT_EQ(in_child([] {
                      kthread_fork_child(true);
                      if (threads_of_process() > 1 + kForeignThreads || standby_ready(&kKind) != 0)
                          return 1;
                      run();
                      wait_until_ready(1);
                      return run() && !HasFailure() ? 0 : 2;
                  }),
                  0)
            << name;
        mode_cull();
    }
}

TEST_F(Mode, StandbyUnderManyCreatorsAndCulls) {
    constexpr int kEach = 2000 / (UNIT_EMULATED ? 4 * kStressDivisor : kStressDivisor);
    for (const char *name : {"standby", "standby-helping"}) {
        use(name, 8);
        std::atomic<bool> stop{false};
        std::atomic<long> ran{0};
        long started = 0;
        {
            std::vector<std::unique_ptr<Plain>> creators; // not on stacks of 8 MB, which libc would keep
            std::atomic<long> all{0};
            for (int i = 0; i < 4; i++)
                creators.push_back(std::make_unique<Plain>([&, i] {
                    Job job = [&] { ran++; };
                    for (int n = 0; n < kEach; n++, all++) {
                        pthread_t handle;
                        create(&handle, run_job, &job, false,
                               kthread_kind{kStackSize + (n + i) % 5 * 65536u, kGuardSize, 0, {}});
                        pthread_join(handle, nullptr);
                    }
                }));
            Plain culler([&] {
                while (!stop) {
                    mode_cull();
                    usleep(300);
                }
            });
            for (const auto &creator : creators)
                creator->join();
            stop = true;
            culler.join();
            started = all;
        }
        EXPECT_EQ(ran, started) << name;
        mode_cull();
    }
}

// --- stacks ----------------------------------------------------------------------------------------------------

__attribute__((noinline)) const char *address_in_thread() {
    return static_cast<const char *>(__builtin_frame_address(0));
}

class ModeStacks : public Mode {
  protected:
    void SetUp() override {
        Mode::SetUp();
        use("stacks");
        made_before_ = stack_cache_made(&kKind);
    }
    unsigned made() { return stack_cache_made(&kKind) - made_before_; }

  private:
    unsigned made_before_ = 0;
};

TEST_F(ModeStacks, UsedAgainAfterTheJoin) {
    const char *first = nullptr, *second = nullptr;
    EXPECT_TRUE(run([&] { first = address_in_thread(); }));
    EXPECT_EQ(stack_cache_free(&kKind), 1u);
    EXPECT_TRUE(run([&] { second = address_in_thread(); }));
    EXPECT_EQ(first, second);
    EXPECT_EQ(stack_cache_free(&kKind), 1u);
    EXPECT_EQ(made(), 1u);
}

TEST_F(ModeStacks, OneForEachAtOnce) {
    std::vector<pthread_t> handles(70); // more than an arena has
    std::atomic<size_t> inside{0};
    Job job = [&] {
        inside++;
        eventually([&] { return inside == handles.size(); });
    };
    for (pthread_t &handle : handles)
        EXPECT_TRUE(create(&handle, run_job, &job));
    for (pthread_t handle : handles)
        join(handle);
    EXPECT_EQ(stack_cache_free(&kKind), handles.size());
    EXPECT_EQ(made(), handles.size());
}

TEST_F(ModeStacks, OfDetachedThreadsComeBackWhenTheyAreGone) {
    std::atomic<int> ended{0};
    Job job = [&] { ended++; };
    pthread_t handle;
    for (int i = 0; i < 60; i++) {
        EXPECT_TRUE(create(&handle, run_job, &job, true));
        EXPECT_TRUE(eventually([&] { return ended == i + 1; }));
        EXPECT_TRUE(eventually([] { return threads_of_process() <= 1 + kForeignThreads; }));
    }
    EXPECT_LE(made(), 2u);
}

TEST_F(ModeStacks, OfADetachedThreadIsNotUsedWhileItRuns) {
    std::atomic<bool> end{false};
    const char *theirs = nullptr;
    std::atomic<bool> there{false}, gone{false};
    Job hold = [&] {
        theirs = address_in_thread();
        there = true;
        eventually([&] { return end.load(); });
        gone = true;
    };
    pthread_t handle;
    EXPECT_TRUE(create(&handle, run_job, &hold));
    ASSERT_EQ(behind_of("pthread_detach", pthread_detach)(handle), 0);
    EXPECT_TRUE(eventually([&] { return there.load(); }));
    for (int i = 0; i < 20; i++)
        run([&] { EXPECT_GT(labs(address_in_thread() - theirs), static_cast<long>(kStackSize / 2)); });
    end = true;
    EXPECT_TRUE(eventually([&] { return gone.load(); }));
}

TEST_F(ModeStacks, ALateDetachOfAnotherThreadsIsIgnored) {
    pthread_t handle;
    create(&handle, return_at_once, nullptr);
    const stack_held held = stack_cache_hold(handle);
    join(handle);
    create(&handle, return_at_once, nullptr);
    stack_cache_detached(held);
    stack_cache_joined(held);
    EXPECT_EQ(stack_cache_free(&kKind), 0u);
    join(handle);
    EXPECT_EQ(stack_cache_free(&kKind), 1u);
}

TEST_F(ModeStacks, SizeAndGuardAreWhatWasAskedFor) {
    for (const size_t guard : {size_t{0}, kGuardSize, 4 * kGuardSize}) {
        EXPECT_TRUE(run(
            [&] {
                pthread_attr_t attributes;
                void *low;
                size_t size, guard_size;
                behind_of("pthread_getattr_np", pthread_getattr_np)(pthread_self(), &attributes);
                pthread_attr_getstack(&attributes, &low, &size);
                pthread_attr_getguardsize(&attributes, &guard_size);
                pthread_attr_destroy(&attributes);
                EXPECT_EQ(size, kStackSize);
                EXPECT_EQ(guard_size, guard);
                if (guard != 0) {
                    int pipes[2];
                    ASSERT_EQ(pipe(pipes), 0);
                    EXPECT_EQ(write(pipes[1], static_cast<char *>(low) - 1, 1), -1) << "no guard";
                    EXPECT_EQ(write(pipes[1], low, 1), 1);
                    close(pipes[0]);
                    close(pipes[1]);
                }
            },
            kthread_kind{kStackSize, guard, 0, {}}));
    }
}

TEST_F(ModeStacks, NoMoreThanAllowedAreKept) {
    kthread_config.max_idle = 2;
    std::vector<pthread_t> handles(6);
    for (pthread_t &handle : handles)
        create(&handle, return_at_once, nullptr);
    for (pthread_t handle : handles)
        join(handle);
    EXPECT_EQ(stack_cache_free(&kKind), 2u);
    EXPECT_EQ(stack_cache_cull(), 2u);
    EXPECT_EQ(stack_cache_free(&kKind), 0u);
    EXPECT_TRUE(run());
}

TEST_F(ModeStacks, AFailedCreationGivesItsStackBack) {
    faults.create.next(1, EAGAIN);
    pthread_t handle;
    EXPECT_FALSE(mode_start(&kKind, false, return_at_once, nullptr, &handle));
    EXPECT_EQ(stack_cache_free(&kKind), 1u);
    faults.create.next(1, EAGAIN);
    EXPECT_FALSE(mode_start(&kKind, true, return_at_once, nullptr, &handle));
    EXPECT_EQ(stack_cache_free(&kKind), 1u);
    faults_clear();
    EXPECT_TRUE(run());
}

TEST_F(ModeStacks, WhatIsNotOfPagesIsLeftToLibc) {
    EXPECT_FALSE(run([] {}, kthread_kind{kStackSize + 64, kGuardSize, 0, {}}));
    EXPECT_FALSE(run([] {}, kthread_kind{kStackSize, kGuardSize + 64, 0, {}}));
    kthread_config.memory_limited = true;
    EXPECT_FALSE(run());
}

TEST_F(ModeStacks, EveryJoinFreesTheStack) {
    const timespec past{0, 0}, future{std::time(nullptr) + 60, 0};
    const auto tryjoin = behind_of("pthread_tryjoin_np", pthread_tryjoin_np);
    const auto timedjoin = behind_of("pthread_timedjoin_np", pthread_timedjoin_np);
    const auto clockjoin = behind_of("pthread_clockjoin_np", pthread_clockjoin_np);
    std::atomic<bool> end{false};
    Job hold = [&] { eventually([&] { return end.load(); }); };
    using Join = std::function<int(pthread_t)>;
    for (const Join &finish :
         {Join([&](pthread_t thread) { return timedjoin(thread, nullptr, &future); }),
          Join([&](pthread_t thread) { return clockjoin(thread, nullptr, CLOCK_REALTIME, &future); }),
          Join([&](pthread_t thread) {
              EXPECT_TRUE(eventually([&] { return tryjoin(thread, nullptr) == 0; }));
              return 0;
          })}) {
        pthread_t handle;
        end = false;
        EXPECT_TRUE(create(&handle, run_job, &hold));
        EXPECT_EQ(tryjoin(handle, nullptr), EBUSY);
        EXPECT_EQ(timedjoin(handle, nullptr, &past), ETIMEDOUT);
        EXPECT_EQ(clockjoin(handle, nullptr, CLOCK_REALTIME, &past), ETIMEDOUT);
        EXPECT_EQ(stack_cache_free(&kKind), 0u) << "it is not joined yet";
        end = true;
        EXPECT_EQ(finish(handle), 0);
        EXPECT_EQ(stack_cache_free(&kKind), 1u);
    }
    EXPECT_EQ(made(), 1u);
}

TEST_F(Mode, OtherFunctionsOfLibcAreCalledDirectly) {
    EXPECT_EQ(behind_of("pthread_kill", pthread_kill), pthread_kill);
    EXPECT_EQ(behind_of("pthread_join_np", pthread_join), pthread_join);
    EXPECT_NE(behind_of("pthread_join", pthread_join), pthread_join);
    EXPECT_EQ(kthread_alternative->behind("pthread_join", nullptr), nullptr);
}

TEST_F(Mode, TheProgramsOwnStackIsLeftToLibc) {
    static char room[1 << 16];
    for (const char *name : {"standby-helping", "stacks"}) {
        use(name);
        pthread_t handle;
        kthread_kind kind = kKind;
        kind.user = {room, sizeof room};
        EXPECT_FALSE(mode_start(&kind, false, return_at_once, nullptr, &handle)) << name;
    }
}

TEST_F(ModeStacks, OthersHandlesAreNoneOfOurs) {
    EXPECT_EQ(stack_cache_hold(pthread_self()).block, nullptr);
    stack_cache_joined({nullptr, 0});
    stack_cache_detached({nullptr, 0});
}

TEST_F(ModeStacks, ForksChildBeginsAnew) {
    run();
    EXPECT_EQ(in_child([&] {
                  kthread_fork_child(true);
                  if (stack_cache_free(&kKind) != 0)
                      return 1;
                  return run() && run() && stack_cache_made(&kKind) == 1 ? 0 : 2;
              }),
              0);
}

} // namespace
