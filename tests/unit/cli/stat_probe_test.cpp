// SPDX-License-Identifier: Apache-2.0
//
// The layers of `thrum stat` that look into the program: exact futex waits and CPU profiles. Judged on counts that are
// known beforehand, on where samples are, and on what the program prints with and without them.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>

#include "../../refuse_call.h"
#include "layered.hpp"
#include "stat/collect.hpp"
#include "stat/hardware.hpp"
#include "stat/switches.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"

namespace {

using namespace thrum;
using namespace thrum::stat;

Words waits_program(const Words &arguments) {
    Words words{CLI_WAITS};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

// --- exact waits --------------------------------------------------------------------------------------------

struct Counted {
    Ended ended;
    std::unique_ptr<ExactLayer> layer;
    std::map<std::uint64_t, std::uint64_t> by_address;
    std::uint64_t total = 0;

    std::uint64_t futex(unsigned operation) const {
        for (const auto &[of, times] : layer->futex_calls)
            if (of == operation)
                return times;
        return 0;
    }
    std::uint64_t calls(long number) const {
        for (const auto &[of, times] : layer->system_calls)
            if (of == number)
                return times;
        return 0;
    }
    std::uint64_t other(const std::string &name) const {
        for (const auto &[of, times] : layer->other_calls)
            if (of == name)
                return times;
        return 0;
    }
    bool has(std::uint64_t waits) const {
        for (const auto &[address, count] : by_address)
            if (count == waits)
                return true;
        return false;
    }
    std::string said() const {
        std::string text;
        for (const std::string &line : layer->warnings)
            text += line + "\n";
        return text;
    }
};

bool tells(const Layer &layer, const std::string &piece) {
    return std::any_of(layer.how_known.begin(), layer.how_known.end(), [&](const std::string &sentence) {
        return sentence.find(piece) != std::string::npos;
    });
}

Counted count(const Words &arguments) {
    Counted counted;
    counted.layer = make_exact(CLI_WAITS);
    counted.ended = run(waits_program(arguments), counted.layer.get());
    counted.layer->finish();
    for (const ExactWait &wait : counted.layer->waits) {
        counted.by_address[wait.address] += wait.waits;
        counted.total += wait.waits;
    }
    return counted;
}

void expect_same_end(const Words &arguments, const Counted &counted) {
    const Ended bare = run(waits_program(arguments));
    EXPECT_EQ(counted.ended.out, bare.out);
    EXPECT_EQ(counted.ended.status, bare.status);
}

void expect_same(const Words &arguments, const Counted &counted) {
    expect_same_end(arguments, counted);
    EXPECT_EQ(counted.said(), "");
}

TEST(Exact, CountsEachWait) {
    const Counted counted = count({"vain", "1000"});
    EXPECT_EQ(counted.total, 1000u);
    EXPECT_EQ(counted.futex(FUTEX_WAIT), 1000u);
    expect_same({"vain", "1000"}, counted);
}

TEST(Exact, CountsSystemCallsByKind) {
    const Counted none = count({"calls", "0"}), some = count({"calls", "300"});
    EXPECT_EQ(some.futex(FUTEX_WAKE) - none.futex(FUTEX_WAKE), 300u);
    EXPECT_EQ(some.futex(FUTEX_WAIT), none.futex(FUTEX_WAIT));
    EXPECT_EQ(some.calls(SYS_sched_yield) - none.calls(SYS_sched_yield), 300u);
    EXPECT_EQ(some.total, 0u) << "none of these waits";
    expect_same({"calls", "300"}, some);
}

// By tracepoints, where they are allowed.
TEST(Exact, CountsOtherSystemCalls) {
    const Counted none = count({"calls", "0"}), some = count({"calls", "300"});
    const bool is_told = some.layer->how_known[1].find("tracepoints, which need root") != std::string::npos;
    EXPECT_EQ(some.layer->other_calls.empty(), is_told) << some.layer->how_known[1];
    if (some.layer->other_calls.empty())
        GTEST_SKIP() << "no tracepoints here";
    EXPECT_EQ(some.other("gettid") - none.other("gettid"), 300u);
    EXPECT_GT(some.other("mmap"), 0u) << "of the dynamic linker's";
}

TEST(Exact, CountsWaitsForALockAtItsAddress) {
    const Counted counted = count({"lock", "50"});
    const std::uint64_t address = std::stoull(counted.ended.out, nullptr, 16);
    ASSERT_EQ(counted.by_address.count(address), 1u) << counted.said();
    EXPECT_EQ(counted.by_address.at(address), 50u);
    EXPECT_EQ(counted.layer->threads_created, 1u);
    EXPECT_EQ(counted.layer->threads_joined, 1u);
    EXPECT_EQ(counted.said(), "");
}

TEST(Exact, HasTheStackOfAWait) {
    const Counted counted = count({"lock", "5"});
    ASSERT_FALSE(counted.layer->maps.empty());
    EXPECT_NE(counted.layer->maps.back().text.find("/cli-waits"), std::string::npos);
    EXPECT_NE(counted.layer->maps.back().text.find("/libc.so"), std::string::npos);
    for (const ExactWait &wait : counted.layer->waits) {
        EXPECT_NE(wait.stack.pc, 0u);
        EXPECT_TRUE(wait.stack.has_bp);
        EXPECT_GE(wait.stack.bytes.size(), 256u);
        EXPECT_LE(wait.stack.bytes.size(), 8192u);
        EXPECT_GT(wait.seconds, 0.0);
    }
}

TEST(Exact, CountsInForkedChildrenToo) {
    const Counted counted = count({"fork", "40"});
    EXPECT_EQ(counted.total, 80u);
    expect_same({"fork", "40"}, counted);
}

TEST(Exact, LeavesSignalsAlone) {
    expect_same({"signals"}, count({"signals"}));
}

TEST(Exact, WaitsWhereTheProgramBlocksAllSignals) {
    const Counted counted = count({"masks", "30"});
    EXPECT_TRUE(counted.has(64)) << counted.total;
    expect_same({"masks", "30"}, counted);
}

TEST(Exact, LeavesTimeLimitsAlone) {
    expect_same({"timed"}, count({"timed"}));
}

TEST(Exact, LeavesCancellationAlone) {
    expect_same({"cancel"}, count({"cancel"}));
}

TEST(Exact, LeavesOtherKindsOfMutexesAlone) {
    expect_same({"kinds"}, count({"kinds"}));
}

TEST(Exact, LeavesAFilterOfTheProgramsAlone) {
    const Counted counted = count({"sandbox", "6"});
    EXPECT_EQ(counted.total, 12u);
    expect_same({"sandbox", "6"}, counted);
}

TEST(Exact, CopiesNoMoreThanThereIsOfAStack) {
    const Counted counted = count({"coroutine", "25"});
    EXPECT_EQ(counted.total, 25u);
    ASSERT_EQ(counted.layer->waits.size(), 1u);
    EXPECT_GT(counted.layer->waits[0].stack.bytes.size(), 16u);
    EXPECT_LT(counted.layer->waits[0].stack.bytes.size(), 4096u);
    expect_same({"coroutine", "25"}, counted);
}

TEST(Exact, CountsAThousandThreads) {
    const Counted counted = count({"threads", "1000"});
    EXPECT_EQ(counted.layer->threads_created, 1000u);
    EXPECT_EQ(counted.layer->threads_joined, 1000u);
    expect_same({"threads", "1000"}, counted);
}

// The filter stays when the program executes another one, and the handler does not: without the library in it there,
// too, with a static program as well.
TEST(Exact, LetsTheProgramExecuteOthers) {
    const Counted bare = count({"bare-exec", CLI_WAITS, "vain", "9"});
    expect_same_end({"bare-exec", CLI_WAITS, "vain", "9"}, bare);
    const Counted counted = count({"exec", CLI_WAITS, "vain", "9"});
    EXPECT_EQ(counted.total, 9u) << "of the program that was executed in its place";
    expect_same({"exec", CLI_WAITS, "vain", "9"}, counted);
#ifdef CLI_STATIC_PROGRAM
    expect_same_end({"exec", CLI_STATIC_PROGRAM}, count({"exec", CLI_STATIC_PROGRAM}));
#endif
}

TEST(Exact, ThreadsAreThoseOfTheLastProgram) {
    const Counted counted = count({"become-with-threads", CLI_WAITS, "lock", "50"});
    EXPECT_EQ(counted.layer->threads_created, 1u);
    EXPECT_EQ(counted.layer->threads_joined, 1u);
}

// Its waits are not counted from then on, and that is said.
TEST(Exact, SaysWhatItDidNotSeeOfProgramsThatAreExecuted) {
    const Counted again = count({"become", CLI_WAITS, "vain", "9"});
    EXPECT_EQ(again.total, 9u);
    EXPECT_TRUE(tells(*again.layer, "exact waits are of the last"));
    expect_same({"become", CLI_WAITS, "vain", "9"}, again);
    const auto expect_unseen = [](const Words &arguments, const std::string &program) {
        const Counted counted = count(arguments);
        expect_same_end(arguments, counted);
        EXPECT_EQ(counted.total, 7u) << "of the program that executed it";
        EXPECT_NE(counted.said().find("executed " + program + " in its place"), std::string::npos)
            << counted.said();
        EXPECT_NE(counted.said().find("only what it did before that"), std::string::npos) << counted.said();
        ASSERT_FALSE(counted.layer->maps.empty());
        EXPECT_NE(counted.layer->maps.back().text.find("/libthrum-stat.so"), std::string::npos)
            << "the map is that of what was counted";
    };
    expect_unseen({"bare-become", CLI_WAITS, "vain", "9"}, CLI_WAITS);
#ifdef CLI_WAITS_STATIC
    expect_unseen({"become", CLI_WAITS_STATIC, "burn", "100"}, CLI_WAITS_STATIC);
#endif
}

#ifdef CLI_WAITS_STATIC
TEST(Exact, SaysWhatItDidNotSeeInBetween) {
    const Words arguments{"become", CLI_WAITS_STATIC, "become", CLI_WAITS, "vain", "9"};
    const Counted counted = count(arguments);
    expect_same_end(arguments, counted);
    EXPECT_EQ(counted.total, 9u);
    EXPECT_NE(counted.said().find("executed " + std::string(CLI_WAITS_STATIC)), std::string::npos)
        << counted.said();
    EXPECT_NE(counted.said().find("before it executed another one"), std::string::npos) << counted.said();
    EXPECT_EQ(counted.said().find("only what it did before that"), std::string::npos) << counted.said();
}
#endif

constexpr uid_t kNoLife = 65534;

// An ordinary user, where this is root.
bool drop_privileges() {
    return getuid() != 0 || (setuid(kNoLife) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
}

// A copy of the program that runs with its owner's rights.
struct ProgramWithRights {
    explicit ProgramWithRights(uid_t owner) {
        EXPECT_NE(mkdtemp(folder), nullptr);
        path = std::string(folder) + "/waits";
        std::ofstream(path, std::ios::binary) << std::ifstream(CLI_WAITS, std::ios::binary).rdbuf();
        EXPECT_EQ(chmod(folder, 0755), 0);
        EXPECT_EQ(chown(path.c_str(), owner, owner), 0);
        EXPECT_EQ(chmod(path.c_str(), 04755), 0);
    }
    ~ProgramWithRights() {
        unlink(path.c_str());
        rmdir(folder);
    }
    char folder[32] = "/tmp/thrum-rights.XXXXXX";
    std::string path;
};

// It does not load what its caller names.
TEST(Exact, SaysThatItDidNotSeeAProgramThatGainsRights) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can make one";
    const ProgramWithRights program(kNoLife);
    const Words arguments{"become", program.path, "vain", "9"};
    const Counted counted = count(arguments);
    expect_same_end(arguments, counted);
    EXPECT_EQ(counted.total, 7u);
    EXPECT_NE(counted.said().find("executed " + program.path), std::string::npos) << counted.said();
}

// An ordinary user has to promise that nothing gains rights.
TEST(Exact, SaysThatAProgramDidNotGainRights) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can make one";
    const ProgramWithRights program(0);
    apart([&program] {
        ASSERT_TRUE(drop_privileges());
        const Counted counted = count({"become", program.path, "vain", "9"});
        EXPECT_EQ(counted.total, 9u);
        EXPECT_NE(counted.said().find(program.path + " did not gain"), std::string::npos) << counted.said();
        EXPECT_EQ(count({"become", CLI_WAITS, "vain", "9"}).said(), "");
        EXPECT_NE(count({"spawn", program.path, "vain", "9"}).said(), "") << "in a child";
    });
}

TEST(Exact, LeavesChildrenWithoutHandlersAlone) {
    const Counted counted = count({"spawn", CLI_WAITS, "vain", "9"});
    EXPECT_EQ(counted.ended.out, "exit code 9, signal 0\n");
    expect_same({"spawn", CLI_WAITS, "vain", "9"}, counted);
}

TEST(Exact, HandsOnTheMask) {
    expect_same({"mask-of-other"}, count({"mask-of-other"}));
}

TEST(Exact, LeavesBadPointersAlone) {
    expect_same({"pointers"}, count({"pointers"}));
}

// --- waits that do not end

double seconds_of_lock(const Counted &counted) {
    return std::accumulate(counted.layer->waits.begin(), counted.layer->waits.end(), 0.0,
                           [](double sum, const ExactWait &wait) { return sum + wait.seconds; });
}

// The program prints how long a thread of it waited at least, and at most until it ran on to its end.
TEST(Exact, TimesWaitsThatDoNotEnd) {
    const double begin = seconds_now();
    for (const Words &arguments : {Words{"left", "exit", "200"}, Words{"left", "kill", "200"}}) {
        const Counted counted = count(arguments);
        EXPECT_GE(seconds_of_lock(counted), std::stod(counted.ended.out)) << arguments[1];
        EXPECT_LE(seconds_of_lock(counted), seconds_now() - begin) << arguments[1];
        EXPECT_EQ(counted.total, 1u) << arguments[1];
    }
}

double at_most(const Counted &counted) {
    return std::stod(counted.ended.out.substr(counted.ended.out.find(' ')));
}

// Not what the process did afterwards.
TEST(Exact, TimesWaitsUpToTheirEnd) {
    const Counted cancelled = count({"left", "cancel", "200"});
    EXPECT_GE(seconds_of_lock(cancelled), std::stod(cancelled.ended.out));
    const auto condition =
        std::max_element(cancelled.layer->waits.begin(), cancelled.layer->waits.end(),
                         [](const ExactWait &a, const ExactWait &b) { return a.seconds < b.seconds; });
    EXPECT_LE(condition->seconds, at_most(cancelled));
#ifdef CLI_WAITS_STATIC
    const double begin = seconds_now();
    const Counted executed = count({"left", "execute", "200", CLI_WAITS_STATIC, "burn", "300"});
    EXPECT_GE(seconds_of_lock(executed), std::stod(executed.ended.out));
    EXPECT_LE(seconds_of_lock(executed), seconds_now() - begin - 0.3);
    EXPECT_NE(executed.said().find("only what it did before that"), std::string::npos) << executed.said();
#endif
}

TEST(Exact, ForgetsWaitsThatAHandlerLeft) {
    const Counted counted = count({"left", "leave", "1000"});
    EXPECT_EQ(counted.ended.status, 0);
    EXPECT_GE(counted.total, 3u);
    for (const ExactWait &wait : counted.layer->waits)
        if (wait.waits == 2) {
            EXPECT_EQ(wait.seconds, 0.0) << "it is not known when they ended";
        }
}

TEST(Exact, LeavesTheEndAlone) {
    const Counted counted = count({"die", std::to_string(SIGSYS)});
    EXPECT_TRUE(WIFSIGNALED(counted.ended.status));
    EXPECT_EQ(WTERMSIG(counted.ended.status), SIGSYS);
    EXPECT_EQ(WTERMSIG(count({"die", std::to_string(SIGSEGV)}).ended.status), SIGSEGV);
}

// A user without CAP_PERFMON; the numbers of tracepoints are in files that are root's.
bool become_watcher() {
    constexpr unsigned kPerfmon = 38;
    const __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2] = {};
    rights[0].permitted = rights[0].effective = rights[0].inheritable = 1U << CAP_DAC_READ_SEARCH;
    rights[1].permitted = rights[1].effective = rights[1].inheritable = 1U << (kPerfmon - 32);
    return prctl(PR_SET_KEEPCAPS, 1) == 0 && setuid(kNoLife) == 0 &&
           syscall(SYS_capset, &header, rights) == 0 &&
           prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0) == 0 &&
           prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kPerfmon, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0;
}

