// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: pthread mutexes of all kinds, rwlocks, spinlocks and libthrum's own mutexes, whose holders are
// preempted. The owner of a pthread mutex is a kernel thread: another must not be taken for it, nor it for another.
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <deque>

#include "preempt_stress.h"

namespace {

constexpr unsigned kActorsALock = 4; // more, and there is nothing but waiting

bool has_priority_inheritance() { // by gettid: only for threads that keep their kernel thread
    return options.mode == Mode::kPthread || options.mode == Mode::kKlt;
}

// In some slices, by the clock that can be set. Reading it is no part of locking.
timespec soon(Actor &actor) {
    const In none(actor, kElsewhere);
    timespec moment;
    CHECK_EQ(clock_gettime(CLOCK_REALTIME, &moment), 0);
    const std::uint64_t ns =
        static_cast<std::uint64_t>(moment.tv_nsec) + actor.random.below(4) * options.slice_ns();
    moment.tv_sec += static_cast<time_t>(ns / THRUM_S);
    moment.tv_nsec = static_cast<long>(ns % THRUM_S);
    return moment;
}

// Two variables: a thread that sees them differ is not alone.
struct Guarded {
    long first = 0, second = 0;
    const Actor *owner = nullptr;

    void touch() { CHECK(owner == nullptr && first++ == second++); }

    void change(Actor &actor) {
        CHECK(owner == nullptr && first == second);
        owner = &actor;
        first++;
        hold(actor);
        CHECK(owner == &actor && first == second + 1);
        second++;
        owner = nullptr;
    }
};

class PthreadMutex {
  public:
    PthreadMutex(int type, bool robust, bool inherits) : type_(type) {
        pthread_mutexattr_t attr;
        CHECK_EQ(pthread_mutexattr_init(&attr), 0);
        CHECK_EQ(pthread_mutexattr_settype(&attr, type), 0);
        if (robust)
            CHECK_EQ(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
        if (inherits)
            CHECK_EQ(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT), 0);
        CHECK_EQ(pthread_mutex_init(&mutex_, &attr), 0);
        pthread_mutexattr_destroy(&attr);
    }
    ~PthreadMutex() {
        CHECK(guarded_.owner == nullptr && guarded_.first == guarded_.second);
        CHECK_EQ(pthread_mutex_destroy(&mutex_), 0);
    }
    PthreadMutex(const PthreadMutex &) = delete;

    void use(Actor &actor) {
        const In in_mutex(actor, kMutex);
        for (unsigned i = actor.random.below(64); i > 0; i--) { // for ticks to come
            CHECK_EQ(pthread_mutex_lock(&mutex_), 0);
            guarded_.touch();
            CHECK_EQ(pthread_mutex_unlock(&mutex_), 0);
        }
        if (!lock(actor))
            return;
        if (type_ == PTHREAD_MUTEX_ERRORCHECK)
            CHECK_EQ(pthread_mutex_lock(&mutex_), EDEADLK);
        if (type_ == PTHREAD_MUTEX_RECURSIVE) {
            CHECK_EQ(pthread_mutex_lock(&mutex_), 0);
            CHECK_EQ(pthread_mutex_trylock(&mutex_), 0);
        }
        guarded_.change(actor);
        if (type_ == PTHREAD_MUTEX_RECURSIVE) {
            CHECK_EQ(pthread_mutex_unlock(&mutex_), 0);
            guarded_.change(actor);
            CHECK_EQ(pthread_mutex_unlock(&mutex_), 0);
        }
        CHECK_EQ(pthread_mutex_unlock(&mutex_), 0);
        if (type_ == PTHREAD_MUTEX_ERRORCHECK)
            CHECK_EQ(pthread_mutex_unlock(&mutex_), EPERM); // whichever thread owns it by now
    }

  private:
    bool lock(Actor &actor) {
        int error = 0;
        switch (actor.random.below(4)) {
        case 0: error = pthread_mutex_trylock(&mutex_); break;
        case 1: {
            const timespec moment = soon(actor);
            error = pthread_mutex_timedlock(&mutex_, &moment);
            break;
        }
        default: // in NONE a lock holder does not come to a safepoint
            error = pthread_mutex_lock(&mutex_);
            CHECK_EQ(error, 0);
        }
        CHECK(error == 0 || error == EBUSY || error == ETIMEDOUT);
        return error == 0;
    }

    int type_;
    pthread_mutex_t mutex_;
    Guarded guarded_;
};

struct Rwlock {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    std::atomic<int> readers{0};
    Guarded guarded;
};

struct Spinlock {
    pthread_spinlock_t lock;
    Guarded guarded;
    Spinlock() { CHECK_EQ(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE), 0); }
};

struct Own {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_rwlock_t rwlock = THRUM_RWLOCK_INITIALIZER;
    thrum_sem_t permit = THRUM_SEM_INITIALIZER(1);
    Guarded by_mutex, by_rwlock, by_permit;
};

