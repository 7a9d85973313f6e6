// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: condition variables with timeouts, of pthreads and of libthrum, and pthread semaphores. A thread
// that waits in the kernel is interrupted by ticks there, may continue to wait on another kernel thread, and still
// misses no signal.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <deque>

#include "preempt_stress.h"

namespace {

constexpr unsigned kActorsAPlace = 4;

// Numbers go in and come out, as many as there is room for.
template <class Lock>
struct Store {
    static constexpr long kRoom = 3;
    Lock lock;
    long held = 0, in = 0, out = 0;
};

struct PthreadLock {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed;

    PthreadLock() {
        pthread_condattr_t attr;
        CHECK_EQ(pthread_condattr_init(&attr), 0);
        CHECK_EQ(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
        CHECK_EQ(pthread_cond_init(&changed, &attr), 0);
    }
    ~PthreadLock() { CHECK_EQ(pthread_cond_destroy(&changed), 0); }
    PthreadLock(const PthreadLock &) = delete;

    void take() { CHECK_EQ(pthread_mutex_lock(&mutex), 0); }
    void give() { CHECK_EQ(pthread_mutex_unlock(&mutex), 0); }
    int wait_until(std::uint64_t moment) {
        const timespec until = {static_cast<time_t>(moment / THRUM_S), static_cast<long>(moment % THRUM_S)};
        return pthread_cond_timedwait(&changed, &mutex, &until);
    }
    void tell(bool all) {
        CHECK_EQ(all ? pthread_cond_broadcast(&changed) : pthread_cond_signal(&changed), 0);
    }
};

struct OwnLock {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t changed = THRUM_COND_INITIALIZER;

    void take() { thrum_mutex_lock(&mutex); }
    void give() { CHECK_EQ(thrum_mutex_unlock(&mutex), 0); }
    int wait_until(std::uint64_t moment) { return thrum_cond_wait_until(&changed, &mutex, moment); }
    void tell(bool all) {
        if (all)
            thrum_cond_broadcast(&changed);
        else
            thrum_cond_signal(&changed);
    }
};

struct Place {
    Store<PthreadLock> pthread;
    Store<OwnLock> own;
    sem_t permits;
    std::atomic<int> taken{0};

    Place() { CHECK_EQ(sem_init(&permits, 0, 2), 0); }
    ~Place() {
        int value = 0;
        CHECK_EQ(sem_getvalue(&permits, &value), 0);
        CHECK_EQ(value, 2);
        CHECK_EQ(sem_destroy(&permits), 0);
    }
    Place(const Place &) = delete;
};

class Conds : public Torture {
  public:
    const char *name() const override { return "conds"; }

    void begin(unsigned actors) override {
        for (unsigned i = 0; i < actors / kActorsAPlace + 1; i++)
            places_.emplace_back();
    }

    void end() override {
        for (const Place &place : places_) {
            CHECK_EQ(place.pthread.in - place.pthread.out, place.pthread.held);
            CHECK_EQ(place.own.in - place.own.out, place.own.held);
        }
        places_.clear();
    }

    void step(Actor &actor) override {
        Place &place = places_[actor.random.below(static_cast<unsigned>(places_.size()))];
        const In in_cond(actor, kCond);
        switch (actor.random.below(5)) {
        case 0: exchange(actor, place.own); break;
        case 1: take_permit(actor, place); break;
        default: exchange(actor, place.pthread); break;
        }
        safepoint();
    }

  private:
    template <class Lock>
    static void exchange(Actor &actor, Store<Lock> &store) {
        const bool puts = actor.random.one_in(2);
        // In NONE no other thread of this worker runs meanwhile.
        const std::uint64_t until =
            thrum_now() + (options.may_block() ? actor.random.below(8) : 1) * options.slice_ns();
        store.lock.take();
        while (store.held == (puts ? Store<Lock>::kRoom : 0)) {
            const int error = store.lock.wait_until(until);
            CHECK(error == 0 || error == ETIMEDOUT);
            if (error == ETIMEDOUT) {
                CHECK(thrum_now() >= until);
                store.lock.give();
                return;
            }
        }
        store.held += puts ? 1 : -1;
        (puts ? store.in : store.out)++;
        CHECK(store.held >= 0 && store.held <= Store<Lock>::kRoom);
        store.lock.tell(actor.random.one_in(4));
        store.lock.give();
    }

    static void take_permit(Actor &actor, Place &place) {
        timespec until;
        CHECK_EQ(clock_gettime(CLOCK_REALTIME, &until), 0);
        until.tv_nsec += static_cast<long>(options.slice_ns());
        if (until.tv_nsec >= static_cast<long>(THRUM_S)) {
            until.tv_nsec -= static_cast<long>(THRUM_S);
            until.tv_sec++;
        }
        int failed = 0;
        while ((failed = sem_timedwait(&place.permits, &until)) != 0 && errno == EINTR)
            ; // a tick
        if (failed != 0) {
            CHECK_EQ(errno, ETIMEDOUT);
            return;
        }
        CHECK(++place.taken <= 2);
        hold(actor);
        place.taken--;
        CHECK_EQ(sem_post(&place.permits), 0);
    }

    std::deque<Place> places_;
};

} // namespace

void add_conds(Tortures &all) {
    all.push_back(std::make_unique<Conds>());
}