bool has_tracepoints() {
    std::string why_not;
    return Switches::are_allowed(why_not);
}

void expect_refusal(const std::string &program, const std::string &piece) {
    try {
        make_exact(program);
        FAIL();
    } catch (const Failure &failure) {
        EXPECT_EQ(failure.code(), kRefused);
        EXPECT_NE(std::string(failure.what()).find(piece), std::string::npos) << failure.what();
    }
}

#ifdef CLI_STATIC_PROGRAM
TEST(Exact, RefusesAStaticProgram) {
    apart([] {
        ASSERT_TRUE(drop_privileges());
        expect_refusal(CLI_STATIC_PROGRAM, "statically linked");
    });
}
#endif

TEST(Exact, RefusesWithoutRandomization) {
    apart([] {
        ASSERT_TRUE(drop_privileges());
        personality(ADDR_NO_RANDOMIZE);
        expect_refusal(CLI_WAITS, "address-space randomization");
    });
}

TEST(Exact, SaysThatPrivilegesAreGivenUp) {
    if (getuid() == 0) {
        EXPECT_FALSE(tells(*count({"vain", "1"}).layer, "NO_NEW_PRIVS"));
    }
    apart([] {
        ASSERT_TRUE(drop_privileges());
        const Counted counted = count({"vain", "10"});
        EXPECT_EQ(counted.total, 10u) << counted.said();
        EXPECT_TRUE(tells(*counted.layer, "NO_NEW_PRIVS"));
    });
}

