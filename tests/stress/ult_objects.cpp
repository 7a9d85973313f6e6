// SPDX-License-Identifier: Apache-2.0
//
// stress-ult: synchronisation, on objects that all share and on some that last for one meeting only.
#include <errno.h>
#include <unistd.h>

#include <vector>

#include "ult_stress.h"

namespace {

constexpr int kMutexes = 6, kBufferSize = 8, kPermits = 3;

// Plain variables under a mutex: two at once would be seen.
struct Guarded {
    explicit Guarded(unsigned mutex_kind) : kind(mutex_kind) { CHECK(thrum_mutex_init(&mutex, kind) == 0); }
    unsigned kind;
    thrum_mutex_t mutex;
    long first = 0, second = 0;
    const void *owner = nullptr;
};
std::array<Guarded, kMutexes> guarded = {Guarded{0},
                                         Guarded{0},
                                         Guarded{0},
                                         Guarded{THRUM_MUTEX_RECURSIVE},
                                         Guarded{THRUM_MUTEX_PRIORITY},
                                         Guarded{THRUM_MUTEX_RECURSIVE | THRUM_MUTEX_PRIORITY}};

// Each thread puts one thing in and then takes one out, so that none waits for ever.
struct Buffer {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t not_full = THRUM_COND_INITIALIZER, not_empty = THRUM_COND_INITIALIZER;
    std::array<std::uint64_t, kBufferSize> items{};
    int held = 0, at = 0;
    std::uint64_t sum_in = 0, sum_out = 0;
} buffer;

// Waited for with a broadcast.
struct Ticker {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_cond_t ticked = THRUM_COND_INITIALIZER;
    long ticks = 0;
} ticker;

struct Shared {
    thrum_rwlock_t lock = THRUM_RWLOCK_INITIALIZER;
    long first = 0, second = 0;
    std::atomic<int> readers{0}, writers{0};
} shared;

struct Permits {
    thrum_sem_t sem;
    std::atomic<int> taken{0};
    Permits() { CHECK(thrum_sem_init(&sem, kPermits) == 0); }
} permits;

// What some settle together: each counts, contributes, and runs what is run once; one gives the value.
struct Settling {
    thrum_latch_t latch = {};
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    thrum_future_t future = {};
    thrum_once_t once = THRUM_ONCE_INITIALIZER;
    std::array<void *, 4> parts = {};
    std::atomic<unsigned> runs{0}, first{0};
};

void *help_to_settle(void *arg) {
    auto *settling = static_cast<Settling *>(arg);
    thrum_once_call(
        &settling->once,
        [](void *runs) {
            thrum_yield();
            static_cast<std::atomic<unsigned> *>(runs)->fetch_add(1);
        },
        &settling->runs);
    CHECK(settling->runs == 1);
    if (thrum_eventual_set(&settling->eventual, settling) == 0)
        settling->first++;
    CHECK(thrum_eventual_get(&settling->eventual) == settling);
    CHECK(thrum_future_set(&settling->future, settling) == 0);
    CHECK(thrum_latch_count_down(&settling->latch, 1) == 0);
    return nullptr;
}

// A child that helps its maker with an object on its maker's stack.
struct Helper {
    thrum_barrier_t barrier = {};
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_channel_t channel = {};
    unsigned many = 0;
    bool yields = false;
    std::atomic<unsigned> last{0};
    std::uint64_t value = 0;
};

void *help_to_meet(void *arg) {
    auto *helper = static_cast<Helper *>(arg);
    for (unsigned i = 0; i < helper->many; i++)
        if (thrum_barrier_wait(&helper->barrier))
            helper->last++;
    return nullptr;
}

void *help_by_telling(void *arg) {
    auto *helper = static_cast<Helper *>(arg);
    if (helper->yields)
        thrum_yield();
    helper->value = 1;
    thrum_event_set(&helper->event); // the object may be gone from here on
    return nullptr;
}

void *help_by_sending(void *arg) {
    auto *helper = static_cast<Helper *>(arg);
    for (unsigned i = 0; i < helper->many; i++) {
        const std::uint64_t element = helper->value + i;
        CHECK(thrum_channel_send(&helper->channel, &element) == 0);
        if (helper->yields)
            thrum_yield();
    }
    CHECK(thrum_channel_close(&helper->channel) == 0);
    return nullptr;
}

thrum_t helper_start(void *(*fn)(void *), void *helper) {
    thrum_t thread = nullptr;
    count.spawned++;
    count.ran++; // it is seen by what it does
    CHECK(thrum_spawn(&thread, nullptr, fn, helper) == 0);
    return thread;
}

void helper_end(thrum_t thread) {
    CHECK(thrum_join(thread, nullptr) == 0);
    count.joined++;
}

} // namespace

// --- shared -----------------------------------------------------------------------------------------------

