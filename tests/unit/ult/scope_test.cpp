// SPDX-License-Identifier: Apache-2.0
//
// Scopes: thrum_scope_begin, _spawn, _cancel, _end, and what cancels them.
#include <errno.h>
#include <limits.h>
#include <sys/wait.h>
#include <thrum/scope.h>
#include <thrum/time.h>
#include <thrum/worker.h>

#include <random>
#include <vector>

#include "faults.hpp"
#include "ult.hpp"

namespace {

constexpr std::uint64_t kNever = UINT64_MAX;

std::uint64_t in_an_hour() {
    return thrum_now() + 3600 * THRUM_S;
}

// Members from lambdas, which must live as long as the scope.
using Body = std::function<int()>;

int run_body(void *body) {
    return (*static_cast<const Body *>(body))();
}

int spawn(thrum_scope_t *scope, const Body &body, const thrum_attr_t *attr = nullptr) {
    return thrum_scope_spawn(scope, attr, run_body, const_cast<Body *>(&body));
}

struct Unwinds {
    std::atomic<int> &count;
    ~Unwinds() { count++; }
};

// A member that waits as long as it may; counts its end.
Body waits_in(std::atomic<int> &begun, std::atomic<int> &ended, const std::function<void()> &wait) {
    return [&begun, &ended, wait] {
        const Unwinds unwinds{ended};
        begun++;
        wait();
        ADD_FAILURE() << "came back";
        return 0;
    };
}

class Scope : public Ult {};

// In each context that an owner may be.
void everywhere(const Light::Work &work) {
    work();
    in_ult(work);
    External external(work);
    external.join();
}

TEST_P(Scope, WaitsForAllOfItsMembers) {
    everywhere([] {
        thrum_scope_t scope;
        std::atomic<int> ended{0};
        ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0);
        const Body leaf = [&ended] {
            thrum_sleep(100 * THRUM_US);
            ended++;
            return 0;
        };
        const Body branch = [&] { // members spawn members
            for (int i = 0; i < 3; i++)
                EXPECT_EQ(spawn(&scope, leaf), 0);
            ended++;
            return 0;
        };
        for (int i = 0; i < 20; i++)
            EXPECT_EQ(spawn(&scope, branch), 0);
        EXPECT_FALSE(thrum_scope_cancelled(&scope));
        EXPECT_EQ(thrum_scope_end(&scope), 0);
        EXPECT_EQ(ended, 80);
        ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0); // without any, and once more
        EXPECT_EQ(thrum_scope_end(&scope), 0);
    });
}

TEST_P(Scope, TheFirstErrorCancelsTheOthersAndIsItsResult) {
    everywhere([] {
        thrum_scope_t scope;
        std::atomic<int> begun{0}, ended{0};
        ASSERT_EQ(thrum_scope_begin(&scope, in_an_hour()), 0);
        const Body waiter = waits_in(begun, ended, [] { thrum_sleep(3600 * THRUM_S); });
        for (int i = 0; i < 200; i++) // more than a batch of the canceller's
            ASSERT_EQ(spawn(&scope, waiter), 0);
        const Body fails = [&begun] {
            EXPECT_TRUE(eventually([&] { return begun == 200; }));
            return -7;
        };
        const Body fails_later = [&scope] {
            EXPECT_TRUE(eventually([&] { return thrum_scope_cancelled(&scope); }));
            return 8;
        };
        ASSERT_EQ(spawn(&scope, fails_later), 0);
        ASSERT_EQ(spawn(&scope, fails), 0);
        EXPECT_EQ(thrum_scope_end(&scope), -7);
        EXPECT_EQ(ended, 200);
    });
}

