// SPDX-License-Identifier: Apache-2.0
//
// The rules of memory that threads share (cli/stat/rules/sharing.cpp) on reports that are made up, and the decoding of the
// accesses that they are made from (cli/stat/operands.hpp).
#include <gtest/gtest.h>

#include <algorithm>

#include "native.hpp"
#include "stat/facts.hpp"
#include "stat/operands.hpp"
#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

using thrum::stat::find_operand;
using thrum::stat::Operand;
using thrum::stat::Sharing;

Sharing shared(const std::vector<Frame> &stack, bool is_one, double share, const char *symbol = "") {
    Sharing made;
    made.stack = stack;
    made.is_one = is_one;
    made.share = share;
    made.samples = static_cast<std::uint64_t>(200 * share);
    made.threads = 2;
    made.adds = 1;
    made.parts.emplace_back();
    made.parts.front().symbol = symbol;
    made.parts.front().text = std::string("prog .bss ") + symbol + " (global of the program)";
    return made;
}

// The same work takes `times` the CPU time with a core for each thread.
Case dear_case(double times) {
    Case made;
    made.point(1, 0.4, 0.4, 0).point(2, 0.2 * times, 0.4 * times, 0).doing(Doing::kRunning, 0.4 * times);
    made.burns({own("count"), own("worker", 30)}, 0.8, 0.5).burns({own("worker", 30)}, 0.2, 0.5);
    made.report.accesses_known = 0.8;
    return made;
}

TEST(StatRules, AVariableThatAllThreadsWrite) {
    Case made = dear_case(3.5);
    made.report.shared = {shared({own("count")}, true, 0.7, "requests")};
    ASSERT_EQ(rules_of(made.concluded()), "true-sharing");
    EXPECT_EQ(made.report.findings.front().cause, "All threads write one variable: requests in count()");
    EXPECT_EQ(made.report.findings.front().confidence, Confidence::kHigh);
    Case rare = dear_case(3.5); // 5 % of CPU time do not explain that
    rare.report.shared = {shared({own("count")}, true, 0.05, "requests")};
    EXPECT_EQ(rules_of(rare.concluded()).find("true-sharing"), std::string::npos);
    Case cheap = dear_case(1.05); // all of them do, and it costs nothing
    cheap.report.shared = {shared({own("count")}, true, 0.7, "requests")};
    EXPECT_EQ(rules_of(cheap.concluded()), "scales");
}

TEST(StatRules, TheReferenceCountOfASharedPointer) {
    Case made = dear_case(3.5);
    made.report.shared = {shared({library("__gnu_cxx::__exchange_and_add_dispatch", "prog"),
                                  library("std::_Sp_counted_base::_M_release", "prog"), own("width_of")},
                                 true, 0.7)};
    ASSERT_EQ(rules_of(made.concluded()), "true-sharing");
    EXPECT_EQ(made.report.findings.front().cause,
              "All threads write one counter: the reference count of a std::shared_ptr in width_of()");
    EXPECT_NE(made.report.findings.front().fix.find("Pass a reference"), std::string::npos);
}

TEST(StatRules, ASpinLockOfTheProgramsOwn) {
    Case made = dear_case(3.5);
    made.report.shared = {shared({own("put")}, true, 0.5, "word")};
    made.report.shared.front().adds = 0;
    made.report.shared.front().swaps = 0.6;
    Case loop = made; // a list without locks: compared, and never stored to
    made.report.shared.front().stores = 0.1;
    ASSERT_EQ(rules_of(made.concluded()), "true-sharing");
    EXPECT_EQ(made.report.findings.front().cause, "Hot spin lock: word in put()");
    ASSERT_EQ(rules_of(loop.concluded()), "true-sharing");
    EXPECT_EQ(loop.report.findings.front().cause,
              "Threads try again and again to exchange one variable: word in put()");
}

