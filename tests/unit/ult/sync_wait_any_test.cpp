// SPDX-License-Identifier: Apache-2.0
//
// sync/wait_any: exactly one object's wake-up is taken, none is lost.
#include <cstring>

#include "crew.hpp"

namespace {

class WaitAny : public Ult {
  protected:
    static thrum_wait_t item(thrum_wait_what what, void *object, void *value = nullptr) {
        thrum_wait_t wait{};
        wait.what = what;
        wait.object = object;
        wait.value = value;
        return wait;
    }
};

TEST_P(WaitAny, ChecksWhatItIsGiven) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_wait_t wait = item(THRUM_WAIT_EVENT, &event);
    EXPECT_EQ(thrum_wait_any(&wait, 0, kNever, nullptr), EINVAL);
    wait.what = THRUM_WAIT_NONE + 1;
    EXPECT_EQ(thrum_wait_any(&wait, 1, kNever, nullptr), EINVAL);
    for (uint32_t what = THRUM_WAIT_EVENT; what < THRUM_WAIT_NONE; what++) {
        thrum_wait_t none = item(static_cast<thrum_wait_what>(what), nullptr);
        EXPECT_EQ(thrum_wait_any(&none, 1, 0, nullptr), EINVAL) << what;
    }
}

// In debug builds, too.
TEST_P(WaitAny, RefusesAThreadThatIsNotItsOwnToJoin) {
    thrum_event_t go = THRUM_EVENT_INITIALIZER, left = THRUM_EVENT_INITIALIZER;
    Light joined([&go] { thrum_event_wait(&go); });
    const thrum_t handle = joined.handle(); // the joiner takes it
    Light joiner([&joined] { joined.join(); });
    EXPECT_TRUE(eventually([&] { return thrum_try_join(handle, nullptr) == EINVAL; }));
    std::pair<thrum_event_t *, thrum_event_t *> events{&go, &left};
    thrum_t detached = nullptr;
    const auto wait = [](void *arg) -> void * {
        auto *both = static_cast<std::pair<thrum_event_t *, thrum_event_t *> *>(arg);
        thrum_event_wait(both->first);
        thrum_event_set(both->second);
        return nullptr;
    };
    ASSERT_EQ(thrum_spawn(&detached, nullptr, wait, &events), 0);
    ASSERT_EQ(thrum_detach(detached), 0);
    for (const thrum_t other : {handle, detached}) {
        thrum_event_t never = THRUM_EVENT_INITIALIZER;
        thrum_wait_t waits[] = {item(THRUM_WAIT_EVENT, &never), item(THRUM_WAIT_JOIN, other)};
        EXPECT_EQ(thrum_wait_any(waits, 2, kNever, nullptr), EINVAL);
        EXPECT_EQ(waiting(never), 0);
        thrum_event_set(&never); // what is ready is done
        EXPECT_EQ(thrum_wait_any(waits, 2, kNever, nullptr), 0);
    }
    thrum_wait_t none = item(THRUM_WAIT_JOIN, nullptr);
    EXPECT_EQ(thrum_wait_any(&none, 1, kNever, nullptr), EINVAL);
    thrum_event_set(&go);
    joiner.join();
    thrum_event_wait(&left);
}

TEST_P(WaitAny, TakesTheFirstThatIsReady) {
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    thrum_sem_t one = THRUM_SEM_INITIALIZER(1), two = THRUM_SEM_INITIALIZER(1);
    thrum_wait_t waits[] = {item(THRUM_WAIT_EVENT, &event), item(THRUM_WAIT_SEM, &one),
                            item(THRUM_WAIT_SEM, &two)};
    size_t which = 9;
    EXPECT_EQ(thrum_wait_any(waits, 3, 0, &which), 0);
    EXPECT_EQ(which, 1U);
    EXPECT_EQ(waits[1].result, 0);
    EXPECT_EQ(thrum_sem_count(&one), 0U);
    EXPECT_EQ(thrum_sem_count(&two), 1U) << "nothing is taken from the others";
    EXPECT_EQ(thrum_wait_any(waits, 3, kNever, &which), 0);
    EXPECT_EQ(which, 2U);
    EXPECT_EQ(thrum_wait_any(waits, 3, 0, &which), ETIMEDOUT);
    const auto give_up = [&](int) {
        thrum_wait_t own[3];
        std::memcpy(own, waits, sizeof own);
        const uint64_t moment = in_ms(2);
        EXPECT_EQ(thrum_wait_any(own, 3, moment, nullptr), ETIMEDOUT);
        EXPECT_GE(thrum_now(), moment);
    };
    in_ult([&] { give_up(0); });
    Heavies(1, give_up);
    EXPECT_EQ(waiting(event) + waiting(one) + waiting(two), 0);
}

