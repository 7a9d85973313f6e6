// SPDX-License-Identifier: Apache-2.0
//
// sync/channel: each element arrives once and in order, with any store; closing; deadlines; memory.
#include <cstring>
#include <numeric>

#include "crew.hpp"
#include "faults.hpp"

namespace {

class Channel : public Ult {
  protected:
    static int waiting_senders(const thrum_channel_t &channel) { return listed(channel.opaque + 8); }
    static int waiting_receivers(const thrum_channel_t &channel) { return listed(channel.opaque + 11); }
};

struct Message {
    int sender, number;
};

struct Made {
    std::vector<Message> storage;
    thrum_channel_t channel;
    explicit Made(size_t capacity, size_t size = sizeof(Message))
        : storage(capacity == THRUM_CHANNEL_UNBOUNDED ? 0 : capacity) {
        EXPECT_EQ(thrum_channel_init(&channel, size, capacity, storage.data()), 0);
    }
    ~Made() { EXPECT_EQ(thrum_channel_destroy(&channel), 0); }
};

constexpr size_t kCapacities[] = {0, 1, 7, THRUM_CHANNEL_UNBOUNDED};

TEST_P(Channel, InitChecksWhatItIsGiven) {
    thrum_channel_t channel;
    int place;
    EXPECT_EQ(thrum_channel_init(&channel, sizeof place, 1, nullptr), EINVAL);
    EXPECT_EQ(thrum_channel_init(&channel, (size_t{1} << 30) + 1, 0, nullptr), EINVAL);
    EXPECT_EQ(thrum_channel_init(&channel, 8, size_t{1} << 61, &place), EINVAL)
        << "more bytes than there can be";
    EXPECT_EQ(thrum_channel_init(&channel, 0, 5, nullptr), 0) << "elements of no bytes need no place";
    EXPECT_EQ(thrum_channel_init(&channel, sizeof place, 1, &place), 0);
}

TEST_P(Channel, StaticOnesAreReady) {
    static int array[3];
    static thrum_channel_t bounded = THRUM_CHANNEL_INITIALIZER(array);
    static thrum_channel_t unbuffered = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(int));
    static thrum_channel_t unbounded = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(int));
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(thrum_channel_send(&bounded, &i), 0);
    int value = 9;
    EXPECT_EQ(thrum_channel_try_send(&bounded, &value), EAGAIN);
    EXPECT_EQ(thrum_channel_try_send(&unbuffered, &value), EAGAIN);
    EXPECT_EQ(thrum_channel_try_receive(&unbounded, &value), EAGAIN);
    EXPECT_EQ(thrum_channel_try_send(&unbounded, &value), 0);
    EXPECT_EQ(thrum_channel_count(&bounded), 3U);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(thrum_channel_receive(&bounded, &value), 0);
        EXPECT_EQ(value, i);
    }
    EXPECT_EQ(thrum_channel_receive(&unbounded, nullptr), 0);
    EXPECT_EQ(thrum_channel_destroy(&unbounded), 0);
}

// Many senders and receivers: each message arrives once, those of one sender in order at each receiver.
TEST_P(Channel, EachArrivesOnceAndInOrder) {
    constexpr int kSenders = 6, kReceivers = 5;
    const int each = divided(200);
    for (const size_t capacity : kCapacities) {
        Made made(capacity);
        thrum_channel_t *channel = &made.channel;
        std::vector<std::vector<Message>> got(kReceivers);
        std::atomic<int> senders{kSenders};
        crew(kSenders + kReceivers - 3, 2, [&](int who) {
            if (who % 2 == 0 && who / 2 < kReceivers) {
                std::vector<Message> &mine = got[static_cast<size_t>(who / 2)];
                for (Message message; thrum_channel_receive(channel, &message) == 0;)
                    mine.push_back(message);
                return;
            }
            for (int i = 0; i < each; i++) {
                const Message message{who, i};
                EXPECT_EQ(thrum_channel_send(channel, &message), 0);
                if (i % 16 == 0)
                    thrum_yield();
            }
            if (--senders == 0) {
                EXPECT_EQ(thrum_channel_close(channel), 0);
            }
        });
        size_t total = 0;
        for (const std::vector<Message> &mine : got) {
            int last[kSenders + kReceivers];
            std::fill(std::begin(last), std::end(last), -1);
            for (const Message &message : mine) {
                EXPECT_LT(last[message.sender], message.number);
                last[message.sender] = message.number;
            }
            total += mine.size();
        }
        EXPECT_EQ(total, static_cast<size_t>(kSenders * each));
        Message late{};
        EXPECT_EQ(thrum_channel_send(channel, &late), EPIPE);
    }
}

