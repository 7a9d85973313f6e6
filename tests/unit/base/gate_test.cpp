// SPDX-License-Identifier: Apache-2.0
//
// kthread/gate: a visitor inside holds the thread up, one that comes too early waits, one that comes too late is
// refused.
#include "layer.hpp"

namespace {

TEST(Gate, OpenLetsSeveralIn) {
    uint32_t gate = GATE_OPEN;
    EXPECT_TRUE(gate_enter(&gate));
    EXPECT_TRUE(gate_enter(&gate));
    EXPECT_EQ(gate, 2u);
    gate_leave(&gate);
    gate_leave(&gate);
    EXPECT_EQ(gate, GATE_OPEN);
}

// All that can be blocked here: all but SIGKILL and SIGSTOP, and less in an emulator, which keeps some signals for
// itself.
sigbits blockable() {
    const sigbits before = signals_mask_set(SIGBITS_ALL);
    const sigbits most = signals_mask_set(before);
    if (!UNIT_EMULATED) {
        EXPECT_EQ(most | 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1), SIGBITS_ALL);
    }
    return most;
}

TEST(Gate, VisitorsHaveAllSignalsBlocked) {
    uint32_t gate = GATE_OPEN;
    gate_visit visit;
    const sigbits before = signals_mask_get();
    ASSERT_TRUE(gate_visit_begin(&visit, &gate));
    const sigbits meanwhile = signals_mask_get();
    gate_visit_end(&visit);
    EXPECT_EQ(meanwhile, blockable());
    EXPECT_EQ(signals_mask_get(), before);
    EXPECT_EQ(gate, GATE_OPEN);
}

TEST(Gate, ClosedRefuses) {
    uint32_t gate = GATE_OPEN;
    gate_visit visit;
    const sigbits before = signals_mask_get();
    gate_close(&gate); // no visitor: at once
    EXPECT_FALSE(gate_enter(&gate));
    EXPECT_FALSE(gate_visit_begin(&visit, &gate));
    EXPECT_EQ(signals_mask_get(), before);
    EXPECT_EQ(gate, GATE_CLOSED);
    gate_open(&gate);
    EXPECT_TRUE(gate_enter(&gate));
}

TEST(Gate, CloseWaitsForEachVisitorAndRefusesMore) {
    uint32_t gate = GATE_OPEN;
    std::atomic<bool> closed{false};
    ASSERT_TRUE(gate_enter(&gate));
    ASSERT_TRUE(gate_enter(&gate));
    Plain closer([&] {
        gate_close(&gate);
        closed = true;
    });
    EXPECT_TRUE(eventually([&] { return load_relaxed(&gate) == (GATE_CLOSED | 2); }));
    EXPECT_FALSE(gate_enter(&gate));
    gate_leave(&gate);
    a_while();
    EXPECT_FALSE(closed) << "one is still inside";
    gate_leave(&gate);
    EXPECT_TRUE(eventually([&] { return closed.load(); }));
    EXPECT_EQ(load_relaxed(&gate), GATE_CLOSED);
}

TEST(Gate, StartingMakesVisitorsWaitUntilItOpens) {
    uint32_t gate = GATE_STARTING;
    std::atomic<int> inside{0};
    std::vector<std::unique_ptr<Plain>> visitors;
    for (int i = 0; i < 3; i++)
        visitors.push_back(std::make_unique<Plain>([&] {
            gate_visit visit;
            EXPECT_TRUE(gate_visit_begin(&visit, &gate));
            inside++;
            gate_visit_end(&visit);
        }));
    EXPECT_TRUE(eventually([&] { return load_relaxed(&gate) == (GATE_STARTING | GATE_CALLERS); }));
    a_while();
    EXPECT_EQ(inside, 0);
    gate_open(&gate);
    EXPECT_TRUE(eventually([&] { return inside == 3; })) << "all are woken";
    visitors.clear();
    EXPECT_EQ(gate, GATE_OPEN);
}

// Visitors against a thread that goes through one life after another: a visitor inside sees the life that it
// entered, and what it wrote has been seen when the life's gate is closed.
void expect_lives_kept_apart(int threads, int lives) {
    uint32_t gate = GATE_CLOSED;
    std::atomic<bool> over{false};
    std::atomic<long> refused{0};
    long entered = 0, noted = 0, life = 0; // `life` is written outside any visit only
    lock notes{};
    std::vector<std::unique_ptr<Plain>> visitors;
    for (int i = 0; i < threads; i++)
        visitors.push_back(std::make_unique<Plain>([&] {
            while (!over) {
                if (!gate_enter(&gate)) {
                    refused++;
                    usleep(200); // the thread under test gets its turn
                    continue;
                }
                const long mine = life;
                lock_acquire(&notes);
                entered++;
                lock_release(&notes);
                EXPECT_EQ(life, mine);
                gate_leave(&gate);
            }
        }));
    for (int i = 0; i < lives; i++) {
        store_release(&gate, GATE_STARTING);
        sched_yield();
        gate_open(&gate);
        sched_yield();
        gate_close(&gate);
        life++;          // a race, were a visitor still inside
        noted = entered; // likewise
    }
    over = true;
    visitors.clear();
    EXPECT_EQ(gate, GATE_CLOSED);
    EXPECT_EQ(noted, entered);
}

TEST(Gate, ManyVisitorsManyLives) {
    for (int threads :
         {1, 2, 4, 8}) // each life waits for a slice of every visitor, and of whatever else runs
        expect_lives_kept_apart(threads, 200 / kStressDivisor + 20);
    expect_lives_kept_apart(64, 20);
}

TEST(HeavyGate, ManyMoreVisitorsManyLives) {
    for (int threads : {1, 2, 4, 8, 64})
        expect_lives_kept_apart(threads, 1000 / kStressDivisor + 20);
}

} // namespace
