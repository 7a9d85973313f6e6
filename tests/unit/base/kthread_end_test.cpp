// SPDX-License-Identifier: Apache-2.0
//
// The kthread layer: how a job may end, and what makes its kernel thread end with it.
#include "layer.hpp"

namespace {

void *number(uintptr_t value) {
    return reinterpret_cast<void *>(value);
}

// As the front end does.
void cancel_oneself() {
    store_relaxed(&kthread_self_sigsafe()->cancelled, 1);
    libc.pthread_cancel(pthread_self());
}

// As the front end does.
void make_key(pthread_key_t *key, void (*destructor)(void *)) {
    ASSERT_EQ(pthread_key_create(key, destructor), 0);
    keys_created(*key, destructor);
}

struct Counts {
    int *count;
    ~Counts() { ++*count; }
};

// Starts the job, joins it and expects that its kernel thread is kept, or retired for this reason.
class KthreadEnd : public Layer {
  protected:
    void expect_kept(Job job, void *result) {
        const uint64_t retired = thrum_cache_counters.retired;
        EXPECT_EQ(join(start(std::move(job))), result);
        EXPECT_EQ(thrum_cache_counters.retired, retired);
        EXPECT_EQ(thrum_cache_counters.idle, 1u);
        EXPECT_EQ(thrum_cache_counters.live, 0u);
    }
    void expect_retired(enum kthread_retire why, Job job, void *result) {
        const uint64_t reason = counted(why), all = thrum_cache_counters.retired;
        kthread_cull();
        EXPECT_EQ(join(start(job)), result);
        EXPECT_EQ(known_descriptors(), 0u) << "the joiner has freed it";
        start(job, true);
        EXPECT_TRUE(eventually([&] { return counted(why) == reason + 2; })) << "joinable and detached";
        EXPECT_TRUE(eventually([] { return known_descriptors() == 0; }));
        EXPECT_EQ(thrum_cache_counters.retired, all + 2);
        EXPECT_EQ(thrum_cache_counters.idle, 0u);
        EXPECT_EQ(thrum_cache_counters.live, 0u);
        const uint64_t created = thrum_cache_counters.created;
        run();
        EXPECT_EQ(thrum_cache_counters.created, created + 1) << "nothing was there to reuse";
    }
};

TEST_F(KthreadEnd, ExitUnwindsToTheLanding) {
    int destroyed = 0;
    expect_kept(
        [&]() -> void * {
            Counts outer{&destroyed};
            [&] {
                Counts inner{&destroyed};
                kthread_exit(number(5));
            }();
            ADD_FAILURE() << "came back";
            return nullptr;
        },
        number(5));
    EXPECT_EQ(destroyed, 2);
    EXPECT_EQ(faults.unwind_next, 1);
}

TEST_F(KthreadEnd, ExitFromADestructorOfAKeyLandsAgain) {
    static pthread_key_t first, second;
    static int ran;
    ran = 0;
    make_key(&first, [](void *) { kthread_exit(number(6)); });
    make_key(&second, [](void *) { ran++; });
    expect_kept(
        []() -> void * {
            pthread_setspecific(first, number(1));
            pthread_setspecific(second, number(1));
            return number(4);
        },
        number(6));
    EXPECT_EQ(ran, 1) << "the rest goes on";
    for (pthread_key_t key : {first, second}) {
        keys_deleted(key);
        pthread_key_delete(key);
    }
}

TEST_F(KthreadEnd, KeysAreDestroyedAndNullForTheNext) {
    static std::atomic<int> destroyed;
    static pthread_key_t key, plain;
    destroyed = 0;
    make_key(&key, [](void *value) { destroyed += value == number(9); });
    make_key(&plain, nullptr);
    const pid_t tid = run([]() -> void * {
        pthread_setspecific(key, number(9));
        pthread_setspecific(plain, number(9));
        return nullptr;
    });
    EXPECT_EQ(destroyed, 1);
    EXPECT_EQ(run([]() -> void * {
                  EXPECT_EQ(pthread_getspecific(key), nullptr);
                  EXPECT_EQ(pthread_getspecific(plain), nullptr);
                  return nullptr;
              }),
              tid);
    EXPECT_EQ(destroyed, 1);
    for (pthread_key_t one : {key, plain}) {
        keys_deleted(one);
        pthread_key_delete(one);
    }
}

struct Local {
    static inline std::atomic<int> destroyed{0};
    int value = 1;
    ~Local() {
        if (value == 2)
            destroyed++;
    }
};

thread_local Local local;

TEST_F(KthreadEnd, ThreadLocalDestructorsRunAtEachEnd) {
    Local::destroyed = 0;
    const pid_t tid = run([]() -> void * {
        local.value = 2;
        return nullptr;
    });
    EXPECT_EQ(Local::destroyed, 1) << "before the join is over";
    EXPECT_EQ(run(), tid);
    EXPECT_EQ(Local::destroyed, 1);
}

// As in libc: pthread_exit disables cancellation.
TEST_F(KthreadEnd, ExitIsNotInterruptedByCancellation) {
    expect_retired(
        RETIRE_CANCELLED,
        []() -> void * {
            struct Cleanup {
                ~Cleanup() {
                    cancel_oneself();
                    pthread_testcancel();
                }
            } cleanup;
            kthread_exit(number(2));
        },
        number(2));
}

TEST_F(KthreadEnd, CancellationStateIsTheDefaultForTheNext) {
    const pid_t tid = run([]() -> void * {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
        return nullptr;
    });
    EXPECT_EQ(run([]() -> void * {
                  int state = -1, type = -1;
                  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
                  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
                  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
                  EXPECT_EQ(type, PTHREAD_CANCEL_DEFERRED);
                  return nullptr;
              }),
              tid);
}

TEST_F(KthreadEnd, CancelledRetires) {
    static std::atomic<int> destroyed;
    destroyed = 0;
    expect_retired(
        RETIRE_CANCELLED,
        []() -> void * {
            struct Note {
                ~Note() { destroyed++; }
            } note;
            cancel_oneself();
            pthread_testcancel();
            ADD_FAILURE() << "came back";
            return nullptr;
        },
        PTHREAD_CANCELED);
    EXPECT_EQ(destroyed, 2);
}

TEST_F(KthreadEnd, CancelledButEndedFirstRetiresWithItsResult) {
    expect_retired(
        RETIRE_CANCELLED,
        []() -> void * {
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
            cancel_oneself();
            return number(3);
        },
        number(3));
}

TEST_F(KthreadEnd, CancelledFromOutside) {
    Started started = start([]() -> void * {
        for (;;) {
            pthread_testcancel(); // no other: a sanitizer's own version of it would not be unwound well
            sched_yield();
        }
    });
    gate_visit visit;
    ASSERT_TRUE(kthread_visit(started.thread, &visit));
    store_relaxed(&started.thread->cancelled, 1);
    libc.pthread_cancel(started.handle);
    gate_visit_end(&visit);
    EXPECT_EQ(join(started), PTHREAD_CANCELED);
    EXPECT_EQ(known_descriptors(), 0u);
}

TEST_F(KthreadEnd, TiedRetires) {
    expect_retired(
        RETIRE_CHILD,
        []() -> void * {
            kthread_tie_sigsafe(RETIRE_CHILD);
            return number(1);
        },
        number(1));
    expect_retired(
        RETIRE_TIES,
        []() -> void * {
            kthread_tie_tid(0);
            return number(1);
        },
        number(1));
    expect_retired(
        RETIRE_TIES,
        []() -> void * {
            kthread_tie_tid(own_tid());
            return number(1);
        },
        number(1));
    expect_retired(
        RETIRE_TIES,
        []() -> void * {
            pid_t tid = own_tid();
            Plain([&] { kthread_tie_tid(tid); }).join();
            return number(1);
        },
        number(1));
}

TEST_F(KthreadEnd, TyingOthersDoesNothingHere) {
    const pid_t main = getpid();
    expect_kept(
        [&]() -> void * {
            kthread_tie_tid(main);
            return number(1);
        },
        number(1));
    kthread_tie_sigsafe(RETIRE_TIES); // the caller is not ours
    kthread_tie_tid(main);
    run();
    EXPECT_EQ(thrum_cache_counters.idle, 1u);
}

TEST_F(KthreadEnd, RobustMutexHeldRetiresAndTheNextOwnerIsTold) {
    static pthread_mutex_t mutexes[2];
    static std::atomic<int> next;
    next = 0;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    for (pthread_mutex_t &mutex : mutexes)
        pthread_mutex_init(&mutex, &attributes);
    expect_retired(
        RETIRE_ROBUST,
        []() -> void * {
            pthread_mutex_lock(&mutexes[next++]);
            return number(1);
        },
        number(1));
    for (pthread_mutex_t &mutex : mutexes) {
        EXPECT_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
        pthread_mutex_consistent(&mutex);
        pthread_mutex_unlock(&mutex);
        pthread_mutex_destroy(&mutex);
    }
    pthread_mutexattr_destroy(&attributes);
}

TEST_F(KthreadEnd, RobustMutexGivenBackIsNoReason) {
    static pthread_mutex_t mutex;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    expect_kept(
        []() -> void * {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
            return number(1);
        },
        number(1));
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attributes);
}