// Each kind of object, both ready before and made ready by another thread during the wait.
TEST_P(WaitAny, EachKind) {
    for (const bool before : {false, true}) {
        for (int heavy : {0, 1}) {
            for (uint32_t what = THRUM_WAIT_EVENT; what <= THRUM_WAIT_JOIN; what++) {
                thrum_event_t never = THRUM_EVENT_INITIALIZER, event = THRUM_EVENT_INITIALIZER;
                thrum_latch_t latch = THRUM_LATCH_INITIALIZER(1);
                void *values[1] = {nullptr};
                thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, 1);
                thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
                thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
                thrum_channel_t out = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(void *));
                thrum_channel_t in = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(void *));
                std::atomic<bool> end{false};
                thrum_t thread = nullptr;
                void *received = nullptr, *to_send = &out, *sent = nullptr;
                struct Ender {
                    std::atomic<bool> *end;
                    static void *run(void *arg) {
                        while (!*static_cast<Ender *>(arg)->end)
                            thrum_yield();
                        return arg;
                    }
                } ender{&end};
                if (what == THRUM_WAIT_JOIN) {
                    ASSERT_EQ(thrum_spawn(&thread, nullptr, Ender::run, &ender), 0);
                }
                const auto make_ready = [&] {
                    void *value = &in;
                    switch (what) {
                    case THRUM_WAIT_EVENT: thrum_event_set(&event); break;
                    case THRUM_WAIT_LATCH: EXPECT_EQ(thrum_latch_count_down(&latch, 1), 0); break;
                    case THRUM_WAIT_FUTURE: EXPECT_EQ(thrum_future_set(&future, value), 0); break;
                    case THRUM_WAIT_EVENTUAL: EXPECT_EQ(thrum_eventual_set(&eventual, value), 0); break;
                    case THRUM_WAIT_SEM: EXPECT_EQ(thrum_sem_post(&sem), 0); break;
                    case THRUM_WAIT_SEND: EXPECT_EQ(thrum_channel_receive(&out, &sent), 0); break;
                    case THRUM_WAIT_RECEIVE: EXPECT_EQ(thrum_channel_send(&in, &value), 0); break;
                    default: end = true;
                    }
                };
                void *objects[] = {&event, &latch, &future, &eventual, &sem, &out, &in, thread};
                void *value = what == THRUM_WAIT_SEND ? static_cast<void *>(&to_send) : &received;
                std::unique_ptr<Light> maker;
                if (before) {
                    maker = std::make_unique<Light>(make_ready);
                    if (workers() > 1)
                        spin_us(20);
                }
                const auto wait = [&](int) {
                    thrum_wait_t waits[] = {item(THRUM_WAIT_EVENT, &never),
                                            item(static_cast<thrum_wait_what>(what), objects[what], value),
                                            item(THRUM_WAIT_SEM, &sem)};
                    size_t which = 9;
                    EXPECT_EQ(thrum_wait_any(waits, what == THRUM_WAIT_SEM ? 2 : 3, kNever, &which), 0);
                    EXPECT_EQ(which, 1U) << what;
                    EXPECT_EQ(waits[1].result, 0);
                };
                {
                    Light light([&] {
                        if (!heavy)
                            wait(0);
                    });
                    Heavies external(heavy, wait);
                    if (!before) {
                        EXPECT_TRUE(eventually_waiting(never, 1));
                        make_ready();
                    }
                }
                maker.reset();
                if (what == THRUM_WAIT_SEND)
                    EXPECT_EQ(sent, to_send);
                else if (what == THRUM_WAIT_JOIN)
                    EXPECT_EQ(received, &ender);
                else
                    EXPECT_EQ(received,
                              what == THRUM_WAIT_RECEIVE || what == THRUM_WAIT_EVENTUAL ? &in : nullptr);
                EXPECT_EQ(waiting(never) + waiting(sem), 0);
                EXPECT_EQ(thrum_channel_destroy(&in), 0);
            }
        }
    }
}