// Each wait ends at the scope's deadline, whatever its own is; those of locks where it is asked for.
TEST_P(Scope, ItsDeadlineEndsEachWait) {
    everywhere([] {
        thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
        thrum_event_t event = THRUM_EVENT_INITIALIZER;
        thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
        std::atomic<int> begun{0}, ended{0};
        const Body members[] = {
            waits_in(begun, ended, [] { thrum_sleep_until(in_an_hour()); }),
            waits_in(begun, ended, [] { thrum_suspend(); }),
            waits_in(begun, ended, [&] { thrum_sem_wait(&sem); }),
            waits_in(begun, ended, [&] { thrum_sem_wait_until(&sem, in_an_hour()); }),
            waits_in(begun, ended, [&] { thrum_event_wait(&event); }),
            waits_in(begun, ended, [&] { thrum_channel_receive(&channel, nullptr); }),
            waits_in(begun, ended,
                     [&] {
                         while (true) { // without any wait
                             thrum_testcancel();
                             thrum_yield();
                         }
                     }),
        };
        const Body locks = waits_in(begun, ended, [&] { thrum_mutex_lock(&mutex); });
        thrum_attr_t cancels_locks;
        thrum_attr_init(&cancels_locks);
        thrum_attr_set_flags(&cancels_locks, THRUM_SPAWN_CANCEL_LOCKS);
        thrum_mutex_lock(&mutex);
        const std::uint64_t deadline = thrum_now() + 20 * THRUM_MS;
        thrum_scope_t scope;
        ASSERT_EQ(thrum_scope_begin(&scope, deadline), 0);
        for (const Body &member : members)
            EXPECT_EQ(spawn(&scope, member), thrum_scope_cancelled(&scope) ? ECANCELED : 0);
        EXPECT_EQ(spawn(&scope, locks, &cancels_locks), thrum_scope_cancelled(&scope) ? ECANCELED : 0);
        EXPECT_EQ(thrum_scope_end(&scope), ETIMEDOUT);
        EXPECT_GE(thrum_now(), deadline);
        EXPECT_EQ(ended, begun);
        EXPECT_EQ(thrum_mutex_unlock(&mutex), 0);
    });
}

TEST_P(Scope, ADeadlineThatHasPassedStartsNothing) {
    everywhere([] {
        thrum_scope_t scope;
        ASSERT_EQ(thrum_scope_begin(&scope, thrum_now()), 0);
        EXPECT_TRUE(thrum_scope_cancelled(&scope));
        const Body member = [] {
            ADD_FAILURE();
            return 0;
        };
        EXPECT_EQ(spawn(&scope, member), ECANCELED);
        EXPECT_EQ(thrum_scope_end(&scope), ETIMEDOUT);
    });
}

TEST_P(Scope, IsCancelledByItsOwnerByAMemberAndFromOutside) {
    everywhere([] {
        std::atomic<int> begun{0}, ended{0};
        const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
        thrum_scope_t scope;
        const std::function<void()> cancels[] = {
            [&] { EXPECT_EQ(thrum_scope_cancel(&scope), 0); },
            [&] {
                const Body member = [&scope] {
                    EXPECT_EQ(thrum_scope_cancel(&scope), 0);
                    thrum_sleep(3600 * THRUM_S); // it is cancelled as well
                    ADD_FAILURE();
                    return 0;
                };
                EXPECT_EQ(spawn(&scope, member), 0);
                EXPECT_TRUE(eventually([&] { return thrum_scope_cancelled(&scope); }));
                EXPECT_TRUE(eventually([&] { return ended == 10; }));
            },
            [&] {
                External external([&] { EXPECT_EQ(thrum_scope_cancel(&scope), 0); });
                external.join();
            },
        };
        for (const auto &cancel : cancels) {
            begun = ended = 0;
            ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0);
            for (int i = 0; i < 10; i++)
                EXPECT_EQ(spawn(&scope, waiter), 0);
            EXPECT_TRUE(eventually([&] { return begun == 10; }));
            cancel();
            EXPECT_TRUE(thrum_scope_cancelled(&scope));
            EXPECT_EQ(spawn(&scope, waiter), ECANCELED);
            EXPECT_EQ(thrum_scope_end(&scope), ECANCELED);
            EXPECT_EQ(ended, 10);
        }
    });
}

// A member that had not begun begins, and ends at its first wait: what it was given is not lost.
TEST_P(Scope, MembersThatComeLateStillBegin) {
    std::atomic<int> begun{0}, ended{0};
    const Body waiter = waits_in(begun, ended, [] { thrum_sleep(3600 * THRUM_S); });
    const thrum_attr_t queued = attr_queued();
    thrum_scope_t scope;
    ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0);
    for (int i = 0; i < 100; i++)
        ASSERT_EQ(spawn(&scope, waiter, &queued), 0);
    EXPECT_EQ(thrum_scope_cancel(&scope), 0);
    EXPECT_EQ(thrum_scope_end(&scope), ECANCELED);
    EXPECT_EQ(begun, 100);
    EXPECT_EQ(ended, 100);
}