TEST_F(KthreadEnd, PendingSignalRetires) {
    expect_retired(
        RETIRE_PENDING,
        []() -> void * {
            signals_mask_set(signals_mask_get() | UINT64_C(1) << (SIGUSR1 - 1));
            syscall(SYS_tgkill, getpid(), own_tid(), SIGUSR1);
            // It goes with the thread, or its mask would let it in at the real end.
            signal(SIGUSR1, SIG_DFL);
            return number(1);
        },
        number(1));
}

TEST_F(KthreadEnd, ChangedLineageRetires) {
    expect_retired(
        RETIRE_LINEAGE,
        []() -> void * {
            kthread_change_lineage();
            return number(1);
        },
        number(1));
}

TEST_F(KthreadEnd, LineageIsHandedToOnesOwnThreads) {
    pid_t first = 0, second = 0;
    expect_retired(
        RETIRE_LINEAGE,
        [&]() -> void * {
            uint64_t mine = 99, changed = 0;
            EXPECT_TRUE(kthread_lineage(&mine));
            EXPECT_EQ(mine, 0u);
            kthread_change_lineage();
            EXPECT_TRUE(kthread_lineage(&changed));
            EXPECT_NE(changed, mine);
            const kthread_kind kind{kStackSize, kGuardSize, changed, {}};
            join(start_of(kind, [&]() -> void * {
                first = own_tid();
                uint64_t inherited = 0;
                EXPECT_TRUE(kthread_lineage(&inherited));
                EXPECT_EQ(inherited, changed);
                return nullptr;
            }));
            join(start_of(kind, [&]() -> void * {
                second = own_tid();
                return nullptr;
            }));
            EXPECT_EQ(first, second);
            kthread_cull();
            return number(1);
        },
        number(1));
}