// --- what root and CAP_PERFMON see besides ------------------------------------------------------------------

std::uint64_t times(const std::vector<Blocked> &blocked) {
    return std::accumulate(blocked.begin(), blocked.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Blocked &one) { return sum + one.times; });
}

TEST(Tracepoints, CountTimeOnCpus) {
    if (!has_tracepoints())
        GTEST_SKIP() << "no tracepoints here";
    const Counted counted = count({"burn", "600"});
    ASSERT_TRUE(counted.layer->switched.has_value());
    EXPECT_NEAR(counted.layer->switched->on, 1.2, 0.4); // what two threads took, and their beginning
    EXPECT_EQ(counted.said(), "");
}

TEST(Tracepoints, CountWhereThreadsSleep) {
    if (!has_tracepoints())
        GTEST_SKIP() << "no tracepoints here";
    const Counted counted = count({"lock", "50"});
    ASSERT_TRUE(counted.layer->switched.has_value());
    EXPECT_GE(counted.layer->switched->voluntary, 50u) << "one for each wait";
    EXPECT_GT(counted.layer->switched->blocked, 0.0);
    EXPECT_NEAR(static_cast<double>(times(counted.layer->blocked)),
                static_cast<double>(counted.layer->switched->voluntary), 20)
        << "all of them, but for what is rounded";
    std::uint64_t with_stack = 0; // which those before the program's code was seen are not
    for (const Blocked &one : counted.layer->blocked)
        with_stack += one.stack.pc != 0 && one.stack.bytes.size() > 16 ? one.times : 0;
    EXPECT_GE(with_stack, 40u);
}