TEST_P(WaitAny, IsToldOfAClosedChannel) {
    thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    thrum_event_t event = THRUM_EVENT_INITIALIZER;
    const auto wait = [&](thrum_wait_what what) {
        int value = 0;
        size_t which = 9;
        thrum_wait_t waits[] = {item(THRUM_WAIT_EVENT, &event), item(what, &channel, &value)};
        EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
        EXPECT_EQ(which, 1U);
        EXPECT_EQ(waits[1].result, EPIPE);
    };
    {
        Light light([&] { wait(THRUM_WAIT_RECEIVE); });
        ASSERT_TRUE(eventually_waiting(event, 1));
        EXPECT_EQ(thrum_channel_close(&channel), 0);
    }
    wait(THRUM_WAIT_SEND);
    wait(THRUM_WAIT_RECEIVE);
    EXPECT_EQ(waiting(event), 0);
}

// Its own offer is no partner.
TEST_P(WaitAny, DoesNotTradeWithItself) {
    thrum_channel_t channel = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    int in = 0, out = 7;
    thrum_wait_t waits[] = {item(THRUM_WAIT_SEND, &channel, &out), item(THRUM_WAIT_RECEIVE, &channel, &in)};
    EXPECT_EQ(thrum_wait_any(waits, 2, in_ms(2), nullptr), ETIMEDOUT);
    Light light([&] {
        size_t which = 9;
        EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
        EXPECT_EQ(which, 1U);
        EXPECT_EQ(in, 8);
    });
    const int eight = 8;
    EXPECT_EQ(thrum_channel_send(&channel, &eight), 0);
}

// Permits posted to several semaphores, waiters for some of each, deadlines: as many are taken as were given.
TEST_P(WaitAny, PermitsAreConserved) {
    constexpr unsigned kSems = 5;
    thrum_sem_t sems[kSems] = {};
    thrum_event_t stop = THRUM_EVENT_INITIALIZER;
    std::atomic<int> had{0}, posted{0}, posters{4};
    const int each = divided(200);
    crew(10, 3, [&](int who) {
        if (who % 3 == 0 && who < 12) {
            for (int i = 0; i < each; i++) {
                EXPECT_EQ(thrum_sem_post(&sems[static_cast<unsigned>(who + i) % kSems]), 0);
                posted++;
                if (i % 4 == 0)
                    thrum_yield();
            }
            if (--posters == 0)
                thrum_event_set(&stop);
            return;
        }
        for (unsigned i = 0;; i++) {
            const unsigned first = (static_cast<unsigned>(who) + i) % kSems,
                           second = (first + 1 + i % 3) % kSems;
            thrum_wait_t waits[] = {item(THRUM_WAIT_SEM, &sems[first]), item(THRUM_WAIT_EVENT, &stop),
                                    item(THRUM_WAIT_SEM, &sems[second])};
            const uint64_t moment = i % 3 == 0 ? kNever : in_us(i % 40);
            size_t which = 9;
            if (thrum_wait_any(waits, 3, moment, &which) != 0)
                continue;
            if (which == 1)
                return;
            had++;
        }
    });
    unsigned left = 0;
    for (thrum_sem_t &sem : sems) {
        left += thrum_sem_count(&sem);
        EXPECT_EQ(waiting(sem), 0);
    }
    EXPECT_EQ(static_cast<unsigned>(had) + left, static_cast<unsigned>(posted));
}

