// SPDX-License-Identifier: Apache-2.0
//
// fresh/creator: what one thread captures, another has after applying it.
#include <fenv.h>
#include <string.h>
#include <sys/prctl.h>

#include "layer.hpp"

namespace {

cpu_set_t affinity_now() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
}

// The first CPU that the process may use, or the last.
cpu_set_t one_cpu(bool last) {
    cpu_set_t all = affinity_now(), one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (!last)
                break;
        }
    return one;
}

std::string name_now() {
    char name[16] = {};
    prctl(PR_GET_NAME, name);
    return name;
}

TEST(Creator, FloatingPointEnvironment) {
    fresh_creator creator{};
    volatile double one = 1, three = 3;
    const double nearest = one / three;
    Plain([&] {
        fesetround(FE_UPWARD);
        feclearexcept(FE_ALL_EXCEPT);
        feraiseexcept(FE_DIVBYZERO);
        creator_capture(&creator);
    }).join();
    Plain([&] {
        fresh_state state{};
        feraiseexcept(FE_INVALID);
        creator_apply(&creator, &state);
        EXPECT_EQ(fetestexcept(FE_DIVBYZERO | FE_INVALID), FE_DIVBYZERO)
            << "the creator's flags, not the thread's";
        EXPECT_EQ(fegetround(), FE_UPWARD);
        EXPECT_GT(one / three, nearest);
        fesetround(FE_TONEAREST);
    }).join();
    Plain([&] {
        fresh_creator plain{};
        fresh_state state{};
        creator_capture(&plain);
        fesetround(FE_DOWNWARD);
        feraiseexcept(FE_OVERFLOW);
        creator_apply(&plain, &state);
        EXPECT_EQ(fegetround(), FE_TONEAREST);
        EXPECT_EQ(fetestexcept(FE_OVERFLOW), 0);
        EXPECT_EQ(one / three, nearest);
    }).join();
}

TEST(Creator, Name) {
    fresh_creator creator{};
    creator_names_differ();
    Plain([&] {
        prctl(PR_SET_NAME, "fifteen letters");
        creator_capture(&creator);
    }).join();
    EXPECT_TRUE(creator.has_name);
    Plain([&] {
        fresh_state state{};
        prctl(PR_SET_NAME, "another");
        creator_apply(&creator, &state);
        EXPECT_EQ(name_now(), "fifteen letters");
        creator.has_name = false;
        prctl(PR_SET_NAME, "kept");
        creator_apply(&creator, &state);
        EXPECT_EQ(name_now(), "kept");
    }).join();
}

// What one thread captures and one has, with room for their masks.
struct Masked {
    Masked() {
        layer_init();
        EXPECT_LE(creator_masks_size(), sizeof masks);
        creator_masks_place(&creator, &state, masks);
    }
    Masked(const Masked &) = delete;
    fresh_creator creator{};
    fresh_state state{};
    alignas(64) char masks[2 * FRESH_CPU_WORDS * sizeof(unsigned long)];
};

class CreatorAffinity : public testing::Test {
  protected:
    void SetUp() override {
        first_ = one_cpu(false);
        last_ = one_cpu(true);
        if (CPU_EQUAL(&first_, &last_))
            GTEST_SKIP() << "one CPU: there is no other affinity to go to";
        Plain([this] {
            sched_setaffinity(0, sizeof first_, &first_);
            creator_capture(on_first_);
        }).join();
        ASSERT_GT(on_first_->affinity.length, 0u);
    }
    static void expect(const cpu_set_t &set) {
        cpu_set_t now = affinity_now();
        EXPECT_TRUE(CPU_EQUAL(&now, &set));
    }
    cpu_set_t first_, last_;
    Masked masked_;
    fresh_creator *on_first_ = &masked_.creator;
};