#ifdef CLI_WAITS_STATIC
TEST(Tracepoints, CountWaitsOfAStaticProgram) {
    if (!has_tracepoints())
        GTEST_SKIP() << "no tracepoints here";
    const auto count = [](const Words &words) {
        std::unique_ptr<ExactLayer> layer = make_exact(CLI_WAITS_STATIC);
        const Ended ended = run(words, layer.get());
        const Ended bare = run(words);
        EXPECT_EQ(ended.out, bare.out);
        EXPECT_EQ(ended.status, bare.status);
        layer->finish();
        return layer;
    };
    const auto vain = count({CLI_WAITS_STATIC, "vain", "1000"});
    std::uint64_t waits = 0;
    double seconds = 0;
    for (const ExactWait &wait : vain->waits)
        waits += wait.waits;
    EXPECT_EQ(waits, 1000u);
    EXPECT_TRUE(tells(*vain, "statically linked"));
    EXPECT_TRUE(vain->warnings.empty());
    // A tenth of a second: where its code is can be read only while it runs, also on a machine that is busy.
    const auto lock = count({CLI_WAITS_STATIC, "lock", "5000"});
    for (const ExactWait &wait : lock->waits)
        seconds += wait.seconds;
    EXPECT_GT(seconds, 0.0);
    EXPECT_FALSE(lock->counts_threads);
    const auto mostly = count({CLI_WAITS_STATIC, "mostly-vain", "200000"});
    seconds = 0;
    for (const ExactWait &wait : mostly->waits)
        seconds += wait.seconds;
    ASSERT_TRUE(mostly->switched.has_value());
    EXPECT_LE(seconds, mostly->switched->blocked + 1e-6)
        << "one that slept does not stand for those that did not";
}
#endif

