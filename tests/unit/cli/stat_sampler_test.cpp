// SPDX-License-Identifier: Apache-2.0
//
// The sampler of `thrum stat`, the unwinder, and what is made of samples: on programs whose threads wait in a known way
// (sampled.c). Judged by what was found and by shares of samples, never by how long something took.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <ostream>
#include <set>

#include "child.hpp"
#include "maps.hpp"
#include "place.hpp"
#include "process.hpp"
#include "spawn.hpp"
#include "stat/collect.hpp"
#include "stat/examination.hpp"
#include "stat/host.hpp"
#include "stat/instructions.hpp"
#include "stat/layers.hpp"
#include "stat/names.hpp"
#include "stat/rules.hpp"
#include "stat/task_files.hpp"
#include "stat/waits.hpp"
#include "symbols.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"

unsigned wrapping_mul(unsigned a, unsigned b); // of rust_library.cpp

namespace {

using namespace thrum::stat;

const std::string kSource = CLI_SAMPLED_SOURCE;

using Enough = std::function<bool(const Sampler &)>;

// Not of the first thread, which mostly waits for the others to end: on a busy machine it is seen more often than they.
bool is_others_futex_wait(const Sampler &sampler, const ProcSample &sample) {
    return sample.system_call == SYS_futex && sample.thread != sampler.process;
}

Enough futex_waits(std::size_t wanted) {
    return [wanted](const Sampler &sampler) {
        return static_cast<std::size_t>(std::count_if(sampler.samples.begin(), sampler.samples.end(),
                                                      [&](const ProcSample &sample) {
                                                          return is_others_futex_wait(sampler, sample);
                                                      })) >= wanted;
    };
}

Enough samples(std::size_t wanted) {
    return [wanted](const Sampler &sampler) { return sampler.samples.size() >= wanted; };
}

// Polls until there is enough; gives up on a machine that is too busy for it.
double watch(Sampler &sampler, const Enough &enough) {
    constexpr double kPatience = 30;
    const double begin = thrum::seconds_now();
    while (!enough(sampler) && thrum::seconds_now() - begin < kPatience) {
        sampler.poll(thrum::seconds_now() - begin);
        usleep(3000);
    }
    return thrum::seconds_now() - begin;
}

Report report_of(const Words &words, const Enough &enough, double budget = 0.5) {
    Sampler sampler(200, budget);
    double wall = 0;
    {
        Child child(words);
        sampler.forked(child.pid());
        sampler.poll(0); // before the program: nothing of ours may appear
        EXPECT_TRUE(sampler.threads.empty());
        child.go();
        wall = watch(sampler, enough);
    }
    EXPECT_TRUE(enough(sampler)) << sampler.samples.size() << " samples";
    Report report;
    add_samples(report, sampler, wall);
    return report;
}

int line_of(const std::string &mark) {
    std::ifstream source(kSource);
    int number = 1;
    for (std::string line; std::getline(source, line); number++)
        if (line.find("HERE " + mark + " ") != std::string::npos)
            return number;
    return 0;
}

// "random <- draw:33 <- ...", for messages.
std::string text_of_stack(const std::vector<Frame> &stack) {
    std::string text;
    for (const Frame &frame : stack)
        text += (text.empty() ? "" : " <- ") + frame.function + ":" + std::to_string(frame.line) + "(" +
                frame.module + (frame.is_user ? "*)" : ")");
    return text;
}

std::string text_of_report(const Report &report) {
    std::string text;
    for (const std::vector<Site> *sites : {&report.waits, &report.others})
        for (const Site &site : *sites)
            text += std::to_string(static_cast<int>(site.doing)) + " " + std::to_string(site.samples) + " " +
                    std::to_string(site.share) + " " + text_of_stack(site.stack) + "\n";
    for (const LockUse &use : report.locks)
        text += use.lock.text + "\n";
    for (const std::string &warning : report.warnings)
        text += warning + "\n";
    return text;
}

std::vector<std::string> functions(const Site &site) {
    std::vector<std::string> names;
    for (const Frame &frame : site.stack)
        names.push_back(frame.function);
    return names;
}

double share_of(const Report &report, const std::string &function) {
    double share = 0;
    for (const Site &site : report.waits)
        share += site.stack.front().function == function ? site.share : 0;
    return share;
}

bool has_warning(const Report &report, const std::string &piece) {
    return std::any_of(report.warnings.begin(), report.warnings.end(),
                       [&](const std::string &warning) { return warning.find(piece) != std::string::npos; });
}

#ifdef CLI_ELFUTILS

TEST(Sampler, HiddenLockOfLibc) {
    const Report report = report_of({CLI_SAMPLED_O2, "random", "4"}, futex_waits(40));
    ASSERT_FALSE(report.waits.empty());
    EXPECT_GT(share_of(report, "random"), 0.9) << text_of_report(report);
    const Site &site = report.waits.front();
    ASSERT_GE(site.stack.size(), 3U) << text_of_report(report);
    EXPECT_EQ(site.stack[0].function, "random");
    EXPECT_FALSE(site.stack[0].is_user);
    EXPECT_EQ(site.stack[1].function, "draw");
    EXPECT_EQ(site.stack[1].file, "sampled.c");
    EXPECT_EQ(site.stack[1].line, line_of("draw"));
    EXPECT_TRUE(site.stack[1].is_user);
    EXPECT_EQ(site.stack[2].function, "draw_for_ever");
    EXPECT_EQ(site.stack.size(), 3U) << "what threads begin in is left out\n" << text_of_report(report);
    ASSERT_LT(site.lock, report.locks.size());
    const LockUse &use = report.locks[site.lock];
    EXPECT_EQ(use.lock.kind, LockKind::kLibrary) << use.lock.text;
    EXPECT_EQ(use.lock.module, "libc.so.6");
    EXPECT_NE(use.lock.text.find("(static lock inside libc)"), std::string::npos) << use.lock.text;
    EXPECT_GE(use.threads, 2U);
}

// Both jump to a function inside libc, which is all that the stack shows: the name is that of the function that the
// program called, whether libc's debugging information is there or not.
void expect_public(const std::string &program, const std::string &mode, const std::string &called,
                   const std::string &caller) {
    const Report report = report_of({program, mode, "4"}, futex_waits(40));
    ASSERT_FALSE(report.waits.empty());
    double share = 0;
    for (const Site &site : report.waits) {
        const auto own = std::find_if(site.stack.begin(), site.stack.end(),
                                      [](const Frame &frame) { return frame.is_user; });
        if (own == site.stack.begin() || own == site.stack.end())
            continue;
        share += (own - 1)->function == called ? site.share : 0;
        EXPECT_EQ(own->function, caller) << text_of_report(report);
        EXPECT_FALSE((own - 1)->is_user);
        EXPECT_EQ((own - 1)->module, "libc.so.6");
    }
    EXPECT_GT(share, 0.9) << text_of_report(report);
}

TEST(Sampler, PublicNameOfLocaltime) {
    expect_public(CLI_SAMPLED_O2, "localtime", "localtime_r", "ask_hour");
}
TEST(Sampler, PublicNameOfSetenv) {
    expect_public(CLI_SAMPLED_O2, "setenv", "setenv", "change");
}
TEST(Sampler, PublicNameInAProgramWithoutSymbols) {
    expect_public(CLI_SAMPLED_STRIPPED, "localtime", "localtime_r", "");
}

bool has_function(const std::vector<Frame> &stack, const std::string &function) {
    return std::any_of(stack.begin(), stack.end(),
                       [&](const Frame &frame) { return frame.function == function; });
}

// Of threads that sleep for some microseconds, in turns at two places: a thread that has moved to the other while its
// stack was copied has no stack.
TEST(Sampler, AStackIsThatOfTheSameWait) {
    Sampler sampler(500, 0.9);
    {
        Child child({CLI_SAMPLED_O2, "turns", "2"});
        sampler.forked(child.pid());
        child.go();
        watch(sampler, futex_waits(1000));
    }
    ASSERT_FALSE(sampler.observed.maps.empty());
    const Unwinder unwinder(sampler.observed.maps.back());
    std::size_t placed = 0, wrong = 0;
    std::string seen;
    for (const ProcSample &sample : sampler.samples) {
        if (!is_others_futex_wait(sampler, sample) || sample.stack == SIZE_MAX)
            continue;
        const std::string semaphore = unwinder.lock(sample.arguments[0]).symbol;
        ASSERT_TRUE(semaphore == "first_place" || semaphore == "second_place") << semaphore;
        const std::vector<Frame> stack = unwinder.frames(sampler.observed.stacks[sample.stack]);
        placed++;
        const std::string place = semaphore == "first_place" ? "wait_first" : "wait_second";
        if (!has_function(stack, place)) {
            wrong++;
            seen += semaphore + ": " + text_of_stack(stack) + "\n";
        }
    }
    EXPECT_GT(placed, 0U) << "of " << sampler.samples.size() << " samples";
    EXPECT_EQ(wrong, 0U) << "of " << placed << " stacks\n" << seen;
}

// What is inlined from there is not the program's own.
TEST(Sampler, RustsLibraryIsNotTheProgram) {
    const auto text = thrum::process::read_all("/proc/self/maps");
    ASSERT_TRUE(text);
    const Maps maps{0, *text, 0};
    const Unwinder unwinder(maps);
    RawStack stack;
    stack.addresses = {reinterpret_cast<std::uint64_t>(&wrapping_mul) + 2,
                       reinterpret_cast<std::uint64_t>(&text_of_stack) + 2};
    const std::vector<Frame> frames = unwinder.frames(stack);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].file, "uint_macros.rs");
    EXPECT_FALSE(frames[0].is_user);
    EXPECT_TRUE(frames[1].is_user) << text_of_stack(frames);
}