// --- scopes inside scopes ---------------------------------------------------------------------------------

TEST_P(Scope, HasTheEarliestDeadlineAroundIt) {
    everywhere([] {
        EXPECT_EQ(thrum_scope_deadline(), kNever);
        const std::uint64_t early = in_an_hour(), late = early + THRUM_S;
        thrum_scope_t outer, inner, innermost;
        ASSERT_EQ(thrum_scope_begin(&outer, late), 0);
        EXPECT_EQ(thrum_scope_deadline(), late);
        ASSERT_EQ(thrum_scope_begin(&inner, early), 0);
        EXPECT_EQ(thrum_scope_deadline(), early);
        ASSERT_EQ(thrum_scope_begin(&innermost, kNever), 0);
        EXPECT_EQ(thrum_scope_deadline(), early);
        const Body member = [early] {
            EXPECT_EQ(thrum_scope_deadline(), early);
            thrum_scope_t own;
            EXPECT_EQ(thrum_scope_begin(&own, early - 1), 0);
            EXPECT_EQ(thrum_scope_deadline(), early - 1);
            return thrum_scope_end(&own);
        };
        EXPECT_EQ(spawn(&innermost, member), 0);
        EXPECT_EQ(thrum_scope_end(&innermost), 0);
        EXPECT_EQ(thrum_scope_end(&inner), 0);
        EXPECT_EQ(thrum_scope_deadline(), late);
        EXPECT_EQ(thrum_scope_end(&outer), 0);
        EXPECT_EQ(thrum_scope_deadline(), kNever);
    });
}

// The members of a scope inside, also where that has the same owner, which computes meanwhile.
TEST_P(Scope, IsCancelledWithTheOneAroundIt) {
    everywhere([] {
        std::atomic<int> begun{0}, ended{0};
        const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
        const Body nests = [&] {
            thrum_scope_t own;
            EXPECT_EQ(thrum_scope_begin(&own, kNever), 0);
            for (int i = 0; i < 3; i++)
                spawn(&own, waiter);
            thrum_scope_end(&own);
            ADD_FAILURE() << "a member that was cancelled came back";
            return 0;
        };
        const Body computes = [&] {
            thrum_scope_t own;
            EXPECT_EQ(thrum_scope_begin(&own, kNever), 0);
            for (int i = 0; i < 3; i++)
                spawn(&own, waiter);
            EXPECT_TRUE(eventually([&] { return thrum_scope_cancelled(&own); })); // without a wait of its own
            thrum_set_cancel(0);
            EXPECT_EQ(thrum_scope_end(&own), ECANCELED);
            return 0;
        };
        thrum_scope_t outer, inner;
        ASSERT_EQ(thrum_scope_begin(&outer, kNever), 0);
        EXPECT_EQ(spawn(&outer, nests), 0);
        EXPECT_EQ(spawn(&outer, computes), 0);
        ASSERT_EQ(thrum_scope_begin(&inner, kNever), 0);
        for (int i = 0; i < 3; i++)
            EXPECT_EQ(spawn(&inner, waiter), 0);
        EXPECT_TRUE(eventually([&] { return begun == 9; }));
        EXPECT_EQ(thrum_scope_cancel(&outer), 0);
        EXPECT_TRUE(thrum_scope_cancelled(&inner));
        EXPECT_EQ(thrum_scope_end(&inner), ECANCELED);
        thrum_scope_t late; // one that begins then is cancelled from the start
        ASSERT_EQ(thrum_scope_begin(&late, kNever), 0);
        EXPECT_EQ(spawn(&late, waiter), ECANCELED);
        EXPECT_EQ(thrum_scope_end(&late), ECANCELED);
        EXPECT_EQ(thrum_scope_end(&outer), ECANCELED);
        EXPECT_EQ(ended, 9);
    });
}