void Program::exclude() {
    Guarded &one = guarded[random_.below(kMutexes)];
    int error = 0;
    switch (random_.below(4)) {
    case 0: error = thrum_mutex_try_lock(&one.mutex); break;
    case 1: error = thrum_mutex_lock_until(&one.mutex, soon(random_)); break;
    default: thrum_mutex_lock(&one.mutex); break;
    }
    CHECK(error == 0 || error == EBUSY || error == ETIMEDOUT);
    if (error != 0)
        return;
    CHECK(one.owner == nullptr && one.first == one.second);
    one.owner = this;
    one.first++;
    const bool again = (one.kind & THRUM_MUTEX_RECURSIVE) != 0 && thrum_mutex_try_lock(&one.mutex) == 0;
    CHECK(again == ((one.kind & THRUM_MUTEX_RECURSIVE) != 0));
    if (random_.one_in(8))
        thrum_yield();
    if (again)
        CHECK(thrum_mutex_unlock(&one.mutex) == 0);
    CHECK(one.owner == this && one.first == one.second + 1);
    one.second++;
    one.owner = nullptr;
    CHECK(thrum_mutex_unlock(&one.mutex) == 0);
}

void Program::exchange() {
    const std::uint64_t item = random_.next();
    thrum_mutex_lock(&buffer.mutex);
    while (buffer.held == kBufferSize)
        thrum_cond_wait(&buffer.not_full, &buffer.mutex);
    buffer.items[static_cast<std::size_t>((buffer.at + buffer.held++) % kBufferSize)] = item;
    buffer.sum_in += item;
    thrum_cond_signal(&buffer.not_empty);
    thrum_mutex_unlock(&buffer.mutex);
    count.put++;
    if (random_.one_in(3))
        thrum_yield();
    thrum_mutex_lock(&buffer.mutex);
    while (buffer.held == 0)
        thrum_cond_wait(&buffer.not_empty, &buffer.mutex);
    buffer.sum_out += buffer.items[static_cast<std::size_t>(buffer.at)];
    buffer.at = (buffer.at + 1) % kBufferSize;
    buffer.held--;
    thrum_mutex_unlock(&buffer.mutex);
    thrum_cond_signal(&buffer.not_full); // without the mutex, for a change
    count.taken++;
}

void Program::wait_for_tick() {
    const bool timed = random_.one_in(2);
    const std::uint64_t until = soon(random_);
    thrum_mutex_lock(&ticker.mutex);
    int error = 0;
    for (const long now = ticker.ticks; ticker.ticks == now && error == 0;) {
        if (timed)
            error = thrum_cond_wait_until(&ticker.ticked, &ticker.mutex, until);
        else
            thrum_cond_wait(&ticker.ticked, &ticker.mutex);
    }
    thrum_mutex_unlock(&ticker.mutex);
    CHECK(error == 0 || (error == ETIMEDOUT && thrum_now() >= until));
}

void Program::read_and_write() {
    const bool timed = random_.one_in(3);
    if (random_.one_in(4)) {
        if (!timed)
            thrum_rwlock_write_lock(&shared.lock);
        else if (thrum_rwlock_write_lock_until(&shared.lock, soon(random_)) != 0)
            return;
        CHECK(shared.writers++ == 0 && shared.readers == 0);
        shared.first++;
        if (random_.one_in(8))
            thrum_yield();
        shared.second++;
        shared.writers--;
    } else {
        if (!timed)
            thrum_rwlock_read_lock(&shared.lock);
        else if (thrum_rwlock_read_lock_until(&shared.lock, soon(random_)) != 0)
            return;
        shared.readers++;
        if (random_.one_in(8))
            thrum_yield();
        CHECK(shared.writers == 0 && shared.first == shared.second);
        shared.readers--;
    }
    CHECK(thrum_rwlock_unlock(&shared.lock) == 0);
}

void Program::take_permit() {
    if (!random_.one_in(3))
        thrum_sem_wait(&permits.sem);
    else if (thrum_sem_wait_until(&permits.sem, soon(random_)) != 0)
        return;
    CHECK(++permits.taken <= kPermits);
    if (random_.one_in(4))
        thrum_yield();
    permits.taken--;
    CHECK(thrum_sem_post(&permits.sem) == 0);
}

// --- for once ---------------------------------------------------------------------------------------------

void Program::meet() {
    if (!may_spawn())
        return;
    Helper helper;
    std::vector<thrum_t> threads(1 + random_.below(3));
    helper.many = 1 + random_.below(3);
    CHECK(thrum_barrier_init(&helper.barrier, static_cast<unsigned>(threads.size()) + 1) == 0);
    for (thrum_t &thread : threads)
        thread = helper_start(help_to_meet, &helper);
    help_to_meet(&helper);
    CHECK(thrum_barrier_destroy(&helper.barrier) == 0);
    for (const thrum_t thread : threads)
        helper_end(thread);
    CHECK(helper.last == helper.many);
}