// Code in no file, without a name and with one. It has no debugging information that could be missing.
TEST(Sampler, CodeCompiledAtRunTime) {
    void *page = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    const auto at = reinterpret_cast<std::uint64_t>(page);
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    const auto text = thrum::process::read_all("/proc/self/maps");
    ASSERT_TRUE(text);
    for (const bool has_name : {false, true}) {
        if (has_name) {
            std::ofstream(path) << std::hex << at << " 100 Sync.main\n";
        }
        const Maps maps{0, *text, 0, getpid()};
        const Unwinder unwinder(maps);
        RawStack stack;
        stack.addresses = {at + 5};
        const std::vector<Frame> frames = unwinder.frames(stack);
        ASSERT_EQ(frames.size(), 1U);
        EXPECT_EQ(frames.front().module, thrum::stat::kMadeCode);
        EXPECT_EQ(frames.front().function, has_name ? "Sync.main" : "");
        EXPECT_EQ(frames.front().is_user, has_name);
        EXPECT_TRUE(unwinder.missing().empty()) << unwinder.missing().front();
    }
    Frame frame;
    frame.function = "Sync.main";
    frame.module = thrum::stat::kMadeCode;
    EXPECT_EQ(thrum::stat::frame_place(frame), "Sync.main (compiled at run time)");
    unlink(path.c_str());
    munmap(page, 4096);
}

// This program's own entries: what is looked at there is on its way to the function that it is named by.
TEST(Sampler, EntriesOfTheLinkageTableAreTheFunctions) {
    const auto text = thrum::process::read_all("/proc/self/maps");
    ASSERT_TRUE(text);
    const Maps maps{0, *text, 0};
    const Unwinder unwinder(maps);
    const thrum::Symbols symbols(maps.text);
    const std::vector<thrum::Mapping> mappings = thrum::mappings_of(maps.text);
    Code code(mappings);
    const thrum::Mapping *own =
        thrum::mapping_at(mappings, reinterpret_cast<std::uint64_t>(&is_others_futex_wait));
    ASSERT_NE(own, nullptr);
    std::set<std::string> names;
    for (std::uint64_t at = own->start; at < own->end; at += 8) {
        const std::uint64_t word = code.word_of_entry(at);
        if (word == 0 || symbols.section_at(at).rfind(".plt", 0) != 0)
            continue;
        RawStack stack;
        stack.addresses = {at + 5}; // within the entry
        const std::vector<Frame> frames = unwinder.frames(stack);
        ASSERT_EQ(frames.size(), 1U);
        EXPECT_FALSE(frames.front().is_user && !frames.front().function.empty());
        thrum::Symbol expected;
        expected.function = symbols.name_at(word);
        EXPECT_EQ(frames.front().function, thrum::short_name(expected));
        names.insert(frames.front().function);
    }
    EXPECT_GT(names.size(), 10U);
    EXPECT_EQ(names.count("usleep"), 1U);
}

TEST(Sampler, NumbersInContainersAreOthers) {
    EXPECT_FALSE(has_inner_numbers("Name:\tx\nNSpid:\t4711\nNSpgid:\t4711\t1\n"));
    EXPECT_TRUE(has_inner_numbers("Name:\tx\nNSpid:\t4711\t12\nNSpgid:\t4711\n"));
    EXPECT_FALSE(has_inner_numbers("Name:\tNSpid:\t1\t2\n"));
}

// So many threads have each been looked at for so long with the owner of what they want known.
Enough stuck_for(double seconds, std::size_t threads) {
    return [=](const Sampler &sampler) {
        std::map<pid_t, double> since;
        std::set<pid_t> stuck;
        for (const ProcSample &one : sampler.samples)
            if (one.holder != 0 && one.at - since.try_emplace(one.thread, one.at).first->second >= seconds)
                stuck.insert(one.thread);
        return stuck.size() >= threads;
    };
}

TEST(Sampler, ThreadsThatWaitForEachOther) {
    const Report report = report_of({CLI_SAMPLED_O2, "deadlock", "2"}, stuck_for(1, 2));
    ASSERT_EQ(report.deadlock.threads.size(), 2U) << text_of_report(report);
    EXPECT_GE(report.deadlock.seconds, 0.5);
    for (std::size_t i = 0; i < 2; i++) {
        const Stuck &stuck = report.deadlock.threads[i];
        EXPECT_EQ(stuck.holder, report.deadlock.threads[1 - i].thread);
        EXPECT_FALSE(stuck.is_join);
        ASSERT_LT(stuck.site, report.waits.size());
        const Site &site = report.waits[stuck.site];
        ASSERT_GE(site.stack.size(), 2U) << text_of_report(report);
        EXPECT_EQ(site.stack[1].function, "want");
        EXPECT_EQ(site.stack[1].line, line_of("want"));
        ASSERT_LT(site.lock, report.locks.size());
        EXPECT_EQ(report.locks[site.lock].lock.symbol, "own_lock");
    }
    EXPECT_NE(report.deadlock.threads[0].site, report.deadlock.threads[1].site) << "two locks";
}

TEST(Sampler, AThreadThatEndedWithALock) {
    const Report report = report_of({CLI_SAMPLED_O2, "ended", "2"}, stuck_for(2, 1));
    ASSERT_EQ(report.deadlock.threads.size(), 1U) << text_of_report(report);
    EXPECT_EQ(report.deadlock.kind, Deadlock::kOwnerEnded);
}

// The first thread holds the mutex for 20 ms at a time, and sleeps meanwhile.
TEST(Sampler, AHolderThatSleeps) {
    const Report report = report_of({CLI_SAMPLED_O2, "mutex", "3"}, futex_waits(100));
    ASSERT_FALSE(report.locks.empty());
    const Holder &holder = report.locks.front().holder;
    EXPECT_GT(holder.looks, 20U) << text_of_report(report);
    EXPECT_GT(holder.asleep, 0.5) << text_of_report(report);
    EXPECT_EQ(holder.doing, Doing::kSleep);
    EXPECT_TRUE(has_function(holder.stack, "hold_for_ever")) << text_of_stack(holder.stack);
    EXPECT_TRUE(report.deadlock.threads.empty());
}