TEST_P(Channel, WaitersAreServedInOrder) {
    for (const size_t capacity : {size_t{0}, size_t{1}}) {
        Made made(capacity);
        std::vector<Light> senders;
        for (int i = 0; i < 4; i++) {
            senders.emplace_back([&, i] {
                const Message message{i, i};
                EXPECT_EQ(thrum_channel_send(&made.channel, &message), 0);
            });
            ASSERT_TRUE(eventually([&] {
                const int stored = static_cast<int>(thrum_channel_count(&made.channel));
                return waiting_senders(made.channel) + stored == i + 1;
            }));
        }
        EXPECT_EQ(thrum_channel_count(&made.channel), capacity);
        for (int i = 0; i < 4; i++) {
            Message message{};
            EXPECT_EQ(thrum_channel_receive(&made.channel, &message), 0);
            EXPECT_EQ(message.sender, i);
        }
    }
}

TEST_P(Channel, DeadlineComes) {
    for (const size_t capacity : {size_t{0}, size_t{2}}) {
        Made made(capacity);
        thrum_channel_t *channel = &made.channel;
        const auto receive_late = [&](int) {
            Message message{};
            const uint64_t moment = in_ms(2);
            EXPECT_EQ(thrum_channel_receive_until(channel, &message, moment), ETIMEDOUT);
            EXPECT_GE(thrum_now(), moment);
        };
        const auto send_late = [&](int) {
            const Message message{7, 7};
            EXPECT_EQ(thrum_channel_send_until(channel, &message, in_ms(2)), ETIMEDOUT);
            EXPECT_EQ(thrum_channel_send_until(channel, &message, 0), ETIMEDOUT);
        };
        receive_late(0);
        in_ult([&] { receive_late(0); });
        Heavies(1, receive_late);
        for (size_t i = 0; i < capacity; i++) {
            const Message message{1, static_cast<int>(i)};
            EXPECT_EQ(thrum_channel_send_until(channel, &message, 0), 0);
        }
        send_late(0);
        in_ult([&] { send_late(0); });
        Heavies(1, send_late);
        EXPECT_EQ(waiting_senders(*channel) + waiting_receivers(*channel), 0);
        for (size_t i = 0; i < capacity; i++) {
            Message message{};
            EXPECT_EQ(thrum_channel_receive_until(channel, &message, 0), 0);
            EXPECT_EQ(message.number, static_cast<int>(i)) << "what came too late is not in there";
        }
        EXPECT_EQ(thrum_channel_try_receive(channel, nullptr), EAGAIN);
    }
}

// What was sent has arrived, what was given up has not.
TEST_P(Channel, NothingIsLostAmongDeadlines) {
    for (const size_t capacity : kCapacities) {
        Made made(capacity);
        thrum_channel_t *channel = &made.channel;
        const int each = divided(120);
        std::atomic<int> senders{6};
        std::atomic<long> sent{0}, received{0};
        crew(10, 2, [&](int who) {
            if (who % 2 == 0 && who < 12) {
                for (int i = 0; i < each; i++) {
                    const Message message{who, i + 1};
                    const uint64_t moment =
                        i % 4 == 0 ? kNever : in_us(static_cast<uint64_t>((i * 7 + who) % 50));
                    if (thrum_channel_send_until(channel, &message, moment) == 0)
                        sent += message.number * 16 + message.sender;
                }
                if (--senders == 0) {
                    EXPECT_EQ(thrum_channel_close(channel), 0);
                }
                return;
            }
            for (int i = 0;; i++) {
                Message message{};
                const uint64_t moment =
                    i % 4 == 0 ? kNever : in_us(static_cast<uint64_t>((i * 5 + who) % 50));
                const int error = thrum_channel_receive_until(channel, &message, moment);
                if (error == EPIPE)
                    break;
                if (error == 0)
                    received += message.number * 16 + message.sender;
            }
        });
        EXPECT_EQ(sent, received);
        EXPECT_GT(received, 0);
    }
}