// All trade on both sides of several channels without a store: what one sends another receives. The last always has a
// deadline and moves to other channels: all the others may come to send to one and receive from another, so that none
// of them has a partner.
TEST_P(WaitAny, TradesAmongThemselves) {
    constexpr unsigned kChannels = 3;
    thrum_channel_t channels[kChannels];
    for (thrum_channel_t &channel : channels)
        ASSERT_EQ(thrum_channel_init(&channel, sizeof(long), 0, nullptr), 0);
    thrum_event_t stop = THRUM_EVENT_INITIALIZER;
    std::atomic<long> sent{0}, received{0};
    std::atomic<int> trades{0};
    const int goal = divided(1500);
    constexpr int kLights = 9, kHeavies = 3;
    crew(kLights, kHeavies, [&](int who) {
        const bool is_last = who == kLights + kHeavies;
        for (unsigned i = 0; trades < goal; i++) {
            const unsigned first = (static_cast<unsigned>(who) + i) % kChannels,
                           second = (first + 1 + i % 2) % kChannels;
            long out = static_cast<long>(i) * 16 + who, in = 0;
            thrum_wait_t waits[] = {item(THRUM_WAIT_SEND, &channels[first], &out),
                                    item(THRUM_WAIT_RECEIVE, &channels[second], &in),
                                    item(THRUM_WAIT_EVENT, &stop)};
            if (i % 2 != 0)
                std::swap(waits[0], waits[1]);
            size_t which = 9;
            const uint64_t moment = is_last || i % 5 == 0 ? in_us(i % 40) : kNever;
            if (thrum_wait_any(waits, 3, moment, &which) != 0)
                continue;
            if (which == 2)
                break;
            if (waits[which].what == THRUM_WAIT_SEND)
                sent += out;
            else
                received += in;
            trades++;
        }
        thrum_event_set(&stop);
    });
    EXPECT_EQ(sent, received);
    EXPECT_GE(trades, goal);
    for (thrum_channel_t &channel : channels)
        EXPECT_EQ(thrum_channel_destroy(&channel), 0);
}

// Each of several threads is joined once, in the order of their ends, by one that waits for all that are left.
TEST_P(WaitAny, JoinsTheFirstToEnd) {
    for (int round = 0; round < divided(40); round++) {
        constexpr int kThreads = 8;
        struct Job {
            thrum_t thread;
            int naps;
            static void *run(void *arg) {
                for (int i = 0; i < static_cast<Job *>(arg)->naps; i++)
                    thrum_yield();
                return arg;
            }
        } jobs[kThreads];
        const auto join_all = [&](int) {
            std::vector<Job *> left;
            for (Job &job : jobs)
                left.push_back(&job);
            for (int tries = 0; !left.empty(); tries++) {
                std::vector<thrum_wait_t> waits;
                void *result = nullptr;
                for (Job *job : left)
                    waits.push_back(item(THRUM_WAIT_JOIN, job->thread, &result));
                size_t which = 99;
                const uint64_t moment = tries % 3 == 0 ? in_us(static_cast<uint64_t>(tries)) : kNever;
                if (thrum_wait_any(waits.data(), waits.size(), moment, &which) != 0)
                    continue;
                EXPECT_EQ(waits[which].result, 0);
                EXPECT_EQ(result, left[which]);
                left.erase(left.begin() + static_cast<long>(which));
            }
        };
        for (int i = 0; i < kThreads; i++) {
            jobs[i].naps = (i * 5 + round) % 11;
            ASSERT_EQ(thrum_spawn(&jobs[i].thread, nullptr, Job::run, &jobs[i]), 0);
        }
        if (round % 2 == 0)
            in_ult([&] { join_all(0); });
        else
            Heavies(1, join_all);
    }
}

// The same events set by several at once while many wait for them with different neighbours.
TEST_P(WaitAny, EventsAmongDeadlines) {
    for (int round = 0; round < divided(40); round++) {
        thrum_event_t events[4] = {};
        std::vector<Light> lights;
        for (unsigned k = 0; k < 10; k++)
            lights.emplace_back([&, k] {
                thrum_wait_t waits[] = {item(THRUM_WAIT_EVENT, &events[k % 4]),
                                        item(THRUM_WAIT_EVENT, &events[(k + 1) % 4])};
                size_t which = 9;
                const int error = thrum_wait_any(waits, 2, k % 3 == 0 ? kNever : in_us(k * 4), &which);
                if (error == 0)
                    EXPECT_EQ(thrum_event_try_wait(static_cast<thrum_event_t *>(waits[which].object)), 0);
                else
                    EXPECT_NE(k % 3, 0U);
            });
        crew(1, 1, [&](int who) {
            thrum_event_set(&events[who]);
            thrum_event_set(&events[3]);
        });
        lights.clear();
        for (const thrum_event_t &event : events)
            EXPECT_EQ(waiting(event), 0);
    }
}