TEST(Sampler, LockThatIsHeld) {
    const Report report = report_of({CLI_SAMPLED_O2, "stream", "3"}, futex_waits(60));
    ASSERT_FALSE(report.waits.empty());
    const Site &site = report.waits.front();
    ASSERT_GE(site.stack.size(), 2U) << text_of_report(report);
    EXPECT_EQ(site.stack[0].function, "putc") << text_of_report(report);
    EXPECT_EQ(site.stack[1].function, "put");
    EXPECT_EQ(site.stack[1].line, line_of("put"));
    EXPECT_DOUBLE_EQ(site.share, 1);
    ASSERT_EQ(report.locks.size(), 1U) << text_of_report(report);
    EXPECT_EQ(report.locks[0].lock.kind, LockKind::kLibrary);
    EXPECT_EQ(report.locks[0].threads, 3U);
    EXPECT_EQ(report.locks[0].waiters_most, 3U);
    EXPECT_GT(report.locks[0].waiters_mean, 2);
    const auto others = std::count_if(report.others.begin(), report.others.end(), [](const Site &other) {
        const auto join = std::find_if(other.stack.begin(), other.stack.end(),
                                       [](const Frame &frame) { return frame.is_user; });
        return other.doing == Doing::kJoinWait && join != other.stack.begin() && join != other.stack.end() &&
               (join - 1)->function == "pthread_join" && join->function == "join" &&
               join->line == line_of("join");
    });
    EXPECT_EQ(others, 1) << text_of_report(report);
}

// The same whether frames are found by the frame pointer or not.
void expect_nested(const std::string &program) {
    const Report report = report_of({program, "mutex", "3"}, futex_waits(80));
    ASSERT_FALSE(report.waits.empty());
    const Site &site = report.waits.front();
    const std::vector<std::string> expected = {"pthread_mutex_lock", "take", "inner", "middle", "outer",
                                               "take_for_ever"};
    EXPECT_EQ(functions(site), expected) << text_of_report(report);
    const std::vector<std::string> marks = {"take", "inner", "middle", "outer", "thread"};
    for (std::size_t i = 0; i < marks.size() && i + 1 < site.stack.size(); i++)
        EXPECT_EQ(site.stack[i + 1].line, line_of(marks[i])) << marks[i];
    EXPECT_GT(site.share, 0.8) << text_of_report(report);
    ASSERT_LT(site.lock, report.locks.size());
    const Lock &lock = report.locks[site.lock].lock;
    EXPECT_EQ(lock.kind, LockKind::kGlobal);
    EXPECT_EQ(lock.symbol, "the_mutex") << lock.text;
    EXPECT_EQ(lock.offset, 0U);
    EXPECT_FALSE(has_warning(report, "debugging")) << text_of_report(report);
}

TEST(Sampler, MutexOfTheProgram) {
    expect_nested(CLI_SAMPLED_O2);
}
TEST(Sampler, MutexOfAProgramThatIsNotOptimised) {
    expect_nested(CLI_SAMPLED_O0);
}
TEST(Sampler, MutexOfAProgramWithFramePointers) {
    expect_nested(CLI_SAMPLED_FP);
}

// What a lock is that no symbol names: by whose memory it lies in.
struct Elsewhere {
    const char *name, *where, *text;
    LockKind kind;
};

void PrintTo(const Elsewhere &lies, std::ostream *out) {
    *out << lies.where;
}

class LocksElsewhere : public testing::TestWithParam<Elsewhere> {};

TEST_P(LocksElsewhere, AreKnownByTheirMemory) {
    const Elsewhere &lies = GetParam();
    const Report report = report_of({CLI_SAMPLED_O2, "elsewhere", "3", lies.where}, futex_waits(60));
    ASSERT_FALSE(report.waits.empty());
    const Site &site = report.waits.front();
    ASSERT_GE(site.stack.size(), 2U) << text_of_report(report);
    EXPECT_EQ(site.stack[0].function, "pthread_mutex_lock") << text_of_report(report);
    EXPECT_EQ(site.stack[1].function, "take_elsewhere") << text_of_report(report);
    EXPECT_EQ(site.stack[1].line, line_of("elsewhere")) << text_of_report(report);
    ASSERT_LT(site.lock, report.locks.size());
    const Lock &lock = report.locks[site.lock].lock;
    EXPECT_EQ(lock.kind, lies.kind) << lock.text;
    EXPECT_EQ(lock.text.find(lies.text), 0U) << lock.text;
    EXPECT_EQ(lock.symbol, "");
    EXPECT_EQ(lock.module, "");
    EXPECT_NE(lock.address, 0U);
    EXPECT_GT(report.locks[site.lock].share, 0.8) << text_of_report(report);
}

INSTANTIATE_TEST_SUITE_P(
    Sampler, LocksElsewhere,
    testing::Values(Elsewhere{"FirstThreadsStack", "stack", "a thread's stack (0x", LockKind::kStack},
                    Elsewhere{"OtherThreadsStack", "thread-stack", "a thread's stack (0x", LockKind::kStack},
                    Elsewhere{"Heap", "heap", "heap (0x", LockKind::kHeap},
                    Elsewhere{"HeapOfAnotherThread", "arena", "heap (0x", LockKind::kHeap},
                    Elsewhere{"Mapping", "mapping", "mapping of ", LockKind::kMapping}),
    [](const auto &test) { return std::string(test.param.name); });

TEST(Sampler, WithoutDebuggingInformation) {
    const Report report = report_of({CLI_SAMPLED_STRIPPED, "mutex", "3"}, futex_waits(60));
    ASSERT_FALSE(report.waits.empty());
    EXPECT_EQ(report.waits.front().stack.front().function, "pthread_mutex_lock") << text_of_report(report);
    ASSERT_GE(report.waits.front().stack.size(), 5U) << text_of_report(report);
    EXPECT_TRUE(report.waits.front().stack[1].is_user);
    EXPECT_TRUE(has_warning(report, "no debugging information: cli-sampled-stripped"))
        << text_of_report(report);
    std::set<std::uint64_t> functions;
    for (const Frame &frame : report.waits.front().stack)
        if (frame.is_user) {
            EXPECT_NE(frame.begin, 0U) << "by call-frame information";
            EXPECT_LT(frame.begin, frame.offset);
            functions.insert(frame.begin);
        }
    EXPECT_EQ(functions.size(), 4U) << "inner, middle, outer, take_for_ever\n" << text_of_report(report);
    const Lock &lock = report.locks.at(report.waits.front().lock).lock;
    EXPECT_EQ(lock.kind, LockKind::kGlobal);
    EXPECT_EQ(lock.symbol, "");
    EXPECT_NE(lock.offset, 0U);
    EXPECT_EQ(lock.text.find("cli-sampled-stripped+0x"), 0U) << lock.text;
    EXPECT_TRUE(has_warning(report, "functions and lines are unknown")) << text_of_report(report);
    // What is blamed, and that it is not known by name, is said.
    Report whole = report;
    Point point;
    point.threads = 3;
    point.wall.median = point.user = whole.sampled_wall;
    whole.points.push_back(point);
    whole.machine.processors = 2;
    conclude(whole, "");
    ASSERT_FALSE(whole.findings.empty()) << text_of_report(report);
    const Finding &found = whole.findings.front();
    EXPECT_NE(found.cause.find("cli-sampled-stripped+0x"), std::string::npos) << found.cause;
    EXPECT_NE(found.cause.find(" at cli-sampled-stripped+0x"), std::string::npos) << found.cause;
    EXPECT_EQ(found.function, "");
    EXPECT_TRUE(std::any_of(found.evidence.begin(), found.evidence.end(), [](const std::string &line) {
        return line.find("its function and line are unknown") != std::string::npos;
    }));
}