TEST_P(Channel, CloseWakesAllWaiters) {
    for (const bool timed : {false, true}) {
        const int count = divided(150);
        const uint64_t moment = timed ? in_ms(60000) : kNever;
        Made empty(3), full(1);
        const Message message{1, 1};
        ASSERT_EQ(thrum_channel_send(&full.channel, &message), 0);
        const auto receive = [&](int) {
            EXPECT_EQ(thrum_channel_receive_until(&empty.channel, nullptr, moment), EPIPE);
        };
        const auto send = [&](int) {
            const Message mine{2, 2};
            EXPECT_EQ(thrum_channel_send_until(&full.channel, &mine, moment), EPIPE);
        };
        std::vector<Light> lights;
        for (int i = 0; i < count; i++) {
            lights.emplace_back([&] { receive(0); });
            lights.emplace_back([&] { send(0); });
        }
        Heavies receiver(1, receive), sender(1, send);
        ASSERT_TRUE(eventually([&] {
            return waiting_receivers(empty.channel) == count + 1 &&
                   waiting_senders(full.channel) == count + 1;
        }));
        EXPECT_EQ(thrum_channel_close(&empty.channel), 0);
        EXPECT_EQ(thrum_channel_close(&full.channel), 0);
        EXPECT_EQ(thrum_channel_close(&full.channel), EPIPE);
        lights.clear();
        Message left{};
        EXPECT_EQ(thrum_channel_receive(&full.channel, &left), 0) << "what was sent before it was closed";
        EXPECT_EQ(left.sender, 1);
        EXPECT_EQ(thrum_channel_receive(&full.channel, &left), EPIPE);
        EXPECT_EQ(thrum_channel_try_receive(&full.channel, &left), EPIPE);
        EXPECT_EQ(thrum_channel_try_send(&full.channel, &left), EPIPE);
    }
}

// Closed in the middle: what a sender was told it sent arrives, and nothing else does.
TEST_P(Channel, CloseAmongSendersAndReceivers) {
    for (const size_t capacity : kCapacities) {
        for (int round = 0; round < divided(20); round++) {
            Made made(capacity);
            thrum_channel_t *channel = &made.channel;
            std::atomic<long> sent{0}, received{0};
            std::atomic<int> closed{0};
            crew(9, 1, [&](int who) {
                if (who == 10) {
                    spin_us(round % 10 * 5);
                    closed += thrum_channel_close(channel) == 0;
                    return;
                }
                for (int i = 1, error;; i++) {
                    Message message{who, i};
                    const uint64_t moment = i % 2 == 0 ? kNever : in_us(static_cast<uint64_t>(i % 30));
                    if (who % 2 == 0)
                        error = thrum_channel_send_until(channel, &message, moment);
                    else
                        error = thrum_channel_receive_until(channel, &message, moment);
                    if (error == 0)
                        (who % 2 == 0 ? sent : received) += message.number * 16 + message.sender;
                    if (error == EPIPE)
                        break;
                    if (i == 50 && who == 4)
                        closed += thrum_channel_close(channel) == 0;
                }
            });
            EXPECT_EQ(closed, 1);
            EXPECT_EQ(sent, received);
        }
    }
}

