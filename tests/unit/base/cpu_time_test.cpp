// SPDX-License-Identifier: Apache-2.0
//
// fresh/cpu_time: what earlier jobs used is remembered and subtracted.
#include "layer.hpp"

namespace {

rusage usage_of(time_t seconds, suseconds_t micros, long count) {
    rusage usage{};
    usage.ru_utime = {seconds, micros};
    usage.ru_stime = {2 * seconds, micros};
    usage.ru_minflt = count;
    usage.ru_majflt = count + 1;
    usage.ru_inblock = count + 2;
    usage.ru_oublock = count + 3;
    usage.ru_nvcsw = count + 4;
    usage.ru_nivcsw = count + 5;
    return usage;
}

TEST(CpuTime, SubtractsEachField) {
    fresh_state state{};
    state.usage_base = usage_of(1, 900000, 100);
    state.usage_base.ru_maxrss = 10;
    rusage usage = usage_of(3, 100000, 1000);
    usage.ru_minflt += 1;
    usage.ru_majflt += 2;
    usage.ru_inblock += 3;
    usage.ru_oublock += 4;
    usage.ru_nvcsw += 5;
    usage.ru_nivcsw += 6;
    usage.ru_maxrss = 99;
    cpu_time_adjust_usage(&state, &usage);
    EXPECT_EQ(usage.ru_utime.tv_sec, 1);
    EXPECT_EQ(usage.ru_utime.tv_usec, 200000);
    EXPECT_EQ(usage.ru_stime.tv_sec, 3);
    EXPECT_EQ(usage.ru_stime.tv_usec, 200000);
    EXPECT_EQ(usage.ru_minflt, 901);
    EXPECT_EQ(usage.ru_majflt, 902);
    EXPECT_EQ(usage.ru_inblock, 903);
    EXPECT_EQ(usage.ru_oublock, 904);
    EXPECT_EQ(usage.ru_nvcsw, 905);
    EXPECT_EQ(usage.ru_nivcsw, 906);
    EXPECT_EQ(usage.ru_maxrss, 99) << "the process's: not a sum over jobs";
}

TEST(CpuTime, NeverNegative) {
    fresh_state state{};
    state.usage_base.ru_utime = {2, 5};
    state.usage_base.ru_stime = {2, 5};
    rusage usage{};
    usage.ru_utime = {2, 4};
    usage.ru_stime = {1, 900000};
    cpu_time_adjust_usage(&state, &usage);
    EXPECT_TRUE(usage.ru_utime.tv_sec == 0 && usage.ru_utime.tv_usec == 0);
    EXPECT_TRUE(usage.ru_stime.tv_sec == 0 && usage.ru_stime.tv_usec == 0);
}

TEST(CpuTime, AskingRemembersWhatThisThreadHasUsed) {
    Plain([] {
        fresh_state state{};
        const uint64_t start = clock_thread_cpu_ns();
        while (clock_thread_cpu_ns() < start + 20000000) {
        }
        const uint64_t before = clock_thread_cpu_ns();
        cpu_time_ask(&state);
        const uint64_t after = clock_thread_cpu_ns();
        EXPECT_LE(before, state.cpu_base_ns);
        EXPECT_LE(state.cpu_base_ns, after);
        rusage usage{};
        getrusage(RUSAGE_THREAD, &usage);
        EXPECT_GT(state.usage_base.ru_utime.tv_usec + state.usage_base.ru_stime.tv_usec, 0);
        cpu_time_adjust_usage(&state, &usage);
        EXPECT_EQ(usage.ru_utime.tv_sec, 0);
        EXPECT_LT(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec, 15000) << "of the next job: nothing yet";
    }).join();
}

// Brief jobs are not asked about one by one: the time since the last question counts as used, and a program that
// reads such clocks is asked about always.
TEST(CpuTime, TimeThatWasNotAskedAboutIsTakenForUsed) {
    while (ticks_per_us() == 0) {
    }
    fresh_state state{};
    state.cpu_base_ns = 7000000;
    state.cpu_base_ticks = 1000 * ticks_per_us();
    state.cpu_start_ticks = 1250 * ticks_per_us();
    EXPECT_EQ(cpu_time_base(&state, nullptr), 7250000u);
    rusage usage{};
    usage.ru_utime = {0, 1000};
    cpu_time_adjust_usage(&state, &usage);
    EXPECT_EQ(usage.ru_utime.tv_usec, 750);
    // No thread has read such a clock yet: what little time has passed is taken for used, but not a long sleep.
    state.cpu_base_ticks = arch_ticks() - 300 * ticks_per_us();
    cpu_time_begin(&state);
    if (state.cpu_base_ns == 7000000) { // else it took long to come here
        EXPECT_GE(cpu_time_base(&state, nullptr), 7300000u);
        EXPECT_LE(cpu_time_base(&state, nullptr), 8000000u);
    }
    state.cpu_base_ticks = arch_ticks() - 5000000 * ticks_per_us();
    state.cpu_asked = false;
    cpu_time_begin(&state);
    EXPECT_LE(cpu_time_base(&state, nullptr), clock_thread_cpu_ns());
    state.cpu_base_ns = 7000000;
    EXPECT_FALSE(cpu_time_wanted());
    cpu_time_want();
    EXPECT_TRUE(cpu_time_wanted());
    state.cpu_start_ticks = state.cpu_base_ticks;
    state.cpu_asked = true;
    cpu_time_begin(&state);
    EXPECT_EQ(cpu_time_base(&state, nullptr), 7000000u);
}

// A reader of the clock of a thread that has been handed a job waits until it has begun.
TEST(CpuTime, WaitsForAThreadThatIsStarting) {
    fresh_state state{};
    const uint32_t starting = GATE_STARTING;
    cpu_time_end(&state);
    EXPECT_EQ(cpu_time_base(&state, nullptr), 0u);
    Plain begins([&] {
        cpu_time_ask(&state);
        cpu_time_begin(&state);
    });
    EXPECT_GT(cpu_time_base(&state, &starting), 0u);
    begins.join();
}

} // namespace