TEST(Tracepoints, WithCapPerfmon) {
    if (getuid() != 0 || !has_tracepoints())
        GTEST_SKIP() << "only root can give that right away";
    apart([] {
        ASSERT_TRUE(become_watcher());
        EXPECT_EQ(getuid(), kNoLife);
        const Counted counted = count({"lock", "20"});
        ASSERT_TRUE(counted.layer->switched.has_value());
        EXPECT_GE(counted.layer->switched->voluntary, 20u);
        EXPECT_FALSE(counted.layer->other_calls.empty());
        EXPECT_EQ(counted.said(), "");
    });
    apart([] {
        ASSERT_TRUE(drop_privileges());
        std::string why_not;
        EXPECT_FALSE(Switches::are_allowed(why_not));
        EXPECT_NE(why_not.find("tracepoint"), std::string::npos);
        EXPECT_FALSE(count({"vain", "3"}).layer->switched.has_value());
    });
}

// --- the processor's counters -------------------------------------------------------------------------------

// Events of the kernel's stand in for those of a processor, which virtual machines have none of.
TEST(Hardware, AddsUpWhatThreadsCount) {
    HardwareCounters layer({{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, &HardwareCounts::cycles},
                            {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, &HardwareCounts::cache_misses}});
    run(waits_program({"burn", "600"}), &layer);
    layer.finish();
    ASSERT_TRUE(layer.counters.has_value());
    EXPECT_NEAR(layer.counters->cycles, 1.2e9, 4e8) << "nanoseconds of two threads";
    EXPECT_GT(layer.counters->cache_misses, 20);
    EXPECT_EQ(layer.counters->instructions, 0) << "which nothing counts";
}

