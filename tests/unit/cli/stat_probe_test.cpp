// SPDX-License-Identifier: Apache-2.0
//
// The layers of `thrum stat` that look into the program: exact futex waits and CPU profiles. Judged on counts that are
// known beforehand, on where samples are, and on what the program prints with and without them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <map>
#include <numeric>

#include "../../refuse_call.h"
#include "clock.hpp"
#include "command.hpp"
#include "stat/collect.hpp"

namespace {

using namespace thrum;
using namespace thrum::stat;
using Words = std::vector<std::string>;

struct Ended {
    int status = 0;
    std::string out;
};

// --- running a program under a layer, as run.cpp does -----------------------------------------------------------

[[noreturn]] void become(const Words &words, const Layer *layer, int go, int out) {
    char byte;
    if (dup2(out, 1) < 0 || read(go, &byte, 1) != 1)
        _exit(96);
    const Words variables = layer != nullptr ? layer->environment() : Words{};
    for (const std::string &entry : variables)
        putenv(const_cast<char *>(entry.c_str()));
    std::vector<char *> arguments;
    for (const std::string &word : words)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(95);
}

bool take_output(int fd, std::string &out) {
    pollfd stream{fd, POLLIN, 0};
    if (poll(&stream, 1, 5) <= 0)
        return true;
    char block[4096];
    const ssize_t got = read(fd, block, sizeof block);
    if (got > 0)
        out.append(block, static_cast<std::size_t>(got));
    return got > 0;
}

Ended run(const Words &words, Layer *layer = nullptr) {
    int go[2], out[2];
    Ended ended;
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return ended;
    const pid_t child = fork();
    if (child == 0)
        become(words, layer, go[0], out[1]);
    close(out[1]);
    if (layer != nullptr)
        layer->forked(child);
    EXPECT_EQ(write(go[1], "", 1), 1);
    const double begin = seconds_now();
    while (take_output(out[0], ended.out))
        if (layer != nullptr)
            layer->poll(seconds_now() - begin);
    waitpid(child, &ended.status, 0);
    for (const int fd : {go[0], go[1], out[0]})
        close(fd);
    return ended;
}

Words waits_program(const Words &arguments) {
    Words words{CLI_WAITS};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

// In a process of its own, because it changes what cannot be changed back.
template <class Body>
void apart(const Body &body) {
    const pid_t child = fork();
    if (child == 0) {
        body();
        std::fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
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

void expect_same(const Words &arguments, const Counted &counted) {
    const Ended bare = run(waits_program(arguments));
    EXPECT_EQ(counted.ended.out, bare.out);
    EXPECT_EQ(counted.ended.status, bare.status);
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
    const bool is_told =
        some.layer->how_known[1].find("tracepoints, which could, are for root") != std::string::npos;
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
    EXPECT_TRUE(counted.has(63)) << counted.total;
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
    expect_same({"bare-exec", CLI_WAITS, "vain", "9"}, bare);
    const Counted counted = count({"exec", CLI_WAITS, "vain", "9"});
    EXPECT_EQ(counted.total, 9u) << "of the program that was executed in its place";
    expect_same({"exec", CLI_WAITS, "vain", "9"}, counted);
#ifdef CLI_STATIC_PROGRAM
    expect_same({"exec", CLI_STATIC_PROGRAM}, count({"exec", CLI_STATIC_PROGRAM}));
#endif
}

TEST(Exact, LeavesTheEndAlone) {
    const Counted counted = count({"die", std::to_string(SIGSYS)});
    EXPECT_TRUE(WIFSIGNALED(counted.ended.status));
    EXPECT_EQ(WTERMSIG(counted.ended.status), SIGSYS);
    EXPECT_EQ(WTERMSIG(count({"die", std::to_string(SIGSEGV)}).ended.status), SIGSEGV);
}

#ifdef CLI_STATIC_PROGRAM
TEST(Exact, RefusesAStaticProgram) {
    try {
        make_exact(CLI_STATIC_PROGRAM);
        FAIL();
    } catch (const Failure &failure) {
        EXPECT_EQ(failure.code(), kRefused);
        EXPECT_NE(std::string(failure.what()).find("statically linked"), std::string::npos);
    }
}
#endif

TEST(Exact, RefusesWithoutRandomization) {
    apart([] {
        personality(ADDR_NO_RANDOMIZE);
        EXPECT_THROW(make_exact(CLI_WAITS), Failure);
    });
}

constexpr uid_t kNobody = 65534;

TEST(Exact, SaysThatPrivilegesAreGivenUp) {
    if (getuid() == 0) {
        EXPECT_EQ(count({"vain", "1"}).layer->how_known.size(), 2u);
    }
    apart([] {
        if (getuid() == 0 && (setuid(kNobody) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
            return;
        const Counted counted = count({"vain", "10"});
        EXPECT_EQ(counted.total, 10u) << counted.said();
        ASSERT_EQ(counted.layer->how_known.size(), 3u);
        EXPECT_NE(counted.layer->how_known[2].find("NO_NEW_PRIVS"), std::string::npos);
    });
}

// --- who makes threads -----------------------------------------------------------------------------------------

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

Profiled profile(const Words &arguments) {
    Profiled profiled;
    profiled.layer = make_cpu_profile(CLI_WAITS, 100, profiled.why_not);
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

TEST(PerfProfile, SeesItWithoutPrivileges) {
    apart([] {
        if (getuid() == 0 && (setuid(kNobody) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
            return;
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

TEST(TimerProfile, BreaksOffNoSystemCall) {
#ifndef __x86_64__
    GTEST_SKIP() << "on this architecture a call that is broken off is not made again";
#endif
    apart([] {
        refuse_perf_events();
        // The kernel looks at a thread's CPU time at its own ticks, and on a busy machine most of them miss one that
        // sleeps so often.
        const Profiled profiled = profile({"no-interrupts", "2000"});
        ASSERT_NE(profiled.layer, nullptr) << profiled.why_not;
        EXPECT_GT(profiled.layer->samples.size(), 10u);
        EXPECT_EQ(profiled.ended.out, "0\n");
    });
}

TEST(TimerProfile, LeavesProgramsAlone) {
    apart([] {
        refuse_perf_events();
        for (const Words &arguments :
             {Words{"signals"}, Words{"masks", "3"}, Words{"cancel"}, Words{"timed"}, Words{"kinds"},
              Words{"fork", "1"}, Words{"threads", "200"}, Words{"exec", CLI_WAITS, "vain", "9"}}) {
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

} // namespace