void Program::settle() {
    if (!may_spawn())
        return;
    Settling settling;
    const unsigned many = 1 + random_.below(4);
    thrum_latch_init(&settling.latch, many);
    thrum_future_init(&settling.future, settling.parts.data(), many);
    std::vector<thrum_t> threads(many);
    for (thrum_t &thread : threads)
        thread = helper_start(help_to_settle, &settling);
    void *value = nullptr;
    if (thrum_eventual_get_until(&settling.eventual, &value, soon(random_)) == 0)
        CHECK(value == &settling);
    if (!random_.one_in(2) || thrum_latch_wait_until(&settling.latch, soon(random_)) != 0)
        thrum_latch_wait(&settling.latch);
    if (!random_.one_in(2) || thrum_future_wait_until(&settling.future, soon(random_)) != 0)
        thrum_future_wait(&settling.future);
    for (unsigned i = 0; i < many; i++)
        CHECK(settling.parts[i] == &settling);
    CHECK(settling.runs == 1 && settling.first == 1);
    for (const thrum_t thread : threads)
        helper_end(thread);
    CHECK(thrum_latch_destroy(&settling.latch) == 0 && thrum_future_destroy(&settling.future) == 0 &&
          thrum_eventual_destroy(&settling.eventual) == 0);
}

void Program::be_told() {
    if (!may_spawn())
        return;
    thrum_t thread = nullptr;
    {
        Helper helper;
        helper.yields = random_.one_in(2);
        thread = helper_start(help_by_telling, &helper);
        if (!random_.one_in(2) || thrum_event_wait_until(&helper.event, soon(random_)) != 0)
            thrum_event_wait(&helper.event);
        CHECK(helper.value == 1);
        CHECK(thrum_event_destroy(&helper.event) == 0);
    }
    helper_end(thread);
}

void Program::pass_through_channel() {
    if (!may_spawn())
        return;
    std::array<std::uint64_t, 3> storage;
    Helper helper;
    helper.many = random_.below(12);
    helper.value = random_.next() >> 1;
    helper.yields = random_.one_in(2);
    const unsigned capacity = random_.below(5);
    CHECK(thrum_channel_init(&helper.channel, sizeof(std::uint64_t),
                             capacity == 4 ? THRUM_CHANNEL_UNBOUNDED : capacity, storage.data()) == 0);
    const thrum_t thread = helper_start(help_by_sending, &helper);
    for (unsigned i = 0; i <= helper.many;) {
        std::uint64_t element = 0;
        const int error = random_.one_in(3)
                              ? thrum_channel_receive_until(&helper.channel, &element, soon(random_))
                              : thrum_channel_receive(&helper.channel, &element);
        if (error == ETIMEDOUT)
            continue;
        CHECK(error == (i == helper.many ? EPIPE : 0));
        CHECK(error != 0 || element == helper.value + i);
        i++;
    }
    CHECK(thrum_channel_destroy(&helper.channel) == 0);
    helper_end(thread);
}

// A child's end, what it says before, and a permit that others have.
void Program::wait_for_any() {
    if (!may_spawn())
        return;
    Helper helper;
    helper.yields = random_.one_in(2);
    const thrum_t thread = helper_start(help_by_telling, &helper);
    bool told = false, ended = false;
    while (!told || !ended) {
        std::array<thrum_wait_t, 3> waits = {};
        std::size_t many = 0;
        if (!told)
            waits[many++] = {THRUM_WAIT_EVENT, 0, &helper.event, nullptr, {}};
        if (!ended)
            waits[many++] = {THRUM_WAIT_JOIN, 0, thread, nullptr, {}};
        if (random_.one_in(2))
            waits[many++] = {THRUM_WAIT_SEM, 0, &permits.sem, nullptr, {}};
        std::size_t which = 0;
        const int error =
            thrum_wait_any(waits.data(), many, random_.one_in(2) ? soon(random_) : UINT64_MAX, &which);
        if (error == ETIMEDOUT)
            continue;
        CHECK(error == 0 && which < many && waits[which].result == 0);
        switch (waits[which].what) {
        case THRUM_WAIT_EVENT: told = true; break;
        case THRUM_WAIT_JOIN: ended = true; break;
        default:
            CHECK(++permits.taken <= kPermits);
            permits.taken--;
            CHECK(thrum_sem_post(&permits.sem) == 0);
            break;
        }
    }
    count.joined++;
    CHECK(helper.value == 1);
    CHECK(thrum_event_destroy(&helper.event) == 0);
}

// --- a round ----------------------------------------------------------------------------------------------

void objects_tick() {
    usleep(500);
    thrum_mutex_lock(&ticker.mutex);
    ticker.ticks++;
    thrum_cond_broadcast(&ticker.ticked);
    thrum_mutex_unlock(&ticker.mutex);
}

void objects_check() {
    CHECK(count.put == count.taken && buffer.held == 0 && buffer.sum_in == buffer.sum_out);
    for (const Guarded &one : guarded)
        CHECK(one.owner == nullptr && one.first == one.second);
    CHECK(shared.readers == 0 && shared.writers == 0 && shared.first == shared.second);
    CHECK(permits.taken == 0 && thrum_sem_count(&permits.sem) == kPermits);
}