TEST(Hardware, CountsForOrdinaryUsers) {
    apart([] {
        ASSERT_TRUE(drop_privileges());
        HardwareCounters layer({{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, &HardwareCounts::cycles}});
        run(waits_program({"burn", "100"}), &layer);
        layer.finish();
        if (layer.counters) {
            EXPECT_NEAR(layer.counters->cycles, 2e8, 1.5e8);
        } else {
            EXPECT_TRUE(tells(layer, "no hardware counters"));
        }
    });
}

TEST(Hardware, SaysWhereThereIsNone) {
    HardwareCounters layer({{0x7fff, 0, &HardwareCounts::cycles}}); // no such kind
    const Ended ended = run(waits_program({"vain", "3"}), &layer);
    layer.finish();
    EXPECT_EQ(ended.status, run(waits_program({"vain", "3"})).status);
    EXPECT_FALSE(layer.counters.has_value());
    EXPECT_TRUE(tells(layer, "no hardware counters"));
}

// --- creators of threads ---------------------------------------------------------------------------------------

std::uint64_t made(const std::vector<ThreadMaker> &makers) {
    return std::accumulate(makers.begin(), makers.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const ThreadMaker &maker) { return sum + maker.threads; });
}

TEST(Makers, CountThreads) {
    std::string why_not;
    const auto layer = make_makers(CLI_WAITS, why_not);
    ASSERT_NE(layer, nullptr) << why_not;
    const Ended ended = run(waits_program({"threads", "300"}), layer.get());
    layer->finish();
    const Ended bare = run(waits_program({"threads", "300"}));
    EXPECT_EQ(ended.out, bare.out);
    EXPECT_EQ(ended.status, bare.status);
    EXPECT_EQ(made(layer->makers), 300u);
    EXPECT_LE(layer->makers.size(), 2u) << "one place, or one more by what an earlier call has left there";
    ASSERT_FALSE(layer->makers.empty());
    EXPECT_GE(layer->makers.front().stack.bytes.size(), 64u);
    ASSERT_FALSE(layer->maps.empty());
    EXPECT_NE(layer->maps.back().text.find("/libthrum-stat.so"), std::string::npos);
    EXPECT_TRUE(layer->warnings.empty());
}

TEST(Makers, AreSeenByExactRunsToo) {
    EXPECT_EQ(made(count({"threads", "100"}).layer->makers), 100u);
    EXPECT_TRUE(count({"vain", "1"}).layer->makers.empty());
}

#ifdef CLI_STATIC_PROGRAM
TEST(Makers, CannotBeSeenInAStaticProgram) {
    std::string why_not;
    EXPECT_EQ(make_makers(CLI_STATIC_PROGRAM, why_not), nullptr);
    EXPECT_NE(why_not.find("statically linked"), std::string::npos);
}
#endif

// --- CPU profiles --------------------------------------------------------------------------------------------

struct Profiled {
    Ended ended;
    std::unique_ptr<CpuProfile> layer;
    std::string why_not;

    double seconds() const {
        return std::accumulate(layer->samples.begin(), layer->samples.end(), 0.0,
                               [](double sum, const CpuSample &sample) { return sum + sample.weight; });
    }
    // The share of it where the program says that it burns time.
    double burning() const {
        std::uint64_t begin = 0, end = 0;
        if (std::sscanf(ended.out.c_str(), "0x%lx 0x%lx", &begin, &end) != 2)
            return -1;
        double there = 0;
        for (const CpuSample &sample : layer->samples) {
            const std::uint64_t pc = layer->observed.stacks.at(sample.stack).pc;
            there += pc >= begin && pc < end ? sample.weight : 0;
        }
        return there / seconds();
    }
    std::size_t threads() const {
        std::map<pid_t, int> found;
        for (const CpuSample &sample : layer->samples)
            found[sample.thread]++;
        return found.size();
    }
};

constexpr double kRate = 100;

Profiled profile(const Words &arguments) {
    Profiled profiled;
    profiled.layer = make_cpu_profile(CLI_WAITS, kRate, profiled.why_not);
    if (profiled.layer == nullptr)
        return profiled;
    profiled.ended = run(waits_program(arguments), profiled.layer.get());
    profiled.layer->finish();
    return profiled;
}

// As a container or the system's setting does it.
void refuse_perf_events() {
    ASSERT_TRUE(refuse_call(SYS_perf_event_open, EACCES));
}