// Each of several that are ready each time is taken sooner or later; without the flag it is always the first.
TEST_P(WaitAny, BeginsAnywhereIfAsked) {
    constexpr unsigned kEvents = 5, kTries = 1000;
    thrum_event_t events[kEvents] = {};
    thrum_wait_t waits[kEvents];
    for (unsigned i = 0; i < kEvents; i++) {
        thrum_event_set(&events[i]);
        waits[i] = item(THRUM_WAIT_EVENT, &events[i]);
    }
    const auto taken = [&] {
        unsigned counts[kEvents] = {}, different = 0;
        for (unsigned i = 0; i < kTries; i++) {
            size_t which = kEvents;
            EXPECT_EQ(thrum_wait_any(waits, kEvents, kNever, &which), 0);
            counts[which]++;
        }
        for (const unsigned count : counts)
            different += count > 0;
        return different;
    };
    const auto both = [&](int) {
        waits[0].what = THRUM_WAIT_EVENT;
        EXPECT_EQ(taken(), 1U);
        waits[0].what |= THRUM_WAIT_RANDOM;
        EXPECT_EQ(taken(), kEvents);
    };
    in_ult([&] { both(0); });
    Heavies(1, both);
    waits[0].what = THRUM_WAIT_EVENT;
    waits[1].what |= THRUM_WAIT_RANDOM;
    EXPECT_EQ(thrum_wait_any(waits, kEvents, kNever, nullptr), EINVAL) << "it is of the first alone";
}

// The flag says how to search, and nothing of what is found: of all kinds.
TEST_P(WaitAny, AnywhereIsForEachKind) {
    int value = 7, received = 0;
    thrum_channel_t channel = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof value);
    thrum_event_t never = THRUM_EVENT_INITIALIZER;
    thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
    void *content = nullptr;
    EXPECT_EQ(thrum_eventual_set(&eventual, &value), 0);
    const auto first_of = [&](thrum_wait_what what, void *object, void *place) {
        thrum_wait_t waits[] = {item(what, object, place), item(THRUM_WAIT_EVENT, &never)};
        waits[0].what |= THRUM_WAIT_RANDOM;
        size_t which = 9;
        EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
        EXPECT_EQ(which, 0U);
        EXPECT_EQ(waits[0].result, 0);
    };
    Light receiver([&] { first_of(THRUM_WAIT_RECEIVE, &channel, &received); });
    first_of(THRUM_WAIT_SEND, &channel, &value);
    receiver.join();
    EXPECT_EQ(received, value);
    first_of(THRUM_WAIT_EVENTUAL, &eventual, &content);
    EXPECT_EQ(content, &value);
    Light sleeper([] { thrum_sleep(THRUM_MS); });
    thrum_t thread;
    const auto nap = [](void *arg) -> void * {
        thrum_sleep(THRUM_MS);
        return arg;
    };
    ASSERT_EQ(thrum_spawn(&thread, nullptr, nap, &value), 0);
    first_of(THRUM_WAIT_JOIN, thread, &content);
    EXPECT_EQ(content, &value);
    EXPECT_EQ(thrum_channel_destroy(&channel), 0);
}

// One that is switched off is as if it were not there, whatever its object is.
TEST_P(WaitAny, NoneIsNeverReady) {
    thrum_event_t set = THRUM_EVENT_INITIALIZER;
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
    thrum_event_set(&set);
    thrum_wait_t waits[] = {item(THRUM_WAIT_NONE, &set), item(THRUM_WAIT_NONE, nullptr),
                            item(THRUM_WAIT_SEM, &sem)};
    size_t which = 9;
    EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), EINVAL) << "nothing could end this";
    EXPECT_EQ(thrum_wait_any(waits, 2, 0, &which), ETIMEDOUT);
    EXPECT_EQ(thrum_wait_any(waits, 2, in_us(100), &which), ETIMEDOUT);
    waits[0].what |= THRUM_WAIT_RANDOM;
    EXPECT_EQ(thrum_wait_any(waits, 3, in_us(100), &which), ETIMEDOUT);
    Light poster([&] {
        EXPECT_TRUE(eventually_waiting(sem, 1));
        EXPECT_EQ(thrum_sem_post(&sem), 0);
    });
    EXPECT_EQ(thrum_wait_any(waits, 3, kNever, &which), 0);
    EXPECT_EQ(which, 2U);
}

