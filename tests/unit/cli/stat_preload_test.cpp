// SPDX-License-Identifier: Apache-2.0
//
// libthrum-stat.so in programs that it could easily break: those with small stacks, threads that it did not see begin,
// or filters of their own. They do the same with it and without.
#include <signal.h>
#include <sys/syscall.h>

#include <cerrno>
#include <numeric>

#include "../../refuse_call.h"
#include "layered.hpp"

namespace {

using namespace thrum::stat;

std::string text_of(const Layer &layer) {
    return std::accumulate(layer.warnings.begin(), layer.warnings.end(), std::string(),
                           [](const std::string &a, const std::string &b) { return a + b + "\n"; });
}

struct Exactly {
    explicit Exactly(const Words &words) : layer(make_exact(words[0])), ended(run(words, layer.get())) {
        layer->finish();
        for (const ExactWait &wait : layer->waits)
            waits += wait.waits;
    }
    std::unique_ptr<ExactLayer> layer;
    Ended ended;
    std::uint64_t waits = 0;
};

struct Timed {
    explicit Timed(const Words &words) : layer(make_cpu_profile(words[0], 100, why_not)) {
        EXPECT_EQ(layer->source, "CPU timer in the program");
        ended = run(words, layer.get());
        layer->finish();
        for (const CpuSample &sample : layer->samples)
            seconds += sample.weight;
    }
    std::string why_not;
    std::unique_ptr<CpuProfile> layer;
    Ended ended;
    double seconds = 0;
};

// In a process that perf events are refused to.
template <class Body>
void with_timers(const Body &body) {
    apart([&body] {
        ASSERT_TRUE(refuse_call(SYS_perf_event_open, EACCES));
        body();
    });
}

void expect_same(const Words &words, const Ended &ended) {
    const Ended bare = run(words);
    EXPECT_EQ(bare.status, 0);
    EXPECT_EQ(ended.out, bare.out);
    EXPECT_EQ(ended.status, bare.status);
}

TEST(Preload, WritesNothingBelowSmallStacks) {
    const Words words{CLI_PRELOADED, "small-stack", "300"};
    const Exactly exactly(words);
    expect_same(words, exactly.ended);
    EXPECT_GE(exactly.waits, 20U);
    EXPECT_EQ(text_of(*exactly.layer), "");
    with_timers([&words] {
        const Timed timed(words);
        expect_same(words, timed.ended);
        EXPECT_GT(timed.seconds, 0);
    });
}

// That has the program's memory, and handlers of its own.
TEST(Preload, CancelsAfterAChildWasSpawned) {
    const Words words{CLI_PRELOADED, "cancel"};
    expect_same(words, Exactly(words).ended);
}

TEST(Preload, MakesLocksWithInheritanceWhateverIsCancelled) {
    EXPECT_EQ(run({CLI_CANCELLED}).out, "libc's handler: 1\n"
                                        "a lock with inheritance: 0\n"
                                        "is held: 1\n"
                                        "then a wait is broken off: 1\n"
                                        "and no other: 1\n");
}

TEST(Preload, LeavesTheMaskThatAHandlerSets) {
    const Words words{CLI_PRELOADED, "handler-mask"};
    const Exactly exactly(words);
    expect_same(words, exactly.ended);
    EXPECT_GE(exactly.waits, 4U);
}

// Made before the library starts. With the filter it would be ended.
TEST(Preload, LeavesEarlierThreadsThatBlockItsSignal) {
    const Words words{CLI_EARLY, "blocked"};
    const Exactly exactly(words);
    expect_same(words, exactly.ended);
    EXPECT_EQ(exactly.waits, 5U) << "those of main";
    EXPECT_NE(text_of(*exactly.layer).find("what 1 threads did"), std::string::npos)
        << text_of(*exactly.layer);
}

TEST(Preload, TimesEarlierThreads) {
    with_timers([] {
        const Words words{CLI_EARLY, "burn", "600"};
        const Timed timed(words);
        expect_same(words, timed.ended);
        EXPECT_GT(timed.seconds, 0.3);
        EXPECT_EQ(text_of(*timed.layer), "");
    });
}

TEST(Preload, SaysThatAnEarlierThreadHasNoTimer) {
    with_timers([] {
        const Words words{CLI_EARLY, "blocked"};
        const Timed timed(words);
        expect_same(words, timed.ended);
        EXPECT_NE(text_of(*timed.layer).find("leaves out 1 threads"), std::string::npos)
            << text_of(*timed.layer);
    });
}

// Which block its signal for good, where nothing sees them.
TEST(Preload, TrapsNothingWhereAProgramAtAFixedAddressMakesItsOwnCalls) {
    const Exactly movable({CLI_PRELOADED, "own-calls"}), fixed({CLI_PRELOADED_FIXED, "own-calls"});
    expect_same({CLI_PRELOADED, "own-calls"}, movable.ended);
    EXPECT_GE(movable.waits, 5U) << text_of(*movable.layer);
    expect_same({CLI_PRELOADED_FIXED, "own-calls"}, fixed.ended);
    EXPECT_EQ(fixed.waits, 0U);
    EXPECT_NE(text_of(*fixed.layer).find("system calls in its own code"), std::string::npos)
        << text_of(*fixed.layer);
}

TEST(Preload, TrapsWhatAProgramAtAFixedAddressAsksOfLibc) {
    const Exactly exactly({CLI_WAITS_FIXED, "vain", "30"});
    EXPECT_EQ(exactly.ended.status, run({CLI_WAITS_FIXED, "vain", "30"}).status);
    EXPECT_EQ(exactly.waits, 30U);
    EXPECT_EQ(text_of(*exactly.layer), "");
}

// The kernel ends it at each call that it does not make itself.
TEST(Preload, MakesNoCallsThatTheProgramForbids) {
    const Words words{CLI_PRELOADED, "confined", "300"};
    const Exactly exactly(words);
    expect_same(words, exactly.ended);
    EXPECT_GE(exactly.waits, 15U);
    EXPECT_EQ(text_of(*exactly.layer), "");
    ASSERT_FALSE(exactly.layer->maps.empty());
    EXPECT_NE(exactly.layer->maps.back().text.find("/libthrum-stat.so"), std::string::npos);
    with_timers([&words] {
        const Timed timed(words);
        expect_same(words, timed.ended);
        EXPECT_GT(timed.seconds, 0);
        EXPECT_NE(text_of(*timed.layer).find("leaves out 1 threads"), std::string::npos)
            << text_of(*timed.layer);
    });
}

TEST(Preload, AskingForFiltersDoesNotConfine) {
    const Words words{CLI_PRELOADED, "unconfined", "300"};
    with_timers([&words] {
        const Timed timed(words);
        expect_same(words, timed.ended);
        EXPECT_GT(timed.seconds, 0.2) << "the thread has a timer";
        EXPECT_EQ(text_of(*timed.layer).find("without"), std::string::npos) << text_of(*timed.layer);
    });
}

} // namespace