// Made of std::atomic::wait(): whose waiters sleep in the function that exchanges its word. Those of a flag sleep elsewhere, and
// those of a queue without locks in its own function.
TEST(StatRules, ALockOfAtomicsThatIsSleptAt) {
    const auto finding_where = [](const char *exchanges_in, const char *sleeps_in, std::uint64_t samples) {
        Case made = dear_case(3.5);
        made.report.shared = {shared({own(exchanges_in)}, true, 0.5, "word")};
        made.report.shared.front().swaps = 1;
        Site site;
        site.stack = {library("syscall"), library("std::__detail::__platform_wait", "prog"), own(sleeps_in)};
        site.doing = Doing::kIdleWait;
        site.samples = samples;
        made.report.others.push_back(site);
        EXPECT_EQ(rules_of(made.concluded()), "true-sharing");
        return made.report.findings.front();
    };
    const Finding lock = finding_where("Gate::lock", "Gate::lock", 60);
    EXPECT_EQ(lock.cause, "Hot lock of the program's own: word in Gate::lock()");
    EXPECT_EQ(lock.evidence.back(), "threads sleep in Gate::lock(): 60 samples");
    EXPECT_EQ(finding_where("Gate::lock", "await_flag", 60).cause.find("Hot lock of"), std::string::npos);
    EXPECT_EQ(finding_where("Gate::lock", "Gate::lock", 4).cause.find("Hot lock of"), std::string::npos);
    EXPECT_EQ(finding_where("Queue::pop", "Queue::pop", 60).cause,
              "Threads try again and again to exchange one variable: word in Queue::pop()");
}

// As a loop of the program's own that takes CPU time which it did not take with one thread: contention, no waiting for work.
TEST(StatRules, SpinningAtALockIsContention) {
    Case made = dear_case(3.5);
    made.report.burns.clear();
    made.report.burns_one.clear();
    made.burns({own("take_lock")}, 0.7, 0.05).burns({own("worker", 30)}, 0.3, 0.95);
    Case flag = made;
    made.report.shared = {shared({own("take_lock")}, true, 0.6, "word")};
    made.report.shared.front().swaps = 0.5;
    EXPECT_EQ(rules_of(made.concluded()), "true-sharing");
    EXPECT_EQ(rules_of(flag.concluded()), "busy-wait");
}

// The word of a lock is the lock's matter, however its calls are wrapped.
TEST(StatRules, TheWordOfAReadWriteLockIsNoVariable) {
    Case made = dear_case(3.5);
    made.burns({library("pthread_rwlock_rdlock"), own("look")}, 0.4, 0.1);
    made.report.shared = {
        shared({library("pthread_rwlock_unlock"), library("__glibcxx_rwlock_unlock", "prog"),
                library("std::__shared_mutex_pthread::unlock_shared", "prog"), own("look")},
               true, 0.4, "guard")};
    made.report.shared.front().swaps = 0.7;
    EXPECT_EQ(rules_of(made.concluded()), "hot-mutex");
}

TEST(StatRules, VariablesInOneLineAreTold) {
    Case made = dear_case(3.5);
    Sharing line = shared({own("count")}, false, 0.6, "hits");
    line.parts.push_back(line.parts.front());
    line.parts.back().symbol = "misses";
    made.report.shared = {line};
    ASSERT_EQ(rules_of(made.concluded()), "false-sharing");
    EXPECT_EQ(made.report.findings.front().cause,
              "Threads write to different variables in one cache line: hits, misses in count()");
    // What was accessed is known, and nothing was shared: memory is dear for another reason.
    Case other = dear_case(3.5);
    EXPECT_EQ(rules_of(other.concluded()).find("false-sharing"), std::string::npos);
    other.report.accesses_known = 0; // not known: a hint
    EXPECT_NE(rules_of(other.concluded()).find("false-sharing"), std::string::npos);
}

TEST(StatRules, AMutexsWordIsTheMutexsMatter) {
    Case made = dear_case(3.5);
    made.report.shared = {shared({library("pthread_mutex_lock"), own("put")}, true, 0.6)};
    EXPECT_EQ(rules_of(made.concluded()).find("true-sharing"), std::string::npos);
}