// Beside the program there is another one with its name by now: it is not asked for names.
TEST(Sampler, AProgramThatWasReplaced) {
    const std::string program = place().copy(CLI_SAMPLED_O2, "stat-replaced");
    Sampler sampler(200, 0.5);
    double wall = 0;
    {
        Child child({program, "mutex", "3"});
        sampler.forked(child.pid());
        child.go();
        wall = watch(sampler, futex_waits(60));
    }
    ASSERT_EQ(rename(place().copy(CLI_SAMPLED_O0, "stat-replacing").c_str(), program.c_str()), 0);
    Report report;
    add_samples(report, sampler, wall);
    EXPECT_TRUE(has_warning(report, "mapped as " + program + " was not found")) << text_of_report(report);
    for (const Site &site : report.waits)
        for (const Frame &frame : site.stack)
            if (frame.module == "stat-replaced") {
                EXPECT_EQ(frame.function, "") << text_of_report(report);
                EXPECT_EQ(frame.line, 0);
                EXPECT_TRUE(frame.is_user);
            }
}

// One that still runs can be asked for the file that it is made of.
TEST(Sampler, AProgramThatWasReplacedAndStillRuns) {
    const std::string program = place().copy(CLI_SAMPLED_O2, "stat-replaced");
    Child child({program, "mutex", "3"});
    child.go();
    usleep(300000);
    ASSERT_EQ(rename(place().copy(CLI_SAMPLED_O0, "stat-replacing").c_str(), program.c_str()), 0);
    Sampler sampler(200, 0.5);
    sampler.attach(child.pid());
    const double wall = watch(sampler, futex_waits(60));
    Report report;
    add_samples(report, sampler, wall);
    ASSERT_FALSE(report.waits.empty());
    const std::vector<std::string> expected = {"pthread_mutex_lock", "take", "inner", "middle", "outer",
                                               "take_for_ever"};
    EXPECT_EQ(functions(report.waits.front()), expected) << text_of_report(report);
    EXPECT_FALSE(has_warning(report, "was not found")) << text_of_report(report);
}

// --- waits that were counted --------------------------------------------------------------------------------

// Waits in this process, which calls pthread_mutex_lock() here.
struct CountedHere : ExactLayer {
    CountedHere() {
        maps.push_back({0, read_file("/proc/self/maps")});
        counts_threads = false;
    }
    void add(const void *lock, double seconds, const char *waiter = "pthread_mutex_lock") {
        RawStack stack;
        void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
        const auto in = [](const void *function) { return reinterpret_cast<std::uint64_t>(function) + 2; };
        stack.addresses = {in(dlsym(libc, waiter)), in(reinterpret_cast<const void *>(&line_of))};
        dlclose(libc);
        waits.push_back({stack, reinterpret_cast<std::uint64_t>(lock), 1000, seconds});
    }
    void poll(double) override {}
    void finish() override {}
};

TEST(Sampler, CountedWaitsForManyLocksAtOnePlace) {
    CountedHere counted;
    const std::vector<pthread_mutex_t> stripes(8);
    for (const pthread_mutex_t &stripe : stripes)
        counted.add(&stripe, 0.1);
    Report report;
    add_exact(report, counted);
    ASSERT_EQ(report.waits.size(), 8U) << text_of_report(report);
    EXPECT_EQ(report.locks.size(), 8U);
    for (const Site &site : report.waits) {
        EXPECT_EQ(site.stack.front().function, "pthread_mutex_lock") << text_of_report(report);
        EXPECT_NEAR(site.share, 0.125, 1e-9);
        ASSERT_LT(site.lock, report.locks.size());
        EXPECT_EQ(report.locks[site.lock].waits, 1000U);
    }
}

TEST(Sampler, CountedWaitsForWork) {
    CountedHere counted;
    const std::vector<pthread_cond_t> conditions(3);
    for (int round = 0; round < 2; round++)
        for (const pthread_cond_t &condition : conditions)
            counted.add(&condition, 0.1, "pthread_cond_wait");
    Report report;
    add_exact(report, counted);
    EXPECT_TRUE(report.waits.empty()) << text_of_report(report);
    EXPECT_TRUE(report.locks.empty());
    ASSERT_EQ(report.others.size(), 1U) << text_of_report(report);
    EXPECT_EQ(report.others[0].doing, Doing::kIdleWait);
    EXPECT_EQ(report.others[0].calls, 6000U);
}

ProcSample lock_wait(const void *lock, std::size_t stack) {
    ProcSample sample;
    sample.state = 'S';
    sample.system_call = SYS_futex;
    sample.arguments[0] = reinterpret_cast<std::uint64_t>(lock);
    sample.arguments[1] = FUTEX_WAIT_PRIVATE;
    sample.arguments[2] = 2;
    sample.thread = 7;
    sample.stack = stack;
    return sample;
}

// Before one for the same lock was seen with a stack, and after.
TEST(Sampler, AWaitWithoutAStackIsForItsLock) {
    CountedHere here;
    const std::vector<pthread_mutex_t> locks(3);
    here.add(&locks[0], 1);
    here.add(&locks[1], 1, "pthread_rwlock_rdlock");
    Sampler sampler(100, 1);
    sampler.observed.maps = here.maps;
    sampler.observed.stacks = {here.waits[0].stack, here.waits[1].stack};
    for (const auto &[lock, stack] : {std::pair(0, SIZE_MAX),
                                      {0, std::size_t{0}},
                                      {1, std::size_t{1}},
                                      {0, SIZE_MAX},
                                      {1, SIZE_MAX},
                                      {0, SIZE_MAX},
                                      {2, SIZE_MAX}})
        sampler.samples.push_back(lock_wait(&locks[static_cast<std::size_t>(lock)], stack));
    for (std::size_t i = 0; i < sampler.samples.size(); i++)
        sampler.samples[i].at = 0.01 * static_cast<double>(i + 1);
    sampler.threads.resize(1);
    sampler.threads[0].id = 7;
    sampler.threads[0].end = sampler.samples.back().at;
    Report report;
    add_samples(report, sampler, 0.1);
    ASSERT_EQ(report.waits.size(), 2U) << text_of_report(report);
    EXPECT_EQ(report.waits[0].stack.front().function, "pthread_mutex_lock") << text_of_report(report);
    EXPECT_EQ(report.waits[0].samples, 4U);
    EXPECT_EQ(report.waits[1].stack.front().function, "pthread_rwlock_rdlock") << text_of_report(report);
    EXPECT_EQ(report.waits[1].samples, 2U);
    ASSERT_EQ(report.others.size(), 1U) << "a word of 2 alone is no lock";
    EXPECT_EQ(report.others[0].stack.front().module, "(unknown)");
    EXPECT_EQ(report.others[0].samples, 1U);
}

// Nothing is known of the function that waits, but a thread of the program is the owner that stands beside the word.
TEST(Sampler, AWaitWithoutAStackIsForALockThatHasAnOwner) {
    const pthread_mutex_t lock{};
    for (const pid_t owner : {8, 9}) { // there is no thread 9
        Sampler sampler(100, 1);
        sampler.samples = {lock_wait(&lock, SIZE_MAX), lock_wait(&lock, SIZE_MAX)};
        sampler.samples[1].holder = owner;
        for (std::size_t i = 0; i < 2; i++)
            sampler.samples[i].at = 0.01 * static_cast<double>(i + 1);
        sampler.threads.resize(2);
        for (std::size_t i = 0; i < 2; i++) {
            sampler.threads[i].id = 7 + static_cast<pid_t>(i);
            sampler.threads[i].end = 0.02;
        }
        Report report;
        add_samples(report, sampler, 0.1);
        EXPECT_EQ(report.waits.size(), owner == 8 ? 1U : 0U) << text_of_report(report);
    }
}