TEST_F(KthreadEnd, LineageOfThreadsThatAreNotOurs) {
    lineage_new(0); // so that something was ever changed
    uint64_t lineage = 99;
    EXPECT_TRUE(kthread_lineage(&lineage)) << "the main thread's is known";
    EXPECT_EQ(lineage, 0u);
    Plain([] {
        uint64_t own = 99;
        EXPECT_FALSE(kthread_lineage(&own)) << "nobody has told it";
        kthread_adopt_lineage(12);
        EXPECT_TRUE(kthread_lineage(&own));
        EXPECT_EQ(own, 12u);
        kthread_change_lineage();
        EXPECT_TRUE(kthread_lineage(&own));
        EXPECT_NE(own, 12u);
    }).join();
    Started other = start([]() -> void * {
        eventually([] {
            uint64_t own = 0;
            return kthread_lineage(&own) && own != 0;
        });
        return nullptr;
    });
    const uint64_t before = counted(RETIRE_LINEAGE);
    kthread_change_lineage_of(other.thread);
    join(other);
    EXPECT_EQ(counted(RETIRE_LINEAGE), before + 1);
}

TEST_F(KthreadEnd, LimitsRetire) {
    auto nothing = [] { return number(1); };
    kthread_config.max_idle = 0;
    expect_retired(RETIRE_LIMIT, nothing, number(1));
    kthread_config.max_idle = UINT64_MAX;
    kthread_config.memory_limited = true;
    expect_retired(RETIRE_MEMORY, nothing, number(1));
}