#if defined(__x86_64__)
std::optional<Operand> operand(const std::vector<std::uint8_t> &code, std::uint64_t pc) {
    std::vector<std::uint64_t> registers(thrum::native::kPerfCount);
    registers[PERF_REG_X86_DI] = 0x5000;
    registers[PERF_REG_X86_AX] = 2;
    return find_operand(code, 0x1000, pc, registers);
}

TEST(StatRules, OperandsAreDecoded) {
    if (!thrum::stat::knows_operands())
        GTEST_SKIP() << "built without Capstone";
    // lock addq $1, 8(%rdi); nop; xchg %eax, (%rdi); mov %rdx, (%rdi,%rax,8); mov 16(%rdi), %rcx
    const std::vector<std::uint8_t> code = {0xf0, 0x48, 0x83, 0x47, 0x08, 0x01, 0x90, 0x87, 0x07, 0x48,
                                            0x89, 0x14, 0xc7, 0x48, 0x8b, 0x4f, 0x10, 0x90, 0x90};
    const auto added = operand(code, 0x1006); // interrupted behind it
    ASSERT_TRUE(added);
    EXPECT_EQ(added->address, 0x5008U);
    EXPECT_EQ(added->kind, Operand::kAdd);
    EXPECT_TRUE(added->is_write);
    EXPECT_EQ(added->instruction, 0x1000U);
    const auto swapped = operand(code, 0x1009);
    ASSERT_TRUE(swapped);
    EXPECT_EQ(swapped->address, 0x5000U);
    EXPECT_EQ(swapped->kind, Operand::kSwap);
    const auto read = operand(code, 0x100d); // a load waits for itself
    ASSERT_TRUE(read);
    EXPECT_EQ(read->address, 0x5010U);
    EXPECT_FALSE(read->is_write);
    EXPECT_FALSE(operand(code, 0x1003)); // in the middle of an instruction
}
#endif

// Memory of the heap has no symbol: the call that allocated it stands for that.
TEST(StatRules, WhatIsSharedOnTheHeapIsNamedByItsAllocation) {
    Case made = dear_case(3.5);
    made.report.shared = {shared({own("count")}, true, 0.7)};
    made.report.shared.front().parts.front().kind = LockKind::kHeap;
    EXPECT_TRUE(thrum::stat::is_sharing_nameless(made.report));
    EXPECT_EQ(made.concluded().findings.front().cause, "All threads write one variable in count()");
    Report noted; // of another run, where it is elsewhere, and a line of less interest besides
    noted.shared = {shared({own("other")}, true, 0.3), shared({own("count")}, true, 0.6)};
    for (Sharing &one : noted.shared)
        one.parts.front().allocation = {library("malloc"), own(one.stack.front().function.c_str(), 7)};
    noted.shared.back().parts.front().allocation = {library("malloc"), own("make_table", 31)};
    thrum::stat::name_shared(made.report, noted);
    const Finding &found = made.concluded().findings.front();
    EXPECT_EQ(found.cause, "All threads write one variable, which make_table() allocated, in count()");
    EXPECT_EQ(std::count(found.evidence.begin(), found.evidence.end(),
                         "it was allocated in make_table() (prog.c:31)"),
              1);
    made.report.shared = {shared({own("count")}, true, 0.7, "requests")}; // one with a name keeps it
    EXPECT_FALSE(thrum::stat::is_sharing_nameless(made.report));
    made.report.shared = {shared({own("count")}, true, 0.05)}; // nor is what explains no loss worth a run
    made.report.shared.front().parts.front().kind = LockKind::kHeap;
    EXPECT_FALSE(thrum::stat::is_sharing_nameless(made.report));
}

TEST(StatRules, BothPlacesOfAnAccessAreTold) {
    Case made = dear_case(3.5);
    made.report.shared = {shared({own("put", 5)}, false, 0.7)};
    made.report.shared.front().places = {{own("put", 5)}, {own("take", 9)}};
    const Finding &found = made.concluded().findings.front();
    EXPECT_EQ(std::count(found.evidence.begin(), found.evidence.end(),
                         "accessed in put() (prog.c:5), take() (prog.c:9)"),
              1);
}

} // namespace