// Their addresses are others in each run: the heaviest is taken for the heaviest.
TEST(Sampler, CountedLocksAreThoseThatWereSampled) {
    const std::vector<pthread_mutex_t> stripes(2);
    CountedHere first;
    first.add(&stripes[0], 1);
    Report report;
    add_exact(report, first); // for its stack
    report.locks.resize(2);
    report.waits.resize(2, report.waits.front());
    for (std::size_t i = 0; i < 2; i++) {
        report.waits[i].calls.reset();
        report.waits[i].lock = i;
        report.waits[i].samples = i == 0 ? 90 : 10;
        report.locks[i].lock.kind = report.locks[0].lock.kind;
        report.locks[i].lock.address = 64 * (i + 1);
        report.locks[i].waits.reset();
        report.locks[i].waiters_mean = i == 0 ? 2.5 : 1;
    }
    CountedHere counted;
    counted.add(&stripes[1], 0.25);
    counted.add(&stripes[0], 0.75);
    add_exact(report, counted);
    ASSERT_EQ(report.waits.size(), 2U) << text_of_report(report);
    ASSERT_EQ(report.locks.size(), 2U);
    EXPECT_EQ(report.locks[0].lock.address, reinterpret_cast<std::uint64_t>(&stripes[0]));
    EXPECT_EQ(report.locks[0].waiters_mean, 2.5);
    EXPECT_EQ(report.waits[0].lock, 0U);
    EXPECT_EQ(report.waits[0].samples, 90U);
    EXPECT_NEAR(report.waits[0].share, 0.75, 1e-9);
    EXPECT_EQ(report.locks[1].lock.address, reinterpret_cast<std::uint64_t>(&stripes[1]));
}

// What was counted together, when there was no room any more, has the time of what was sampled there: not once more.
TEST(Sampler, CountedTogetherIsCountedOnce) {
    const std::vector<pthread_mutex_t> stripes(3);
    CountedHere first;
    for (const pthread_mutex_t &stripe : stripes)
        first.add(&stripe, 1);
    Report report;
    add_exact(report, first); // for its stack
    ASSERT_EQ(report.waits.size(), 3U);
    report.threads.resize(1);
    for (std::size_t i = 0; i < 3; i++) {
        report.waits[i].calls.reset();
        report.waits[i].seconds = report.locks[report.waits[i].lock].seconds = 2;
        report.waits[i].samples = report.locks[report.waits[i].lock].samples = 20;
        report.locks[i].waits.reset();
        report.threads[0].spans.push_back(
            {static_cast<double>(i), static_cast<double>(i) + 1, Doing::kLockWait, i});
    }
    const std::uint64_t by_itself = report.locks[report.waits[1].lock].lock.address;
    CountedHere counted;
    counted.add(nullptr, 0.25);
    counted.add(nullptr, 0.5);
    counted.add(reinterpret_cast<const void *>(by_itself), 0.25);
    add_exact(report, counted);
    ASSERT_EQ(report.waits.size(), 2U) << text_of_report(report);
    ASSERT_EQ(report.locks.size(), 2U) << text_of_report(report);
    const Site &together = report.waits[0], &alone = report.waits[1];
    EXPECT_EQ(report.locks[together.lock].lock.text, "several locks");
    EXPECT_EQ(report.locks[alone.lock].lock.address, by_itself);
    EXPECT_NEAR(together.seconds, 0.75, 1e-9);
    EXPECT_NEAR(together.share, 0.75, 1e-9);
    EXPECT_NEAR(report.locks[together.lock].seconds, 0.75, 1e-9);
    EXPECT_EQ(together.calls, 2000U);
    EXPECT_EQ(together.samples, 40U);
    EXPECT_EQ(report.locks[together.lock].samples, 40U);
    EXPECT_NEAR(alone.share, 0.25, 1e-9);
    EXPECT_EQ(alone.samples, 20U);
    EXPECT_EQ(report.threads[0].spans[0].site, 0U);
    EXPECT_EQ(report.threads[0].spans[1].site, 1U);
    EXPECT_EQ(report.threads[0].spans[2].site, 0U);
    EXPECT_TRUE(report.others.empty()) << text_of_report(report);
}

#endif

// Neither joins nor waits for work count as waits for a lock.
class WaitsForWork : public testing::TestWithParam<std::pair<const char *, Doing>> {};

TEST_P(WaitsForWork, AreNoLockWaits) {
    const auto [mode, doing] = GetParam();
    const Report report = report_of({CLI_SAMPLED_O2, mode, "3"}, samples(80));
    double of_kind = 0, all = 0;
    for (const Site &site : report.others) {
        of_kind += site.doing == doing ? static_cast<double>(site.samples) : 0;
        all += site.doing != Doing::kJoinWait ? static_cast<double>(site.samples) : 0;
    }
    EXPECT_TRUE(report.waits.empty()) << text_of_report(report);
    EXPECT_GT(of_kind, 0.9 * all) << text_of_report(report);
    EXPECT_GT(report.doing[static_cast<int>(doing)], report.doing[static_cast<int>(Doing::kJoinWait)]);
}

#ifdef CLI_ELFUTILS
INSTANTIATE_TEST_SUITE_P(Sampler, WaitsForWork,
                         testing::Values(std::pair("condition", Doing::kIdleWait),
                                         std::pair("semaphore", Doing::kIdleWait),
                                         std::pair("barrier", Doing::kIdleWait),
                                         std::pair("sleep", Doing::kSleep),
                                         std::pair("read", Doing::kInputOutput)),
                         [](const auto &test) { return std::string(test.param.first); });
#else
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WaitsForWork);
#endif

#ifdef CLI_ELFUTILS
// A semaphore says nothing of its holder: the looks at all threads do. They must be looked at often enough to see it pass on.
bool has_passed_on(const Report &report) {
    return std::any_of(report.locks.begin(), report.locks.end(),
                       [](const LockUse &use) { return use.lock.is_semaphore; });
}

TEST(Sampler, SemaphoresThatAreLocks) {
    for (const char *mode : {"semaphore-lock", "set-lock"}) {
        const Report report = report_of({CLI_SAMPLED_O2, mode, "4"}, samples(500));
        ASSERT_TRUE(has_passed_on(report)) << mode << "\n" << text_of_report(report);
        const LockUse &use = report.locks.front();
        EXPECT_TRUE(use.lock.may_be_tasks) << mode << ": its waiters do nothing else";
        EXPECT_GT(use.waiters_mean, 1.5) << mode;
        EXPECT_GE(use.holder.looks, 20U) << mode;
        EXPECT_GT(use.holder.asleep, 0.5) << mode;
        EXPECT_EQ(use.holder.doing, Doing::kSleep) << mode;
        const auto asks = [](const Frame &frame) { return frame.function == "ask_slowly"; };
        EXPECT_TRUE(std::any_of(use.holder.stack.begin(), use.holder.stack.end(), asks)) << mode;
    }
}

// One at a time works as well, and the others wait.
TEST(Sampler, ThreadsOfAPoolHaveNoLock) {
    const Report report = report_of({CLI_SAMPLED_O2, "pool", "5"}, samples(500));
    EXPECT_FALSE(has_passed_on(report)) << text_of_report(report);
}
#endif