// As it is where members are left.
TEST_P(Scope, EndIsACancellationPointWithoutMembers) {
    everywhere([] {
        std::atomic<int> ended{0};
        const Body nests = [&] {
            const Unwinds unwinds{ended};
            thrum_scope_t own;
            EXPECT_EQ(thrum_scope_begin(&own, kNever), 0);
            const int cancels = thrum_set_cancel(0); // no earlier wait is one
            EXPECT_TRUE(eventually([&] { return thrum_scope_cancelled(&own); }));
            thrum_set_cancel(cancels);
            thrum_scope_end(&own);
            ADD_FAILURE() << "a member that was cancelled came back";
            return 0;
        };
        thrum_scope_t outer;
        ASSERT_EQ(thrum_scope_begin(&outer, kNever), 0);
        EXPECT_EQ(spawn(&outer, nests), 0);
        EXPECT_EQ(thrum_scope_cancel(&outer), 0);
        EXPECT_EQ(thrum_scope_end(&outer), ECANCELED);
        EXPECT_EQ(ended, 1);
    });
}

TEST_P(Scope, OneInsideTimesOutWithTheOneAroundIt) {
    everywhere([] {
        std::atomic<int> begun{0}, ended{0};
        const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
        thrum_scope_t outer, inner;
        ASSERT_EQ(thrum_scope_begin(&outer, thrum_now() + 5 * THRUM_MS), 0);
        ASSERT_EQ(thrum_scope_begin(&inner, kNever), 0);
        spawn(&inner, waiter);
        EXPECT_EQ(thrum_scope_end(&inner), ETIMEDOUT);
        EXPECT_EQ(thrum_scope_end(&outer), ETIMEDOUT);
        EXPECT_EQ(ended, begun);
    });
}

TEST_P(Scope, AnErrorInsideIsNoneOutside) {
    everywhere([] {
        const Body fails = [] { return 5; };
        thrum_scope_t outer, inner;
        ASSERT_EQ(thrum_scope_begin(&outer, kNever), 0);
        ASSERT_EQ(thrum_scope_begin(&inner, kNever), 0);
        EXPECT_EQ(spawn(&inner, fails), 0);
        EXPECT_EQ(thrum_scope_end(&inner), 5);
        EXPECT_FALSE(thrum_scope_cancelled(&outer));
        EXPECT_EQ(thrum_scope_end(&outer), 0);
    });
}

// --- an owner that ends -----------------------------------------------------------------------------------

TEST_P(Scope, EndsWithItsOwner) {
    enum Way { kCancelledInEnd, kCancelledBefore, kExits };
    for (const Way way : {kCancelledInEnd, kCancelledBefore, kExits}) {
        std::atomic<int> begun{0}, ended{0}, ended_before{-1};
        const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
        struct Frame { // further out than the scope
            std::atomic<int> &ended, &before;
            ~Frame() { before = ended.load(); }
        };
        const auto own = [&] {
            thrum_scope_t scope;
            EXPECT_EQ(thrum_scope_begin(&scope, in_an_hour()), 0);
            for (int i = 0; i < 5; i++)
                EXPECT_EQ(spawn(&scope, waiter), 0);
            if (way == kExits)
                thrum_exit(nullptr);
            if (way == kCancelledBefore)
                thrum_suspend();
            thrum_scope_end(&scope);
            ADD_FAILURE() << "came back";
        };
        struct Owner {
            std::function<void()> run;
            static void *main(void *owner) {
                static_cast<Owner *>(owner)->run();
                return nullptr;
            }
        } owner{[&] {
            const Frame frame{ended, ended_before};
            own();
        }};
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE);
        thrum_t thread = nullptr;
        ASSERT_EQ(thrum_spawn(&thread, &attr, Owner::main, &owner), 0);
        if (way != kExits) {
            EXPECT_TRUE(eventually([&] { return begun == 5; }));
            thrum_sleep(THRUM_MS);
            EXPECT_EQ(thrum_cancel(thread), 0);
        }
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
        EXPECT_EQ(ended_before, begun);
        EXPECT_EQ(ended, begun);
    }
}

TEST_P(Scope, MembersMayExit) {
    std::atomic<int> ended{0};
    thrum_scope_t scope;
    ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0);
    const Body exits = [&ended]() -> int {
        const Unwinds unwinds{ended};
        thrum_exit(nullptr);
    };
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(spawn(&scope, exits), 0);
    EXPECT_EQ(thrum_scope_end(&scope), 0);
    EXPECT_EQ(ended, 5);
}

// --- misuse, and the end of the runtime -------------------------------------------------------------------