struct Locks {
    PthreadMutex plain{PTHREAD_MUTEX_NORMAL, false, false}, adaptive{PTHREAD_MUTEX_ADAPTIVE_NP, false, false},
        recursive{PTHREAD_MUTEX_RECURSIVE, false, false}, checking{PTHREAD_MUTEX_ERRORCHECK, false, false},
        robust{PTHREAD_MUTEX_NORMAL, true, false}, robust_recursive{PTHREAD_MUTEX_RECURSIVE, true, false},
        inheriting{PTHREAD_MUTEX_NORMAL, false, true},
        inheriting_checking{PTHREAD_MUTEX_ERRORCHECK, true, true};
    Rwlock rwlock;
    Spinlock spinlock;
    Own own;
};

class Mutexes : public Torture {
  public:
    const char *name() const override { return "mutexes"; }

    void begin(unsigned actors) override {
        for (unsigned i = 0; i < actors / kActorsALock + 1; i++)
            locks_.emplace_back();
    }

    void end() override { locks_.clear(); }

    void step(Actor &actor) override {
        Locks &locks = locks_[actor.random.below(static_cast<unsigned>(locks_.size()))];
        switch (actor.random.below(has_priority_inheritance() ? 11 : 9)) {
        case 0: locks.plain.use(actor); break;
        case 1: locks.adaptive.use(actor); break;
        case 2: locks.recursive.use(actor); break;
        case 3: locks.checking.use(actor); break;
        case 4: locks.robust.use(actor); break;
        case 5: locks.robust_recursive.use(actor); break;
        case 6: use_rwlock(actor, locks.rwlock); break;
        case 7: use_spinlock(actor, locks.spinlock); break;
        case 8: use_own(actor, locks.own); break;
        case 9: locks.inheriting.use(actor); break;
        default: locks.inheriting_checking.use(actor); break;
        }
        safepoint();
    }

  private:
    static void lock_to_read(Rwlock &rwlock) {
        int error = 0;
        while ((error = pthread_rwlock_rdlock(&rwlock.lock)) == EAGAIN) // very many readers
            safepoint();
        CHECK_EQ(error, 0);
    }

    static void use_rwlock(Actor &actor, Rwlock &rwlock) {
        const In in_lock(actor, kLock);
        for (unsigned i = actor.random.below(256); i > 0; i--) { // for ticks to come
            lock_to_read(rwlock);
            CHECK_EQ(pthread_rwlock_unlock(&rwlock.lock), 0);
        }
        if (actor.random.one_in(3)) {
            CHECK_EQ(pthread_rwlock_wrlock(&rwlock.lock), 0);
            CHECK_EQ(rwlock.readers, 0);
            rwlock.guarded.change(actor);
        } else {
            lock_to_read(rwlock);
            rwlock.readers++;
            hold(actor);
            CHECK(rwlock.guarded.owner == nullptr);
            rwlock.readers--;
        }
        CHECK_EQ(pthread_rwlock_unlock(&rwlock.lock), 0);
    }

    static void use_spinlock(Actor &actor, Spinlock &spinlock) {
        const In in_lock(actor, kLock);
        for (unsigned i = actor.random.below(256); i > 0; i--) { // for ticks to come
            CHECK_EQ(pthread_spin_lock(&spinlock.lock), 0);
            spinlock.guarded.touch();
            CHECK_EQ(pthread_spin_unlock(&spinlock.lock), 0);
        }
        CHECK_EQ(pthread_spin_lock(&spinlock.lock), 0);
        spinlock.guarded.change(actor);
        CHECK_EQ(pthread_spin_unlock(&spinlock.lock), 0);
    }

    // Those that wait here let others run of their own accord.
    static void use_own(Actor &actor, Own &own) {
        switch (actor.random.below(4)) {
        case 0:
            if (thrum_mutex_lock_until(&own.mutex, thrum_now() + options.slice_ns()) != 0)
                break;
            own.by_mutex.change(actor);
            CHECK_EQ(thrum_mutex_unlock(&own.mutex), 0);
            break;
        case 1:
            thrum_mutex_lock(&own.mutex);
            own.by_mutex.change(actor);
            CHECK_EQ(thrum_mutex_unlock(&own.mutex), 0);
            break;
        case 2:
            thrum_rwlock_write_lock(&own.rwlock);
            own.by_rwlock.change(actor);
            CHECK_EQ(thrum_rwlock_unlock(&own.rwlock), 0);
            break;
        default:
            thrum_sem_wait(&own.permit);
            own.by_permit.change(actor);
            CHECK_EQ(thrum_sem_post(&own.permit), 0);
            break;
        }
    }

    std::deque<Locks> locks_;
};

} // namespace

void add_mutexes(Tortures &all) {
    all.push_back(std::make_unique<Mutexes>());
}