TEST_F(CreatorAffinity, IsApplied) {
    Plain([this] {
        Masked own;
        fresh_state &state = own.state;
        sched_setaffinity(0, sizeof last_, &last_);
        creator_capture(&own.creator);
        creator_inherited(&state);
        creator_apply(on_first_, &state);
        expect(first_);
        EXPECT_EQ(state.affinity.length, on_first_->affinity.length);
        EXPECT_EQ(memcmp(state.affinity.bits, on_first_->affinity.bits, on_first_->affinity.length), 0);
        creator_apply(&own.creator, &state);
        expect(last_);
    }).join();
}

// Where a machine has more CPUs than a word has bits, the bits are elsewhere.
TEST_F(CreatorAffinity, IsAppliedWhereMasksAreLong) {
    Plain([this] {
        unsigned long captured[FRESH_CPU_WORDS] = {}, known[FRESH_CPU_WORDS] = {};
        fresh_creator own{};
        fresh_state state{};
        own.affinity.bits = captured;
        state.affinity.bits = known;
        sched_setaffinity(0, sizeof last_, &last_);
        creator_capture(&own);
        ASSERT_GT(own.affinity.length, 0u);
        EXPECT_EQ(memcmp(captured, &last_, own.affinity.length), 0);
        creator_apply(on_first_, &state);
        expect(first_);
        creator_apply(&own, &state);
        expect(last_);
        EXPECT_EQ(memcmp(known, captured, own.affinity.length), 0);
    }).join();
}

TEST_F(CreatorAffinity, TheKernelIsNotAskedForWhatIsRemembered) {
    Plain([this] {
        Masked own;
        fresh_state &state = own.state;
        creator_apply(on_first_, &state); // so it is remembered, ...
        sched_setaffinity(0, sizeof last_, &last_);
        creator_apply(on_first_, &state);
        expect(last_); // ... though it is not so: no call has reported a change
        creator_affinity_changes();
        creator_affinity_changed(&state);
        creator_apply(on_first_, &state);
        expect(first_);
    }).join();
}

TEST_F(CreatorAffinity, OneThatCouldNotBeReadIsNotApplied) {
    Plain([this] {
        Masked own;
        on_first_->affinity.length = 0;
        sched_setaffinity(0, sizeof last_, &last_);
        creator_apply(on_first_, &own.state);
        expect(last_);
    }).join();
}

TEST_F(CreatorAffinity, WithoutRoomForItIsUnknown) {
    Plain([] {
        fresh_creator creator{};
        creator_capture(&creator);
        EXPECT_EQ(creator.affinity.length, 0u);
    }).join();
}

// Most of a descriptor were masks of 8192 CPUs once.
TEST_F(CreatorAffinity, MasksAreAsLargeAsThisMachineNeeds) {
    const size_t length = on_first_->affinity.length;
    EXPECT_EQ(creator_masks_size(), length <= sizeof(long) ? 0 : (2 * length + 63) / 64 * 64);
    if (length > sizeof(long)) {
        cpu_set_t set;
        EXPECT_EQ(syscall(SYS_sched_getaffinity, 0, length / 2, &set), -1)
            << "half of it would have been enough";
    }
    EXPECT_LE(sizeof(kthread), 1024u);
}

TEST(Creator, KeyRightsAreCapturedOnceTheyAreUsed) {
    if (!ARCH_PKEYS || pkey_alloc(0, 0) < 0)
        GTEST_SKIP() << "no protection keys on this machine";
    fresh_creator creator{};
    creator_pkeys_used();
    const arch_pkeys usual = arch_pkeys_save(), other = usual ^ (UINT32_C(3) << 30);
    Plain([&] {
        arch_pkeys_load(other);
        creator_capture(&creator);
        arch_pkeys_load(usual);
    }).join();
    Plain([&] {
        fresh_state state{};
        creator_apply(&creator, &state);
        const arch_pkeys now = arch_pkeys_save();
        arch_pkeys_load(usual);
        EXPECT_EQ(now, other);
    }).join();
}

} // namespace