// More threads than CPUs: what they want and do not get is told apart from what they get.
TEST(Sampler, RunningAndRunnable) {
    const auto threads = static_cast<unsigned>(3 * sysconf(_SC_NPROCESSORS_ONLN));
    const Report report =
        report_of({CLI_SAMPLED_O2, "spin", std::to_string(threads)}, samples(100 * threads));
    const double running = report.doing[static_cast<int>(Doing::kRunning)];
    const double runnable = report.doing[static_cast<int>(Doing::kRunnable)];
    EXPECT_GT(running, 0);
    EXPECT_GT(runnable, running) << "a third of them could run at once";
    EXPECT_TRUE(report.waits.empty());
    EXPECT_EQ(report.threads_created, threads);
    ASSERT_EQ(report.threads.size(), threads + 1);
    for (const Thread &thread : report.threads) {
        EXPECT_EQ(thread.name, "cli-sampled-o2");
        EXPECT_FALSE(thread.spans.empty());
        for (std::size_t i = 1; i < thread.spans.size(); i++)
            EXPECT_LE(thread.spans[i - 1].end, thread.spans[i].begin + 1e-9);
        for (const Thread::Span &span : thread.spans)
            EXPECT_LE(span.ran, thread.cpu + 1e-9);
    }
}

TEST(Sampler, ThreadsThatComeAndGo) {
    const Report report = report_of({CLI_SAMPLED_O2, "storm", "16"},
                                    [](const Sampler &sampler) { return sampler.threads.size() > 60; });
    EXPECT_GT(report.threads_created, 50U);
    EXPECT_FALSE(report.threads_counted);
    EXPECT_GE(report.sampled_threads, 2U);
}

// Within its budget, the sampler takes them in turn.
TEST(Sampler, ManyThreads) {
    const Report report = report_of(
        {CLI_SAMPLED_O2, "sleep", "1000"},
        [](const Sampler &sampler) {
            return sampler.threads.size() > 1000 &&
                   std::all_of(sampler.threads.begin(), sampler.threads.end(),
                               [](const ProcThread &thread) { return thread.run_ns != 0; });
        },
        0.05);
    EXPECT_EQ(report.sampled_threads, 1001U);
    EXPECT_EQ(report.threads.size(), 1001U);
    EXPECT_TRUE(report.waits.empty());
}

TEST(Sampler, EndsAtOnce) {
    Sampler sampler(200, 0.5);
    Child child({CLI_SAMPLED_O2, "end"});
    sampler.forked(child.pid());
    child.go();
    const double wall = watch(sampler, [&](const Sampler &) {
        siginfo_t ended{};
        return waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               ended.si_pid != 0;
    });
    for (int i = 0; i < 20; i++)
        sampler.poll(wall + 0.01 * i);
    Report report;
    add_samples(report, sampler, wall);
    EXPECT_TRUE(report.waits.empty());
    EXPECT_LE(report.threads.size(), 1U);
    EXPECT_EQ(report.samples == 0, has_warning(report, "ended before")) << text_of_report(report);
}

TEST(Sampler, FirstThreadEnds) {
    const Report report = report_of({CLI_SAMPLED_O2, "main-ends", "2"}, samples(200));
    EXPECT_LE(report.threads.size(), 3U) << "the first one stays as a zombie, and is one thread";
    EXPECT_GT(report.doing[static_cast<int>(Doing::kSleep)], 0);
}

TEST(Sampler, ProgramThatExecutesAnother) {
    const Report report = report_of({CLI_SAMPLED_O2, "exec"}, futex_waits(40));
    EXPECT_TRUE(has_warning(report, "executed another one")) << text_of_report(report);
#ifdef CLI_ELFUTILS
    ASSERT_FALSE(report.waits.empty());
    EXPECT_EQ(report.waits.front().stack.front().function, "putc") << text_of_report(report);
#endif
}

TEST(Sampler, ProcessesAreNotFollowed) {
    const Report report = report_of({CLI_SAMPLED_O2, "fork"}, samples(60));
    EXPECT_TRUE(has_warning(report, "started other processes")) << text_of_report(report);
}

// A program that ends with 3 in the second of its runs with two threads, which is the sampled one.
TEST(Sampler, ARunThatEndsLikeNoOther) {
    const std::string count = place().path("stat-runs");
    std::remove(count.c_str());
    Options options;
    options.sweep = {1, 2};
    options.telling.braces = true;
    options.runs = 1;
    options.no_profile = true;
    Report report;
    Examination(options, report)
        .run_program({"/bin/sh", "-c",
                      "[ $0 = 1 ] || [ ! -e " + count + " ] || exit 3; [ $0 = 1 ] || > " + count, "{}"});
    EXPECT_TRUE(has_warning(report, "the sampled run ended differently: exit code 3 instead of exit code 0"))
        << text_of_report(report);
    EXPECT_EQ(report.points.size(), 2U);
    EXPECT_EQ(report.exit_code, 0);
}

TEST(Sampler, WhyAProgramCannotBeLookedAt) {
    for (const int scope : {0, 1})
        EXPECT_NE(why_hidden(scope).find("set-user-ID"), std::string::npos);
    EXPECT_EQ(why_hidden(2).find("kernel.yama.ptrace_scope is 2, which allows only root"), 0U)
        << why_hidden(2);
    EXPECT_EQ(why_hidden(3).find("kernel.yama.ptrace_scope is 3, which forbids all users"), 0U)
        << why_hidden(3);
}

// --- a process that runs already ----------------------------------------------------------------------------

TEST(Sampler, Attach) {
    Child child({CLI_SAMPLED_O2, "stream", "2"});
    child.go();
    usleep(300000);
    Sampler sampler(200, 0.5);
    sampler.attach(child.pid());
    const double wall = watch(sampler, futex_waits(40));
    Report report;
    add_samples(report, sampler, wall);
    EXPECT_FALSE(report.waits.empty() && report.others.empty());
    EXPECT_EQ(report.threads_created, 0U) << "they were there before";
}

// One byte at a time from one process to another.
class Pipe {
  public:
    Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    ~Pipe() {
        close(ends_[0]);
        close(ends_[1]);
    }
    bool give() const { return write(ends_[1], "!", 1) == 1; }
    bool take() const {
        char byte;
        return read(ends_[0], &byte, 1) == 1;
    }

  private:
    int ends_[2] = {-1, -1};
};

// A process of two threads: the first one ends when it is told to, and then the other maps a program.
struct Headless {
    Headless() : pid(fork()) {
        if (pid == 0)
            run();
    }
    Headless(const Headless &) = delete;
    Headless &operator=(const Headless &) = delete;
    ~Headless() {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    [[noreturn]] void run() const {
        pthread_t other;
        pthread_create(&other, nullptr, map_program, const_cast<Headless *>(this));
        end_first.take();
        syscall(SYS_exit, 0);
        _exit(1);
    }
    static void *map_program(void *at) {
        const auto &self = *static_cast<const Headless *>(at);
        const int program = open(CLI_WATCHED, O_RDONLY | O_CLOEXEC);
        if (self.map.take() &&
            mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, program, 0) != MAP_FAILED)
            self.mapped.give();
        pause();
        return nullptr;
    }
    void behead() const {
        end_first.give();
        for (int i = 0; i < 5000 && !maps_of_first().empty(); i++)
            usleep(1000);
        ASSERT_EQ(maps_of_first(), "");
        map.give();
        ASSERT_TRUE(mapped.take());
    }
    std::string maps_of_first() const { return read_file("/proc/" + std::to_string(pid) + "/maps"); }

    Pipe end_first, map, mapped;
    pid_t pid;
};