// An element that is switched off may name the channel of others: it is in none of its lists.
TEST_P(WaitAny, NoneOfAChannelIsNotInItsLists) {
    void *memory[1];
    thrum_channel_t channel = THRUM_CHANNEL_INITIALIZER(memory);
    void *received = nullptr, *unused = nullptr, *sent = &channel;
    thrum_wait_t receives[] = {item(THRUM_WAIT_RECEIVE, &channel, &received),
                               item(THRUM_WAIT_NONE, &channel, &unused)};
    EXPECT_EQ(thrum_wait_any(receives, 2, in_us(100), nullptr), ETIMEDOUT);
    EXPECT_EQ(waiting(channel), 0);
    EXPECT_EQ(thrum_channel_try_send(&channel, &sent), 0);
    thrum_wait_t sends[] = {item(THRUM_WAIT_SEND, &channel, &sent), item(THRUM_WAIT_NONE, &channel, &unused)};
    EXPECT_EQ(thrum_wait_any(sends, 2, in_us(100), nullptr), ETIMEDOUT) << "the channel is full";
    EXPECT_EQ(thrum_wait_any(receives, 2, kNever, nullptr), 0);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(unused, nullptr);
    EXPECT_EQ(thrum_channel_destroy(&channel), 0);
}

// Locks that are locked in the one and the same way, whichever they are.
class Lock {
  public:
    explicit Lock(uint32_t what) : what_(what) {}
    ~Lock() {
        EXPECT_EQ(thrum_mutex_destroy(&mutex_), 0);
        EXPECT_EQ(thrum_rwlock_destroy(&rwlock_), 0);
    }
    thrum_wait_t waiting() {
        thrum_wait_t wait{};
        wait.what = what_;
        wait.object = what_ == THRUM_WAIT_LOCK ? static_cast<void *>(&mutex_) : &rwlock_;
        return wait;
    }
    // As the thing that keeps a waiter out.
    void lock() {
        if (what_ == THRUM_WAIT_LOCK)
            thrum_mutex_lock(&mutex_);
        else if (what_ == THRUM_WAIT_READ_LOCK)
            thrum_rwlock_write_lock(&rwlock_);
        else
            thrum_rwlock_read_lock(&rwlock_);
    }
    int unlock() {
        return what_ == THRUM_WAIT_LOCK ? thrum_mutex_unlock(&mutex_) : thrum_rwlock_unlock(&rwlock_);
    }
    // Whether one that was locked by waiting() is.
    bool keeps_out() {
        const int error =
            what_ == THRUM_WAIT_LOCK ? thrum_mutex_try_lock(&mutex_) : thrum_rwlock_try_write_lock(&rwlock_);
        if (error == 0) {
            EXPECT_EQ(unlock(), 0);
        }
        return error == EBUSY;
    }
    thrum_rwlock_t &rwlock() { return rwlock_; }

  private:
    uint32_t what_;
    thrum_mutex_t mutex_ = THRUM_MUTEX_INITIALIZER;
    thrum_rwlock_t rwlock_ = THRUM_RWLOCK_INITIALIZER;
};

TEST_P(WaitAny, LocksAreHandedOver) {
    for (const uint32_t what : {THRUM_WAIT_LOCK, THRUM_WAIT_READ_LOCK, THRUM_WAIT_WRITE_LOCK}) {
        for (int heavy : {0, 1}) {
            Lock lock(what);
            thrum_event_t never = THRUM_EVENT_INITIALIZER;
            const auto wait = [&](int) {
                thrum_wait_t waits[] = {item(THRUM_WAIT_EVENT, &never), lock.waiting()};
                size_t which = 9;
                EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
                EXPECT_EQ(which, 1U);
                External other([&] { EXPECT_TRUE(lock.keeps_out()) << what; });
                other.join();
                EXPECT_EQ(lock.unlock(), 0);
            };
            wait(0); // it is free
            lock.lock();
            Light light([&] {
                if (!heavy)
                    wait(0);
            });
            Heavies external(heavy, wait);
            EXPECT_TRUE(eventually_waiting(never, 1));
            EXPECT_EQ(lock.unlock(), 0);
        }
    }
}

