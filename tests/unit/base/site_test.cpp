// SPDX-License-Identifier: Apache-2.0
//
// What is known of a program's places that create threads (src/kthread/site.h).
#include <gtest/gtest.h>

#include <thread>

#include "core.hpp"

namespace {

void *one(void *arg) {
    return arg;
}
void *other(void *arg) {
    return arg;
}

TEST(Site, AStartRoutineIsAPlaceWhateverItsArgument) {
    int x = 0;
    EXPECT_EQ(site_of(one, nullptr), site_of(one, &x));
    EXPECT_NE(site_of(one, nullptr), site_of(other, nullptr));
    EXPECT_EQ(site_of(one, nullptr)->id, reinterpret_cast<uintptr_t>(one));
}

TEST(Site, ANewcomerKnowsNothingOfItsSlotsFormerOwner) {
    site *place = site_of(one, nullptr);
    for (int i = 0; i < 10; i++)
        site_score(&place->brief, true);
    EXPECT_TRUE(site_says(&place->brief));
    place->id = 1; // another place took it
    EXPECT_EQ(site_of(one, nullptr), place);
    EXPECT_FALSE(site_says(&place->brief));
    EXPECT_EQ(place->batch, 1u);
}

TEST(Site, AScoreForgivesOneMissAndNotMany) {
    uint32_t score = 0;
    for (int i = 0; i < 100; i++)
        site_score(&score, true);
    EXPECT_EQ(score, static_cast<uint32_t>(SITE_SCORE_MAX));
    site_score(&score, false);
    EXPECT_TRUE(site_says(&score));
    for (int i = 0; i < 4; i++)
        site_score(&score, false);
    EXPECT_FALSE(site_says(&score));
    EXPECT_EQ(score, 0u);
}

// std::thread has one start routine for all: the callable's type tells the place.
TEST(Site, CallablesOfStdThreadAreToldApart) {
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *) {
            site_module_seen(info);
            return 0;
        },
        nullptr);
    dl_phdr_info library{};
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *found) {
            if (std::string(info->dlpi_name).find("libstdc++.so.") != std::string::npos)
                *static_cast<dl_phdr_info *>(found) = *info;
            return 0;
        },
        &library);
    ASSERT_NE(library.dlpi_phdr, nullptr) << "this test wants a libstdc++ of its own file";
    uintptr_t code = 0;
    for (int i = 0; i < library.dlpi_phnum; i++)
        if (library.dlpi_phdr[i].p_type == PT_LOAD && (library.dlpi_phdr[i].p_flags & PF_X))
            code = library.dlpi_addr + library.dlpi_phdr[i].p_vaddr;
    auto start = reinterpret_cast<void *(*)(void *)>(code + 64);
    const uintptr_t tables[2] = {0x1000, 0x2000};
    struct {
        uintptr_t table;
    } first{tables[0]}, again{tables[0]}, second{tables[1]};
    EXPECT_EQ(site_of(start, &first), site_of(start, &again));
    EXPECT_NE(site_of(start, &first), site_of(start, &second));
    EXPECT_EQ(site_of(start, &first)->id, tables[0]);
}

struct Moment {
    uint64_t ns, ticks;
};

// Both clocks at one time: again if something came in between.
Moment now() {
    for (;;) {
        const uint64_t before = clock_monotonic_ns(), ticks = arch_ticks(), after = clock_monotonic_ns();
        if (after - before < 20000)
            return {before + (after - before) / 2, ticks};
    }
}

TEST(Ticks, GoAtTheMeasuredRate) {
    while (ticks_per_us() == 0) {
    }
    const Moment begin = now();
    while (clock_monotonic_ns() < begin.ns + 50000000) {
    }
    const Moment end = now();
    const double us = static_cast<double>(end.ticks - begin.ticks) / static_cast<double>(ticks_per_us());
    EXPECT_NEAR(us * 1000 / static_cast<double>(end.ns - begin.ns), 1, 0.05);
}

} // namespace