// Its first thread's file of mappings is empty from then on.
TEST(Sampler, MapsOfAProcessWhoseFirstThreadEndsMeanwhile) {
    const Headless process;
    Sampler sampler(200, 0.5);
    sampler.attach(process.pid);
    ASSERT_FALSE(sampler.observed.maps.empty());
    const std::string before = sampler.observed.maps.back().text;
    EXPECT_EQ(before.find(CLI_WATCHED), std::string::npos);
    process.behead();
    for (int second = 1; second < 5; second++)
        sampler.poll(second);
    EXPECT_NE(sampler.observed.maps.back().text.find(CLI_WATCHED), std::string::npos);

    std::vector<Maps> maps;
    MapReader reader(maps, true);
    reader.begin(process.pid);
    reader.poll(1);
    ASSERT_EQ(maps.size(), 1U);
    EXPECT_NE(maps.back().text.find(CLI_WATCHED), std::string::npos);
    EXPECT_NE(thrum::process::maps(process.pid).find(CLI_WATCHED), std::string::npos);
}

// A thread's times are in the second of two files: if only the first one could be read, as of a thread that ends in
// between, it counts as not sampled. Here there is no descriptor left for the second.
TEST(Sampler, ALookThatWasCutShortIsNone) {
    Child child({CLI_SAMPLED_O2, "stream", "2"});
    child.go();
    usleep(300000);
    Sampler sampler(200, 0.5);
    sampler.attach(child.pid());
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = dup(0);
    ASSERT_GE(next, 0);
    close(next);
    const rlimit one_left{static_cast<rlim_t>(next) + 1, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one_left), 0);
    for (int i = 1; i <= 5; i++)
        sampler.poll(0.01 * i);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(sampler.samples.size(), 0U) << "of threads that would seem not to have run at all";
    const double begin = thrum::seconds_now();
    while (sampler.samples.size() < 20 && thrum::seconds_now() - begin < 30) {
        sampler.poll(0.06 + thrum::seconds_now() - begin);
        usleep(3000);
    }
    EXPECT_GE(sampler.samples.size(), 20U);
    EXPECT_EQ(sampler.threads.size(), 3U) << "none has ended";
    std::map<pid_t, double> times; // of each thread as far as it was seen
    for (const ProcSample &sample : sampler.samples) {
        EXPECT_GE(static_cast<double>(sample.run_ns), times[sample.thread]);
        times[sample.thread] = static_cast<double>(sample.run_ns);
    }
}

// The exit code says what attach() does as this user: 0 nothing, 7 a Failure that says so.
int attach_as(uid_t user, pid_t pid, const std::string &expected) {
    const pid_t trier = fork();
    if (trier == 0) {
        if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)
            _exit(9);
        try {
            Sampler(100, 0.5).attach(pid);
        } catch (const thrum::Failure &failure) {
            _exit(std::string(failure.what()).find(expected) == 0 ? 7 : 8);
        }
        _exit(0);
    }
    int status = 0;
    waitpid(trier, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Sampler, AttachIsForbidden) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can become another user to try it";
    Child child({CLI_SAMPLED_O2, "sleep", "1"});
    child.go();
    const std::string pid = std::to_string(child.pid());
    EXPECT_EQ(attach_as(54321, child.pid(), "no permission to read process " + pid), 7);
    EXPECT_EQ(attach_as(54321, 1 << 30, "there is no process"), 7);
    EXPECT_EQ(attach_as(0, child.pid(), ""), 0);
}

// --- the pieces ---------------------------------------------------------------------------------------------

TEST(Sampler, MapsAreTakenApart) {
    const auto mappings =
        thrum::mappings_of("00400000-00402000 r-xp 00001000 fe:00 247026    /a b/c (deleted)\n"
                           "nonsense\n"
                           "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
                           "7f0000001000-7f0000002000 ---p 00000000 00:00 0\n");
    ASSERT_EQ(mappings.size(), 3U);
    EXPECT_EQ(mappings[0].path, "/a b/c (deleted)");
    EXPECT_EQ(mappings[0].offset, 0x1000U);
    EXPECT_EQ(mappings[0].device, makedev(0xfe, 0));
    EXPECT_EQ(mappings[0].inode, 247026U);
    EXPECT_TRUE(mappings[0].is_executable && !mappings[0].is_writable && mappings[0].is_of_file());
    EXPECT_TRUE(mappings[1].path.empty() && mappings[1].is_writable);
    EXPECT_EQ(thrum::mapping_at(mappings, 0x401fff), &mappings[0]);
    EXPECT_EQ(thrum::mapping_at(mappings, 0x402000), nullptr);
    EXPECT_EQ(thrum::mapping_at(mappings, 0x7f0000001000), &mappings[2]);
    EXPECT_EQ(thrum::mapping_at({}, 1), nullptr);
}

std::vector<Frame> stack_of(const std::vector<std::string> &names) {
    std::vector<Frame> stack;
    for (const std::string &name : names) {
        stack.emplace_back();
        stack.back().function = name;
        stack.back().module = name == "work" ? "program" : "libc.so.6";
        stack.back().is_user = name == "work";
    }
    return stack;
}

ProcSample futex_wait(std::uint64_t operation, std::uint64_t value) {
    ProcSample sample;
    sample.state = 'S';
    sample.system_call = SYS_futex;
    sample.arguments[1] = operation;
    sample.arguments[2] = value;
    return sample;
}

TEST(Sampler, KindsOfWaits) {
    const std::set<pid_t> threads = {1234};
    const auto kind = [&](std::uint64_t operation, std::uint64_t value,
                          const std::vector<std::string> &names) {
        return doing_of(futex_wait(operation, value), stack_of(names), threads);
    };
    EXPECT_EQ(kind(FUTEX_WAIT_PRIVATE, 2, {"", "random", "work"}), Doing::kLockWait);
    EXPECT_EQ(kind(FUTEX_WAIT_PRIVATE, 2, {"__lll_lock_wait", "pthread_cond_wait", "work"}),
              Doing::kLockWait);
    EXPECT_EQ(kind(FUTEX_WAIT_PRIVATE, 2, {"", "pthread_cond_wait", "work"}), Doing::kLockWait)
        << "woken, and now for the mutex";
    EXPECT_EQ(kind(FUTEX_WAIT_BITSET_PRIVATE, 2, {"", "pthread_cond_wait", "work"}), Doing::kIdleWait);
    EXPECT_EQ(kind(FUTEX_WAIT_PRIVATE, 2, {"pthread_barrier_wait", "work"}), Doing::kIdleWait);
    EXPECT_EQ(kind(FUTEX_WAIT_PRIVATE, 2, {"syscall", "main"}), Doing::kIdleWait)
        << "a futex of its own, such as a latch's that two have still to reach";
    EXPECT_EQ(kind(FUTEX_WAIT_BITSET, 1234, {"", "work"}), Doing::kJoinWait);
    EXPECT_EQ(kind(FUTEX_WAIT_BITSET_PRIVATE, 1234, {"", "work"}), Doing::kIdleWait);
    EXPECT_EQ(kind(FUTEX_WAIT_BITSET, 1234, {"__pthread_clockjoin_ex", "work"}), Doing::kJoinWait);
    std::vector<Frame> team = stack_of({"", "work"});
    team[0].module = "libgomp.so.1.0.0";
    EXPECT_EQ(doing_of(futex_wait(FUTEX_WAIT_PRIVATE, UINT32_MAX), team, threads), Doing::kLockWait);
    EXPECT_EQ(doing_of(futex_wait(FUTEX_WAIT_PRIVATE, 16), team, threads), Doing::kIdleWait);
    EXPECT_EQ(kind(FUTEX_LOCK_PI_PRIVATE, 0, {"work"}), Doing::kLockWait);
    EXPECT_EQ(
        kind(FUTEX_WAIT_BITSET_PRIVATE, 0, {"std::sys::sync::mutex::futex::Mutex::lock_contended", "work"}),
        Doing::kLockWait);
}