// The receiver that is told so frees it, while the one that has closed it is still in there.
TEST_P(Channel, IsGoneAsSoonAsItIsClosed) {
    for (int i = 0; i < divided(300); i++) {
        OnPage<thrum_channel_t> page;
        ASSERT_EQ(thrum_channel_init(page.get(), sizeof(Message), 0, nullptr), 0);
        Light receiver([&] {
            Message message{};
            while (thrum_channel_receive_until(page.get(), &message, i % 3 == 0 ? in_ms(60000) : kNever) ==
                   0) {
            }
            EXPECT_EQ(message.number, 5);
            page.drop();
        });
        const Message message{i, 5};
        EXPECT_EQ(thrum_channel_send(page.get(), &message), 0);
        if (i % 2 == 0)
            spin_us(i % 7);
        EXPECT_EQ(thrum_channel_close(page.get()), 0);
    }
}

TEST_P(Channel, ElementsOfAllSizes) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, size_t{24}, size_t{5000}, size_t{100000}}) {
        std::vector<unsigned char> storage(size * 5), in(size), out(size);
        for (const size_t capacity : {size_t{0}, size_t{5}, THRUM_CHANNEL_UNBOUNDED}) {
            thrum_channel_t channel;
            ASSERT_EQ(thrum_channel_init(&channel, size, capacity, storage.data()), 0);
            const unsigned count = 40;
            Light sender([&] {
                for (unsigned i = 0; i < count; i++) {
                    std::iota(in.begin(), in.end(), static_cast<unsigned char>(i));
                    EXPECT_EQ(thrum_channel_send(&channel, in.data()), 0);
                }
            });
            for (unsigned i = 0; i < count; i++) {
                EXPECT_EQ(thrum_channel_receive(&channel, out.data()), 0);
                if (size != 0) {
                    EXPECT_EQ(out[0], static_cast<unsigned char>(i));
                    EXPECT_EQ(out[size - 1], static_cast<unsigned char>(i + size - 1));
                }
            }
            EXPECT_EQ(thrum_channel_destroy(&channel), 0);
        }
    }
}

TEST_P(Channel, UnboundedGrowsAndShrinks) {
    Made made(THRUM_CHANNEL_UNBOUNDED);
    thrum_channel_t *channel = &made.channel;
    const int count = divided(100000);
    const size_t before = mapped_bytes();
    int next = 0;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < count; i++) {
            const Message message{0, i};
            ASSERT_EQ(thrum_channel_try_send(channel, &message), 0);
        }
        EXPECT_EQ(thrum_channel_count(channel), static_cast<size_t>(count));
        for (next = 0; next < count; next++) {
            Message message{};
            ASSERT_EQ(thrum_channel_try_receive(channel, &message), 0);
            ASSERT_EQ(message.number, next);
        }
        if (!has_foreign_mappings()) {
            EXPECT_LE(mapped_bytes(), before + 2 * 65536) << "a spare block is kept";
        }
    }
    const Message left{0, next};
    for (int i = 0; i < count; i++) // destroying frees the blocks
        ASSERT_EQ(thrum_channel_send(channel, &left), 0);
}

TEST_P(Channel, WithoutMemorySendingFails) {
    Made made(THRUM_CHANNEL_UNBOUNDED);
    const Message message{1, 2};
    faults.mmap.after(0, 2, ENOMEM);
    EXPECT_EQ(thrum_channel_send(&made.channel, &message), ENOMEM);
    EXPECT_EQ(thrum_channel_try_send(&made.channel, &message), ENOMEM);
    EXPECT_EQ(thrum_channel_send(&made.channel, &message), 0);
    EXPECT_EQ(thrum_channel_count(&made.channel), 1U);
    faults_clear();
}

TEST_P(Channel, IsReportedWhileInUse) {
    Made made(0);
    Light light([&] { EXPECT_EQ(thrum_channel_receive(&made.channel, nullptr), EPIPE); });
    ASSERT_TRUE(eventually([&] { return waiting_receivers(made.channel) == 1; }));
    expect_misuse(EBUSY, "thrum_channel_destroy: a thread still waits for this channel",
                  [&] { return thrum_channel_destroy(&made.channel); });
    EXPECT_EQ(thrum_channel_close(&made.channel), 0);
}

ULT_OVER_WORKERS(Channel);

} // namespace