TEST_P(Scope, TakesAttributesButNoTasklets) {
    thrum_scope_t scope;
    ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0);
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET);
    const Body nothing = [] { return 0; };
    EXPECT_EQ(spawn(&scope, nothing, &attr), EINVAL);
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_worker(&attr, workers() - 1), 0);
    const Body where = [] { return thrum_worker_self() == static_cast<int>(workers()) - 1 ? 0 : 1; };
    EXPECT_EQ(spawn(&scope, where, &attr), 0);
    EXPECT_EQ(thrum_scope_spawn(&scope, nullptr, nullptr, nullptr), EINVAL);
    EXPECT_EQ(thrum_scope_end(&scope), 0);
    int error = 0;
    thrum_attr_init(&attr);
    thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET);
    thrum_t tasklet = nullptr;
    ASSERT_EQ(thrum_spawn(
                  &tasklet, &attr,
                  [](void *result) -> void * {
                      thrum_scope_t own;
                      *static_cast<int *>(result) = thrum_scope_begin(&own, UINT64_MAX);
                      return nullptr;
                  },
                  &error),
              0);
    EXPECT_EQ(thrum_join(tasklet, nullptr), 0);
    EXPECT_EQ(error, EPERM);
}

TEST_P(Scope, MembersThatTheRuntimeHasDroppedAreSaid) {
    std::atomic<int> begun{0};
    const Body waits = [&begun] {
        begun++;
        thrum_suspend();
        return 0;
    };
    int result = -1, inner_result = -1;
    External external([&] {
        thrum_scope_t scope, inner;
        ASSERT_EQ(thrum_scope_begin(&scope, in_an_hour()), 0);
        ASSERT_EQ(thrum_scope_begin(&inner, in_an_hour() + THRUM_S), 0);
        EXPECT_EQ(spawn(&scope, waits), 0);
        EXPECT_TRUE(eventually([&] { return begun == 1; }));
        begun = 2;
        while (thrum_workers() != 0)
            std::this_thread::yield();
        inner_result = thrum_scope_end(&inner);
        result = thrum_scope_end(&scope);
        begun = 3;
    });
    EXPECT_TRUE(eventually([&] { return begun == 2; }));
    ASSERT_EQ(thrum_fini(), 0);
    while (begun != 3)
        std::this_thread::yield();
    const thrum_config config{workers(), 0, {}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    external.join();
    EXPECT_EQ(inner_result, 0);
    EXPECT_EQ(result, ESRCH);
}

TEST_P(Scope, InAChildOfFork) {
    std::atomic<int> begun{0}, ended{0};
    const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
    thrum_scope_t scope;
    ASSERT_EQ(thrum_scope_begin(&scope, in_an_hour()), 0);
    EXPECT_EQ(spawn(&scope, waiter), 0);
    EXPECT_TRUE(eventually([&] { return begun == 1; }));
    const int status = in_child([&] {
        if (thrum_scope_end(&scope) != ESRCH)
            return 1;
        const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        if (thrum_init(&config) != 0)
            return 2;
        thrum_scope_t own;
        const Body nothing = [] { return 0; };
        if (thrum_scope_begin(&own, in_an_hour()) != 0 || spawn(&own, nothing) != 0 ||
            thrum_scope_end(&own) != 0)
            return 3;
        return thrum_fini() == 0 ? 0 : 4;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(thrum_scope_cancel(&scope), 0);
    EXPECT_EQ(thrum_scope_end(&scope), ECANCELED);
    EXPECT_EQ(ended, 1);
}

// --- many -------------------------------------------------------------------------------------------------

// Deadlines, errors and ends at about the same moment, in scopes inside scopes: all members end, once, before their scopes do.
TEST_P(Scope, Stress) {
    constexpr int kRounds = 300 / kStressDivisor + 1;
    const auto owner = [](unsigned seed) {
        std::mt19937 random{seed};
        for (int round = 0; round < kRounds; round++) {
            std::atomic<int> begun{0}, ended{0};
            const int fails_at = static_cast<int>(random() % 20);
            std::atomic<int> next{0};
            const Body leaf = [&] {
                const Unwinds unwinds{ended};
                begun++;
                const int mine = next++;
                thrum_sleep(static_cast<std::uint64_t>(mine % 7) * 20 * THRUM_US);
                return mine == fails_at ? 3 : 0;
            };
            const Body nests = [&] {
                thrum_scope_t inner;
                EXPECT_EQ(thrum_scope_begin(&inner, thrum_now() + 100 * THRUM_US), 0);
                for (int i = 0; i < 4; i++)
                    spawn(&inner, leaf);
                const int result = thrum_scope_end(&inner);
                EXPECT_TRUE(result == 0 || result == 3 || result == ETIMEDOUT || result == ECANCELED)
                    << result;
                return 0;
            };
            thrum_scope_t scope;
            ASSERT_EQ(thrum_scope_begin(&scope, thrum_now() + random() % 300 * THRUM_US), 0);
            for (int i = 0; i < 6; i++)
                spawn(&scope, i % 2 == 0 ? leaf : nests);
            if (random() % 4 == 0)
                thrum_scope_cancel(&scope);
            const int result = thrum_scope_end(&scope);
            EXPECT_TRUE(result == 0 || result == 3 || result == ETIMEDOUT || result == ECANCELED) << result;
            EXPECT_EQ(begun, ended);
        }
    };
    External external([&] { owner(1); });
    std::vector<Light> owners;
    for (unsigned i = 2; i < 6; i++)
        owners.emplace_back([&owner, i] { owner(i); });
    owner(6);
    owners.clear();
    external.join();
}

TEST_P(Scope, ManyMembers) {
    constexpr int kMembers = 4000 / kStressDivisor;
    std::atomic<int> begun{0}, ended{0};
    const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
    thrum_scope_t scope;
    ASSERT_EQ(thrum_scope_begin(&scope, kNever), 0);
    for (int i = 0; i < kMembers; i++)
        ASSERT_EQ(spawn(&scope, waiter), 0);
    EXPECT_TRUE(eventually([&] { return begun == kMembers; }));
    EXPECT_EQ(thrum_scope_cancel(&scope), 0);
    EXPECT_EQ(thrum_scope_end(&scope), ECANCELED);
    EXPECT_EQ(ended, kMembers);
}

ULT_OVER_WORKERS(Scope);

class ScopePlain : public UltPlain {};

TEST_F(ScopePlain, OneMayEndOnlyTheInnermost) {
    thrum_scope_t outer, inner;
    ASSERT_EQ(thrum_scope_begin(&outer, kNever), 0);
    ASSERT_EQ(thrum_scope_begin(&inner, kNever), 0);
    int status = 0; // builds with assertions end the process
    stderr_of([&] { status = in_child([&] { return thrum_scope_end(&outer); }); });
    EXPECT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == EINVAL)) << status;
    EXPECT_EQ(thrum_scope_end(&inner), 0);
    EXPECT_EQ(thrum_scope_end(&outer), 0);
}

// Without memory: EAGAIN; the scope is as before, and ends.
TEST_F(ScopePlain, WithoutMemory) {
    const int status = in_child([] {
        const thrum_config config{1, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
        if (thrum_init(&config) != 0)
            return 1;
        thrum_scope_t scope;
        std::atomic<int> begun{0}, ended{0};
        const Body waiter = waits_in(begun, ended, [] { thrum_suspend(); });
        EXPECT_EQ(thrum_scope_begin(&scope, kNever), 0);
        faults.mmap.after(0, INT_MAX, ENOMEM);
        int error = 0, spawned = 0;
        while (spawned < 100000 && (error = spawn(&scope, waiter)) == 0)
            spawned++;
        EXPECT_EQ(error, EAGAIN);
        EXPECT_EQ(spawn(&scope, waiter), EAGAIN);
        EXPECT_FALSE(thrum_scope_cancelled(&scope));
        thrum_call_t call;
        while (thrum_call_at(
                   &call, UINT64_MAX, [](void *) {}, nullptr) == 0) { // until none is left
        }
        thrum_scope_t timed;
        EXPECT_EQ(thrum_scope_begin(&timed, in_an_hour()), EAGAIN);
        faults_clear();
        EXPECT_EQ(spawn(&scope, waiter), 0);
        EXPECT_EQ(thrum_scope_cancel(&scope), 0);
        EXPECT_EQ(thrum_scope_end(&scope), ECANCELED);
        EXPECT_EQ(begun, ended);
        return thrum_fini() == 0 && !testing::Test::HasFailure() ? 0 : 1;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

} // namespace