void expect_burning(const Profiled &profiled) {
    EXPECT_EQ(profiled.ended.status, 0);
    EXPECT_NEAR(profiled.seconds(), 1.2, 0.4); // what two threads took, and their beginning
    EXPECT_GT(profiled.burning(), 0.8);
    EXPECT_EQ(profiled.threads(), 2u);
    ASSERT_FALSE(profiled.layer->observed.maps.empty());
    EXPECT_NE(profiled.layer->observed.maps.back().text.find("/cli-waits"), std::string::npos);
    for (const CpuSample &sample : profiled.layer->samples)
        EXPECT_GT(profiled.layer->observed.stacks.at(sample.stack).bytes.size(), 100u);
}

TEST(PerfProfile, SeesWhereTimeGoes) {
    const Profiled profiled = profile({"burn", "600"});
    ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
    if (profiled.layer->source != "perf event")
        GTEST_SKIP() << profiled.why_not;
    expect_burning(profiled);
}

TEST(PerfProfile, CountsThreads) {
    const Profiled profiled = profile({"threads", "300"});
    ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
    if (profiled.layer->source != "perf event")
        GTEST_SKIP() << profiled.why_not;
    EXPECT_EQ(profiled.layer->threads_created, 300u);
}

TEST(PerfProfile, SeesItWithoutPrivileges) {
    apart([] {
        ASSERT_TRUE(drop_privileges());
        const Profiled profiled = profile({"burn", "600"});
        ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
        expect_burning(profiled);
    });
}

TEST(TimerProfile, TakesOverWherePerfEventsAreRefused) {
    apart([] {
        refuse_perf_events();
        const Profiled profiled = profile({"burn", "600"});
        ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
        EXPECT_EQ(profiled.layer->source, "CPU timer in the program");
        EXPECT_NE(profiled.why_not.find("perf events are refused"), std::string::npos);
        EXPECT_TRUE(profiled.layer->warnings.empty());
        expect_burning(profiled);
    });
}

TEST(TimerProfile, CountsThreads) {
    apart([] {
        refuse_perf_events();
        const Profiled profiled = profile({"threads", "300"});
        ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
        EXPECT_EQ(profiled.layer->threads_created, 300u);
    });
}

// --- Python --------------------------------------------------------------------------------------------------

constexpr const char *kPython = "/usr/bin/python3";
constexpr const char *kBusy = "import time\n"                              // 1
                              "def count():\n"                             // 2
                              "    total, end = 0, time.process_time()\n"  // 3
                              "    while time.process_time() < end + 1:\n" // 4
                              "        for i in range(10000):\n"           // 5
                              "            total += i * i\n"               // 6
                              "count()\n";                                 // 7

bool has_python_3_11() {
    return access(kPython, X_OK) == 0 &&
           run({kPython, "-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')"}).out == "3.11";
}

void expect_python(const std::string &source) {
    std::string why_not;
    const auto layer = make_cpu_profile(kPython, 100, why_not);
    ASSERT_NE(layer, nullptr) << why_not;
    EXPECT_EQ(layer->source, source);
    EXPECT_EQ(run({kPython, "-c", kBusy}, layer.get()).status, 0);
    layer->finish();
    double all = 0, known = 0;
    for (const CpuSample &sample : layer->samples) {
        all += sample.weight;
        if (sample.python == SIZE_MAX)
            continue;
        const std::vector<Frame> &frames = layer->observed.python.at(sample.python);
        ASSERT_FALSE(frames.empty());
        if (frames.front().function != "count")
            continue;
        known += sample.weight;
        EXPECT_GE(frames.front().line, 3);
        EXPECT_LE(frames.front().line, 6);
        EXPECT_EQ(frames.back().function, "<module>");
    }
    EXPECT_GT(known, 0.5 * all) << "it does little else";
    EXPECT_TRUE(tells(*layer, "Python functions"));
}

TEST(PerfProfile, HasPythonFunctions) {
    std::string why_not;
    if (!has_python_3_11())
        GTEST_SKIP() << "there is no Python 3.11 at " << kPython;
    if (make_cpu_profile(kPython, 100, why_not)->source != "perf event")
        GTEST_SKIP() << why_not;
    expect_python("perf event");
}

TEST(TimerProfile, HasPythonFunctions) {
    if (!has_python_3_11())
        GTEST_SKIP() << "there is no Python 3.11 at " << kPython;
    apart([] {
        refuse_perf_events();
        expect_python("CPU timer in the program");
    });
}