TEST_F(KthreadEnd, AsManyIdleAsTheLimitAllows) {
    kthread_config.max_idle = 2;
    const uint64_t before = counted(RETIRE_LIMIT);
    make_idle(5);
    EXPECT_EQ(thrum_cache_counters.idle, 2u);
    EXPECT_EQ(counted(RETIRE_LIMIT), before + 3);
    EXPECT_EQ(known_descriptors(), 2u);
}

TEST_F(KthreadEnd, VisitsReachARunningThreadOnly) {
    std::atomic<bool> go{false};
    std::atomic<pid_t> tid{0};
    Started started = start([&]() -> void * {
        tid = own_tid();
        eventually([&] { return go.load(); });
        return number(1);
    });
    EXPECT_TRUE(eventually([&] { return tid != 0; }));
    gate_visit visit;
    kthread *found = nullptr;
    EXPECT_TRUE(kthread_visit(started.thread, &visit));
    go = true;
    a_while();
    EXPECT_LT(load_relaxed(&started.thread->life), static_cast<uint32_t>(LIFE_ENDED))
        << "a visitor holds it up";
    gate_visit_end(&visit);
    EXPECT_TRUE(eventually([&] { return load_relaxed(&started.thread->life) == LIFE_ENDED; }));
    EXPECT_FALSE(kthread_visit(started.thread, &visit));
    EXPECT_EQ(kthread_visit_tid(tid, &visit, &found), KTHREAD_TID_ENDED);
    EXPECT_EQ(found, started.thread);
    join(started);
    EXPECT_FALSE(kthread_visit(started.thread, &visit)) << "idle";
    EXPECT_EQ(kthread_visit_tid(tid, &visit, &found), KTHREAD_TID_ENDED);
    EXPECT_EQ(kthread_visit_tid(getpid(), &visit, &found), KTHREAD_TID_FOREIGN);
    const sigbits before = signals_mask_get();
    go = false;
    Started again = start([&]() -> void * {
        eventually([&] { return go.load(); });
        return nullptr;
    });
    EXPECT_TRUE(eventually([&] { return load_relaxed(&again.thread->gate) == GATE_OPEN; }))
        << "until then: ended";
    EXPECT_EQ(kthread_visit_tid(tid, &visit, &found), KTHREAD_TID_VISITED);
    EXPECT_EQ(found, again.thread);
    gate_visit_end(&visit);
    EXPECT_EQ(signals_mask_get(), before);
    go = true;
    join(again);
}

TEST_F(KthreadEnd, RawExitGivesNoResult) {
    const uint64_t before = counted(RETIRE_TIES);
    EXPECT_EQ(join(start([]() -> void * {
                  kthread_exits_raw();
                  for (;;)
                      syscall(SYS_exit, 0);
              })),
              nullptr);
    EXPECT_EQ(counted(RETIRE_TIES), before + 1);
    EXPECT_EQ(known_descriptors(), 0u);
}

} // namespace