// Of the lock nothing is left where something else was ready, or the deadline came.
TEST_P(WaitAny, LocksAreLeft) {
    for (const uint32_t what : {THRUM_WAIT_LOCK, THRUM_WAIT_READ_LOCK, THRUM_WAIT_WRITE_LOCK}) {
        Lock lock(what);
        thrum_event_t event = THRUM_EVENT_INITIALIZER;
        lock.lock();
        Light light([&] {
            thrum_wait_t waits[] = {lock.waiting(), item(THRUM_WAIT_EVENT, &event)};
            size_t which = 9;
            EXPECT_EQ(thrum_wait_any(waits, 1, in_us(100), &which), ETIMEDOUT);
            EXPECT_EQ(thrum_wait_any(waits, 2, kNever, &which), 0);
            EXPECT_EQ(which, 1U);
        });
        EXPECT_TRUE(eventually_waiting(event, 1));
        std::unique_ptr<Light> reader; // waits for the writer that gives up
        if (what == THRUM_WAIT_WRITE_LOCK)
            reader = std::make_unique<Light>([&] {
                thrum_rwlock_read_lock(&lock.rwlock());
                EXPECT_EQ(thrum_rwlock_unlock(&lock.rwlock()), 0);
            });
        thrum_event_set(&event);
        light.join();
        reader.reset();
        EXPECT_EQ(lock.unlock(), 0);
        EXPECT_FALSE(lock.keeps_out());
    }
}

// Two locks, each with an unguarded number, and permits: each wait takes one of the three, or none by its deadline.
TEST_P(WaitAny, LocksExclude) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    thrum_rwlock_t rwlock = THRUM_RWLOCK_INITIALIZER;
    thrum_sem_t sem = THRUM_SEM_INITIALIZER(1);
    const int each = 400 / kStressDivisor;
    int numbers[3] = {};
    std::atomic<int> taken{0};
    const auto work = [&](int seed) {
        for (int i = 0; i < each; i++) {
            thrum_wait_t waits[] = {item(THRUM_WAIT_LOCK, &mutex), item(THRUM_WAIT_WRITE_LOCK, &rwlock),
                                    item(THRUM_WAIT_SEM, &sem)};
            waits[0].what |= THRUM_WAIT_RANDOM;
            size_t which = 9;
            const int error = thrum_wait_any(waits, 3, (seed + i) % 7 == 0 ? in_us(20) : kNever, &which);
            if (error == ETIMEDOUT)
                continue;
            EXPECT_EQ(error, 0);
            taken++;
            numbers[which]++;
            if (i % 16 == 0)
                thrum_yield();
            EXPECT_EQ(which == 0   ? thrum_mutex_unlock(&mutex)
                      : which == 1 ? thrum_rwlock_unlock(&rwlock)
                                   : thrum_sem_post(&sem),
                      0);
        }
    };
    {
        std::vector<Light> lights;
        for (int i = 0; i < 6; i++)
            lights.emplace_back([&work, i] { work(i); });
        Heavies externals(2, work);
    }
    EXPECT_EQ(numbers[0] + numbers[1] + numbers[2], taken);
    EXPECT_EQ(thrum_mutex_destroy(&mutex) | thrum_rwlock_destroy(&rwlock) | thrum_sem_destroy(&sem), 0);
}

ULT_OVER_WORKERS(WaitAny);

// In whatever order they stand in the array. That they are put in order takes no time that grows with their square: this
// child would be at it for minutes.
TEST(WaitAnyOfMany, InAnyOrder) {
    constexpr std::size_t kObjects = kStressDivisor > 1 ? 50000 : 300000;
    const auto wait_for_many = [] {
        std::vector<thrum_event_t> events(kObjects);
        std::vector<thrum_wait_t> waits(kObjects);
        for (const int order : {0, 1, 2, 3}) {
            for (std::size_t i = 0; i < kObjects; i++) {
                const std::size_t at = order == 0   ? i
                                       : order == 1 ? kObjects - 1 - i
                                       : order == 2 ? i * 7919 % kObjects // a prime that does not divide it
                                                    : i % 3;
                waits[i] = {THRUM_WAIT_EVENT, 0, &events[at], nullptr, {}};
            }
            if (thrum_wait_any(waits.data(), kObjects, in_us(100), nullptr) != ETIMEDOUT)
                return 1;
            Heavies setter(1, [&](int) { thrum_event_set(&events[1]); });
            std::size_t which = kObjects;
            if (thrum_wait_any(waits.data(), kObjects, kNever, &which) != 0 ||
                waits[which].object != &events[1])
                return 2;
            setter.join();
            thrum_event_reset(&events[1]);
        }
        return 0;
    };
    const int status = in_child(
        [&] {
            const thrum_config config{2, 0, {THRUM_PREEMPT_NONE, 0, 0, 0}, {}};
            return thrum_init(&config) != 0 ? 3 : wait_for_many();
        },
        40);
    EXPECT_EQ(status, 0);
}

} // namespace