TEST(Sampler, PythonsLock) {
    Lock lock;
    lock.symbol = "_PyRuntime";
    EXPECT_TRUE(is_python_lock(stack_of({"pthread_cond_timedwait", "", "PyEval_RestoreThread"}), lock));
    EXPECT_TRUE(is_python_lock(stack_of({"pthread_cond_timedwait", "take_gil"}), Lock()));
    EXPECT_FALSE(is_python_lock(stack_of({"sem_clockwait", "PyThread_acquire_lock_timed"}), lock));
    EXPECT_FALSE(is_python_lock(stack_of({"pthread_cond_timedwait", "work"}), Lock()));
}

// Without the words of a function's own, and of modules that have locks of their own.
TEST(Sampler, PythonsLockIsNoOtherLock) {
    const auto is_pythons = [](std::vector<Frame> stack, const std::vector<std::string> &modules) {
        for (std::size_t i = 0; i < stack.size(); i++)
            stack[i].module = modules[i];
        return is_python_lock(stack, Lock());
    };
    const std::string libc = "libc.so.6", python = "python3.11", eval = "_PyEval_EvalFrameDefault";
    EXPECT_TRUE(is_pythons(stack_of({"pthread_cond_timedwait", "", eval}), {libc, python, python}));
    EXPECT_TRUE(is_pythons(stack_of({"pthread_cond_timedwait", "", "PyGILState_Ensure", "call_back", eval}),
                           {libc, python, python, "_module.so", python}));
    EXPECT_FALSE(is_pythons(stack_of({"pthread_mutex_lock", "exec_blas", "dot", eval}),
                            {libc, "libopenblas.so.0", "_multiarray_umath.so", python}));
    EXPECT_FALSE(is_pythons(stack_of({"pthread_cond_wait", "exec_blas", "dot", eval}),
                            {libc, "libopenblas.so.0", "_multiarray_umath.so", python}));
    EXPECT_FALSE(is_pythons(stack_of({"random", "", eval}), {libc, python, python}));
    EXPECT_FALSE(is_pythons(stack_of({"malloc", "PyObject_Malloc", eval}), {libc, python, python}));
    EXPECT_FALSE(is_pythons(stack_of({"pthread_cond_wait", "PyThread_acquire_lock_timed", eval}),
                            {libc, python, python}));
    Lock runtime;
    runtime.symbol = "_PyRuntime";
    std::vector<Frame> mutex = stack_of({"pthread_mutex_lock", "", eval});
    mutex[1].module = mutex[2].module = python;
    EXPECT_TRUE(is_python_lock(mutex, runtime)) << "the one around the condition";
    EXPECT_FALSE(is_python_lock(mutex, Lock()));
}

TEST(Sampler, SurroundingsAreLeftOut) {
    const auto left = [](const std::vector<std::string> &names) {
        Site site;
        site.stack = without_surroundings(stack_of(names));
        return functions(site);
    };
    using Names = std::vector<std::string>;
    EXPECT_EQ(left({"__lll_lock_wait_private", "random", "work", "start_thread", "__clone3"}),
              Names({"random", "work"}));
    EXPECT_EQ(left({"", "random", "work", "", ""}), Names({"random", "work"})) << "a libc without names";
    EXPECT_EQ(left({"pthread_mutex_lock", "work"}), Names({"pthread_mutex_lock", "work"}));
    EXPECT_EQ(left({"start_thread"}), Names({"start_thread"}));
    EXPECT_EQ(left({"syscall", "work"}), Names({"syscall", "work"})) << "called by the program";
    EXPECT_EQ(left({"syscall", "random", "work"}), Names({"random", "work"})) << "called by the C library";
    EXPECT_EQ(left({"pause", "start_thread", "clone3"}), Names({"pause"}));
    EXPECT_EQ(left({}), Names());
}

// Waits for a lock with the address 64 from `begin` on, looked at once.
void add_lock_wait(Sampler &sampler, pid_t thread, double begin) {
    ProcSample sample = futex_wait(FUTEX_LOCK_PI_PRIVATE, 0);
    sample.arguments[0] = 64;
    sample.at = begin;
    sample.thread = thread;
    sampler.samples.push_back(sample);
    ProcThread known;
    known.id = thread;
    known.begin = known.end = begin;
    sampler.threads.push_back(known);
}

TEST(Sampler, AWaitEndsWithItsThread) {
    Sampler sampler(100, 1);
    add_lock_wait(sampler, 7, 1);
    sampler.threads[0].gone = 2;
    add_lock_wait(sampler, 8, 5);
    Report report;
    add_samples(report, sampler, 10);
    ASSERT_EQ(report.locks.size(), 1U);
    EXPECT_EQ(report.locks[0].threads, 2U);
    EXPECT_EQ(report.locks[0].waiters_most, 1U) << "never both at once";
    EXPECT_DOUBLE_EQ(report.locks[0].waiters_mean, 1);
}

TEST(Sampler, ThreadsThatEndAreMissed) {
    Sampler sampler(200, 0.5);
    Child child({CLI_SAMPLED_O2, "storm", "16"});
    sampler.forked(child.pid());
    child.go();
    watch(sampler, [](const Sampler &so_far) { return so_far.threads.size() > 60; });
    ASSERT_GT(sampler.threads.size(), 60U);
    EXPECT_FALSE(sampler.threads.front().gone) << "which joins the others";
    const auto gone = std::count_if(sampler.threads.begin(), sampler.threads.end(),
                                    [](const ProcThread &thread) { return thread.gone.has_value(); });
    EXPECT_GT(gone, 20);
    for (const ProcThread &thread : sampler.threads)
        EXPECT_GE(thread.gone.value_or(thread.end), thread.end);
}

TEST(Sampler, CountersThatGoBackAddNothing) {
    Sampler sampler(100, 1);
    sampler.threads.resize(1);
    sampler.threads[0].id = 7;
    for (int i = 1; i <= 100; i++) {
        ProcSample sample;
        sample.at = sampler.threads[0].end = i * 0.01;
        sample.thread = 7;
        sample.state = 'R';
        const bool is_odd = i == 50 || i == 100;
        sample.run_ns = is_odd ? 0 : static_cast<std::uint64_t>(i) * 10000000;
        sample.delay_ns = is_odd ? 0 : 1000;
        sampler.samples.push_back(sample);
    }
    Report report;
    add_samples(report, sampler, 1);
    EXPECT_NEAR(report.doing[static_cast<int>(Doing::kRunning)], 1, 0.02);
    EXPECT_LT(report.doing[static_cast<int>(Doing::kRunnable)], 0.01);
    ASSERT_EQ(report.threads.size(), 1U);
    for (const Thread::Span &span : report.threads[0].spans) {
        EXPECT_EQ(span.doing, Doing::kRunning);
        EXPECT_LE(span.ran, 1.001);
    }
}

TEST(Sampler, ALongRunIsThinnedOut) {
    Sampler sampler(100, 1);
    sampler.threads.resize(1);
    sampler.threads[0].id = 7;
    for (int i = 0; i < 100000; i++) {
        ProcSample sample;
        sample.at = sampler.threads[0].end = i * 0.01;
        sample.thread = 7;
        sample.state = i % 2 != 0 ? 'R' : 'S';
        sample.system_call = i % 2 != 0 ? -1 : SYS_clock_nanosleep;
        sample.run_ns = static_cast<std::uint64_t>(i) * 5000000; // half of the time
        sampler.samples.push_back(sample);
    }
    Report report;
    add_samples(report, sampler, 1000);
    ASSERT_EQ(report.threads.size(), 1U);
    EXPECT_LE(report.threads[0].spans.size(), 2000U);
    double ran = 0;
    for (const Thread::Span &span : report.threads[0].spans)
        ran += span.ran;
    EXPECT_NEAR(ran, 500, 1);
    EXPECT_NEAR(report.doing[static_cast<int>(Doing::kRunning)], 500, 1);
    EXPECT_NEAR(report.doing[static_cast<int>(Doing::kSleep)], 500, 1);
}

} // namespace
