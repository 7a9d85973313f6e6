// SPDX-License-Identifier: Apache-2.0
//
// All rules (cli/stat/rules/), fed with random reports: whatever was measured, no finding contradicts itself, and none is surer
// than its evidence allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <random>
#include <regex>
#include <set>

#include "stat/facts.hpp"
#include "stat_case.hpp"

namespace {

using thrum::stat::Facts;
using thrum::stat::LockUse;
using thrum::stat::Process;

class Chance {
  public:
    explicit Chance(unsigned seed) : random_(seed) {}
    double real(double from, double to) { return std::uniform_real_distribution<>(from, to)(random_); }
    unsigned whole(unsigned from, unsigned to) {
        return std::uniform_int_distribution<unsigned>(from, to)(random_);
    }
    bool is(double probability) { return real(0, 1) < probability; }
    // Of several orders of magnitude, or none at all.
    double any(double most) { return is(0.2) ? 0 : most * std::pow(10, -real(0, 4)); }
    template <typename List>
    auto of(const List &list) {
        return list[whole(0, static_cast<unsigned>(std::size(list)) - 1)];
    }

  private:
    std::mt19937 random_;
};

constexpr const char *kCalls[] = {"pthread_mutex_lock",
                                  "pthread_rwlock_rdlock",
                                  "random",
                                  "malloc",
                                  "pthread_cond_wait",
                                  "sem_wait",
                                  "pthread_cond_signal",
                                  "sched_yield",
                                  "usleep",
                                  "read",
                                  "accept",
                                  "pthread_barrier_wait",
                                  "write",
                                  "GOMP_barrier",
                                  "pthread_create"};
constexpr const char *kModules[] = {"libc.so.6", "libc.so.6", "libgomp.so.1", "libopenblasp-r0.3.21.so",
                                    "python3.11"};
constexpr const char *kOwn[] = {"work", "put", "take", "main", "serve"};

std::vector<Frame> random_stack(Chance &chance) {
    std::vector<Frame> stack;
    if (chance.is(0.7))
        stack.push_back(library(chance.of(kCalls), chance.of(kModules)));
    if (chance.is(0.9))
        stack.push_back(own(chance.of(kOwn), static_cast<int>(chance.whole(1, 90))));
    if (stack.empty())
        stack.push_back(library("", "libc.so.6"));
    return stack;
}

// Of what each of these has, so that the shares of all are 1.
std::vector<Site> random_sites(Chance &chance, const std::vector<Doing> &doings, std::size_t locks) {
    std::vector<Site> sites(chance.whole(0, 4));
    double all = 0;
    for (Site &site : sites) {
        site.stack = random_stack(chance);
        site.doing = chance.of(doings);
        site.samples = chance.whole(1, 300);
        site.seconds = static_cast<double>(site.samples) / 100;
        site.is_message = chance.is(0.3);
        site.lock =
            locks > 0 && chance.is(0.8) ? chance.whole(0, static_cast<unsigned>(locks) - 1) : SIZE_MAX;
        all += static_cast<double>(site.samples);
    }
    for (Site &site : sites)
        site.share = static_cast<double>(site.samples) / all;
    std::sort(sites.begin(), sites.end(), [](const Site &a, const Site &b) { return a.share > b.share; });
    return sites;
}

void add_threads(Chance &chance, Report &report) {
    constexpr Doing kDoings[] = {Doing::kRunning,  Doing::kRunnable, Doing::kLockWait,    Doing::kJoinWait,
                                 Doing::kIdleWait, Doing::kSleep,    Doing::kInputOutput, Doing::kKernel};
    report.threads.resize(chance.whole(0, 9));
    for (Thread &thread : report.threads) {
        thread.id = 100 + static_cast<int>(&thread - report.threads.data());
        thread.cpus = chance.is(0.3) ? "0" : chance.is(0.8) ? "0-1" : "";
        thread.end = report.sampled_wall;
        thread.cpu = chance.any(thread.end);
        thread.run_delay = chance.any(thread.end - thread.cpu);
        thread.voluntary = chance.whole(0, 5000);
        double at = 0;
        if (chance.is(0.3)) { // at work from its beginning to its end
            thread.cpu = chance.real(0.1, 1) * thread.end;
            thread.spans.push_back({0, thread.cpu, Doing::kRunning, SIZE_MAX, thread.cpu});
            at = thread.end;
        }
        while (at < thread.end) {
            const double end = std::min(thread.end, at + chance.real(0.01, 1) * thread.end);
            const Doing doing = chance.of(kDoings);
            thread.spans.push_back({at, end, doing, SIZE_MAX, doing == Doing::kRunning ? end - at : 0});
            at = end;
        }
        for (const Thread::Span &span : thread.spans)
            report.doing[static_cast<int>(span.doing)] += span.end - span.begin;
    }
}

void add_locks(Chance &chance, Report &report) {
    report.locks.resize(chance.whole(0, 2));
    for (LockUse &use : report.locks) {
        use.lock.kind = chance.is(0.3) ? LockKind::kLibrary : LockKind::kGlobal;
        use.lock.text = "static data";
        use.lock.symbol = "a_lock";
        use.waiters_mean = chance.real(0, 4);
        use.waiters_most = static_cast<unsigned>(use.waiters_mean) + 1;
        use.holder.looks = chance.whole(0, 100);
        use.holder.asleep = chance.real(0, 1);
        use.holder.without_cpu = chance.real(0, 1);
        use.holder.outranked = chance.real(0, 1);
        use.holder.scheduling.policy = thrum::stat::Scheduling::kIdle;
        use.holder.waiters.policy = thrum::stat::Scheduling::kOther;
        use.holder.doing = chance.is(0.5) ? Doing::kIdleWait : Doing::kInputOutput;
        use.holder.is_message = chance.is(0.5);
        use.holder.stack = random_stack(chance);
    }
}

void add_processes(Chance &chance, Report &report, bool has_children) {
    report.own_cpu = chance.any(2);
    if (!chance.is(0.3))
        return;
    report.children_cpu = chance.any(4);
    report.processes.resize(chance.whole(1, 6));
    for (std::size_t i = 0; i < report.processes.size(); i++) {
        report.processes[i] = {static_cast<int>(100 + i), i == 0 ? 0 : 100,  "prog", chance.any(1), 0,
                               report.sampled_wall,       chance.whole(1, 5)};
        if (i > 0 && has_children && chance.is(0.5)) {
            Report child;
            child.command = {"prog"};
            child.process = report.processes[i].id;
            child.own_cpu = report.processes[i].cpu;
            child.sampled_wall = report.sampled_wall;
            add_threads(chance, child);
            child.burns = random_sites(chance, {Doing::kRunning}, 0);
            report.children.push_back(child);
        }
    }
}

std::vector<Frame> call_of(Chance &chance) {
    static const char *const calls[] = {"write",  "munmap",     "fork",   "accept", "pthread_mutex_lock",
                                        "malloc", "epoll_wait", "madvise"};
    const auto which = static_cast<std::size_t>(chance.whole(0, std::size(calls) - 1));
    std::vector<Frame> stack = {own("serve")};
    if (chance.is(0.7))
        stack.insert(stack.begin(), library(calls[which]));
    return stack;
}

// CPU time in calls, as a program has it that the kernel holds up.
void add_calls(Chance &chance, Report &report) {
    Case made;
    for (double left = 1; left > 0.1; left *= 0.4) {
        made.burns(call_of(chance), 0.6 * left, chance.real(0, 0.6 * left));
        made.report.burns.back().kernel = chance.real(0, 1);
    }
    report.burns = made.report.burns;
    report.burns_one = made.report.burns_one;
}

// What threads access together, and where they sleep in the kernel.
void add_shared(Chance &chance, Report &report) {
    if (chance.is(0.4))
        add_calls(chance, report);
    double left = 1;
    for (auto i = chance.whole(0, 3); i > 0; i--) {
        thrum::stat::Sharing shared;
        shared.is_one = chance.is(0.5);
        shared.parts.resize(static_cast<std::size_t>(chance.whole(0, 2)));
        if (!shared.parts.empty() && chance.is(0.5))
            shared.parts.front().allocation = call_of(chance);
        shared.samples = static_cast<std::uint64_t>(chance.whole(5, 500));
        shared.share = chance.real(0, left);
        left -= shared.share;
        shared.threads = static_cast<unsigned>(chance.whole(2, 8));
        shared.adds = chance.real(0, 0.5);
        shared.swaps = chance.real(0, 0.5);
        shared.stack = call_of(chance);
        shared.places = {shared.stack};
        report.shared.push_back(shared);
    }
    report.accesses_known = chance.real(1 - left, 1);
    for (auto i = chance.whole(0, 3); i > 0; i--) {
        thrum::stat::KernelWait wait;
        static const char *const calls[] = {"write", "munmap", "epoll_wait", "", "accept"};
        wait.call = calls[static_cast<std::size_t>(chance.whole(0, std::size(calls) - 1))];
        wait.file = wait.call == "epoll_wait" ? "anon_inode:[eventpoll]" : chance.is(0.7) ? "/tmp/log" : "";
        wait.is_device = chance.is(0.3);
        wait.samples = static_cast<std::uint64_t>(chance.whole(1, 100));
        wait.threads = static_cast<unsigned>(chance.whole(1, 8));
        wait.at_once = wait.threads / 2.0;
        wait.stack = call_of(chance);
        report.kernel_waits.push_back(wait);
    }
    report.memory = chance.real(0, 2e9);
    report.page_tables = report.memory / 500;
}

Report random_report(Chance &chance) {
    Case made;
    const double scale = chance.is(0.1) ? 0.01 : 1;
    for (const unsigned threads :
         chance.is(0.6) ? std::vector<unsigned>{1, 2, 4} : std::vector<unsigned>{chance.is(0.5) ? 0U : 4U}) {
        const double wall = scale * chance.real(0.1, 2);
        const double cpu = wall * std::min(2.0, std::max(1U, threads) * chance.real(0.01, 1));
        const double system = chance.real(0, 1);
        made.point(threads, wall, cpu * (1 - system), cpu * system, chance.any(50000));
        made.report.points.back().involuntary = chance.any(50000);
        made.report.points.back().run_delay = chance.any(wall);
        if (chance.is(0.3))
            made.report.points.back().load.others = chance.real(0, 2);
    }
    Report &report = made.report;
    report.switch_cost = chance.any(1e-4);
    report.has_failed = chance.is(0.05);
    report.process = 100;
    report.quota = chance.is(0.7) ? 0 : chance.real(0.1, 2);
    report.throttled = report.quota > 0 ? chance.any(report.sampled_wall) : 0;
    add_locks(chance, report);
    add_threads(chance, report);
    report.waits = random_sites(chance, {Doing::kLockWait}, report.locks.size());
    report.others =
        random_sites(chance, {Doing::kJoinWait, Doing::kIdleWait, Doing::kSleep, Doing::kInputOutput}, 0);
    report.burns = random_sites(chance, {Doing::kRunning}, 0);
    report.burns_one = random_sites(chance, {Doing::kRunning}, 0);
    add_shared(chance, report);
    report.threads_created = chance.is(0.3) ? chance.whole(0, 20000) : chance.whole(0, 8);
    report.creations_counted = chance.is(0.5);
    report.samples = chance.whole(0, 5000);
    add_processes(chance, report, true);
    return report;
}

// --- what is said -------------------------------------------------------------------------------------

const std::set<std::string> kInnocent = {"scales", "inconclusive", "io-bound"};
const std::set<std::string> kOfLocks = {"hidden-lock", "allocator", "held-asleep", "priority",
                                        "one-lock",    "convoy",    "hot-mutex"};

// The numbers of the first match's groups.
std::vector<double> numbers_in(const std::string &text, const std::string &pattern) {
    std::smatch match;
    std::vector<double> numbers;
    if (std::regex_search(text, match, std::regex(pattern)))
        for (std::size_t i = 1; i < match.size(); i++)
            numbers.push_back(std::atof(match[i].str().c_str()));
    return numbers;
}

std::string text_of_finding(const Finding &found) {
    std::string text = found.rule + ": " + found.cause + "\n" + found.fix + "\n";
    for (const std::string &line : found.evidence)
        text += line + "\n";
    return text;
}

// No share beyond all of it, and no number that is none.
void expect_numbers(const std::string &text) {
    const std::regex share("(-?[0-9.]+) %");
    for (std::sregex_iterator at(text.begin(), text.end(), share), end; at != end; ++at) {
        const double percent = std::atof((*at)[1].str().c_str());
        EXPECT_GE(percent, 0);
        EXPECT_LE(percent, 100);
    }
    for (const char *none : {"nan", "inf ", "-0", "-1", "x-"})
        EXPECT_EQ(text.find(none), std::string::npos) << none;
}

// Each sentence by the numbers in it: "2.3 want to run, on 2 cores" is true, and "1.9 want to run, on 2 cores" is not.
void expect_supported(const Finding &found) {
    const auto expect_more = [&](const char *pattern) {
        if (const std::vector<double> of = numbers_in(found.cause, pattern); of.size() == 2) {
            EXPECT_GT(of[0], of[1]);
        }
    };
    expect_more("([0-9.]+) want to run, on ([0-9]+) core");
    if (const auto of =
            numbers_in(found.cause, "^([0-9]+) .* each with ([0-9]+) threads .* on ([0-9]+) core");
        of.size() == 3) {
        EXPECT_GT(of[0] * of[1], of[2]);
        EXPECT_GE(of[0], 2);
        EXPECT_GE(of[1], 2);
    }
    for (const std::string &line : found.evidence) {
        if (const auto of = numbers_in(line, "([0-9.]+) threads waited for it on average, ([0-9]+) at most");
            of.size() == 2) {
            EXPECT_LE(of[0], of[1]);
        }
        if (const auto of = numbers_in(line, "^([0-9.]+) CPUs used, of ([0-9]+) that they"); of.size() == 2) {
            EXPECT_LT(of[0], of[1]);
        }
        EXPECT_EQ(line.rfind("0 % of the time", 0), std::string::npos) << line;
        EXPECT_EQ(line.rfind("0 % of CPU time goes", 0), std::string::npos) << line;
    }
}

// Of one run only what was seen waiting while a CPU was free; of a sweep nothing that needs times, where these are not reliable.
void expect_earned(const Finding &found, const Report &report, const Facts &facts) {
    if (found.confidence != Confidence::kHigh || kInnocent.count(found.rule) != 0)
        return;
    const bool is_fact = found.rule == "deadlock" || found.rule == "children";
    const double usable = std::min(facts.threads, facts.cores);
    if (!facts.is_compared() && !is_fact) {
        EXPECT_LE(facts.parallelism, usable) << "no CPU was free";
        EXPECT_TRUE(kOfLocks.count(found.rule) != 0 || found.rule == "affinity");
        if (kOfLocks.count(found.rule) != 0) {
            EXPECT_LT(facts.parallelism, usable);
            EXPECT_FALSE(facts.is_busy);
        }
    }
    if (facts.is_busy) {
        EXPECT_TRUE(is_fact || found.rule == "affinity" || kOfLocks.count(found.rule) != 0 ||
                    found.rule == "busy-wait" || found.rule == "thread-churn");
    }
    EXPECT_FALSE(report.has_failed);
}

TEST(StatRules, OfRandomFactsNoneContradictsItself) {
    std::set<std::string> said;
    for (unsigned seed = 1; seed <= 6000; seed++) {
        Chance chance(seed);
        Report report = random_report(chance);
        conclude(report, report.has_failed ? "the program was ended by signal 11" : "");
        const Facts facts(report);
        std::set<std::string> causes;
        std::string whole = "seed " + std::to_string(seed) + "\n" + report.verdict + "\n";
        for (const Finding &found : report.findings)
            whole += text_of_finding(found);
        SCOPED_TRACE(whole);
        for (const Finding &found : report.findings) {
            said.insert(found.rule);
            EXPECT_FALSE(found.cause.empty());
            EXPECT_FALSE(found.fix.empty());
            EXPECT_TRUE(causes.insert(found.cause).second) << "said twice";
            EXPECT_GE(found.explains, 0);
            EXPECT_LE(found.explains, 1 + 1e-9);
            expect_numbers(text_of_finding(found));
            expect_supported(found);
            expect_earned(found, report, facts);
        }
        const bool is_accused =
            !report.findings.empty() && kInnocent.count(report.findings.front().rule) == 0;
        EXPECT_FALSE(is_accused && report.verdict.find("shows nothing") != std::string::npos);
        // What costs one thread as much is told of a program that scales, too.
        EXPECT_FALSE(report.outcome == Outcome::kScales && is_accused &&
                     report.findings.front().rule != "thread-churn" &&
                     report.findings.front().rule != "grain");
        if (report.has_failed) {
            EXPECT_EQ(report.findings.size(), 1U);
            EXPECT_FALSE(is_accused);
        }
        if (testing::Test::HasFailure())
            return;
    }
    // What random reports do not have is tried elsewhere.
    for (const std::string &rule : thrum::stat::rule_names())
        if (rule != "deadlock" && rule != "fixed-time" && rule != "coherency") {
            EXPECT_EQ(said.count(rule), 1U) << rule;
        }
}

} // namespace