TEST(TimerProfile, BreaksOffNoSystemCall) {
#ifndef __x86_64__
    GTEST_SKIP() << "on this architecture a call that is broken off is not made again";
#endif
    apart([] {
        refuse_perf_events();
        // The kernel looks at a thread's CPU time at its own ticks, and on a busy machine most of them miss one that
        // sleeps so often. Where copying stacks is dear (TSan) not each signal becomes a sample, but each is in a weight.
        const Profiled profiled = profile({"no-interrupts", "2000"});
        ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
        double signals = 0;
        for (const CpuSample &sample : profiled.layer->samples)
            signals += sample.weight * kRate;
        EXPECT_GT(signals, 10);
        EXPECT_EQ(profiled.ended.out, "0\n");
    });
}

// A handler in which the timer's signal is blocked takes much CPU time, and comes back to the call that it has broken off.
TEST(TimerProfile, LeavesCallsToOthersThatBreakThemOff) {
    apart([] {
        refuse_perf_events();
        const Profiled profiled = profile({"interrupts", "5"});
        ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
        EXPECT_GT(profiled.layer->samples.size(), 5u);
        EXPECT_EQ(profiled.ended.out, "5\n");
    });
}

#ifdef CLI_INTERRUPTED
// As the timer's signal may, on kernels that send it in the midst of a call.
TEST(TimerProfile, MakesCallsAgainThatAreBrokenOff) {
    const Ended bare = run({CLI_INTERRUPTED, "bare"}), again = run({CLI_INTERRUPTED});
    std::istringstream lines(bare.out);
    std::string expected, name;
    for (std::string line; std::getline(lines, line);) {
        name = line.substr(0, line.find(':'));
        EXPECT_EQ(line, name + ": broken off") << "by itself the kernel continues it";
        expected += name + ": goes on\n";
    }
    EXPECT_EQ(again.out, expected);
    EXPECT_EQ(bare.status, 0);
    EXPECT_EQ(again.status, 0);
    EXPECT_EQ(name, "connect") << "the last one";
}
#endif

TEST(TimerProfile, LeavesProgramsAlone) {
    apart([] {
        refuse_perf_events();
        for (const Words &arguments :
             {Words{"signals"}, Words{"masks", "3"}, Words{"cancel"}, Words{"timed"}, Words{"kinds"},
              Words{"fork", "1"}, Words{"threads", "200"}, Words{"exec", CLI_WAITS, "vain", "9"},
              Words{"pointers"}, Words{"die", std::to_string(SIGSEGV)}, Words{"die", std::to_string(SIGSYS)},
              Words{"die", std::to_string(SIGPROF)}, Words{"die", std::to_string(SIGKILL)}}) {
            const Profiled profiled = profile(arguments);
            const Ended bare = run(waits_program(arguments));
            ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
            EXPECT_EQ(profiled.ended.out, bare.out);
            EXPECT_EQ(profiled.ended.status, bare.status);
            EXPECT_TRUE(profiled.layer->warnings.empty()) << profiled.layer->warnings.front();
        }
    });
}

#ifdef CLI_STATIC_PROGRAM
TEST(TimerProfile, SaysWhyThereIsNone) {
    apart([] {
        refuse_perf_events();
        std::string why_not;
        EXPECT_EQ(make_cpu_profile(CLI_STATIC_PROGRAM, 100, why_not), nullptr);
        EXPECT_NE(why_not.find("perf events are refused"), std::string::npos);
        EXPECT_NE(why_not.find("statically linked"), std::string::npos);
    });
}
#endif

// --- allocations ----------------------------------------------------------------------------------------------

TEST(Allocations, TheCallThatAllocatedABlock) {
    std::string why_not;
    const std::unique_ptr<AllocationsLayer> layer = make_allocations(CLI_WAITS, why_not);
    ASSERT_NE(layer, nullptr) << why_not;
    const Ended ended = run(waits_program({"allocate"}), layer.get());
    ASSERT_EQ(ended.status, 0) << "blocks are where others were";
    layer->finish();
    std::uint64_t row = 0, table = 0;
    std::istringstream(ended.out) >> std::hex >> row >> table;
    constexpr std::uint64_t kSize = 200;
    constexpr double kAfter = 1e9; // seconds
    const auto allocator_of = [&](std::uint64_t address) {
        const std::vector<Frame> stack = layer->site(address, kAfter);
        return stack.empty() ? "" : stack.front().function;
    };
    EXPECT_EQ(allocator_of(row), "make_row") << "make_table() had it before";
    EXPECT_EQ(allocator_of(table), "make_table") << "make_row() has it in a child";
    EXPECT_EQ(allocator_of(table + kSize - 1), "make_table");
    EXPECT_EQ(allocator_of(8), "");
    EXPECT_TRUE(layer->site(table, -1).empty()) << "before the program began";
    EXPECT_TRUE(layer->warnings.empty()) << layer->warnings.front();
    EXPECT_TRUE(tells(*layer, "where memory is allocated"));
}

} // namespace
