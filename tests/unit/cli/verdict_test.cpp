// SPDX-License-Identifier: Apache-2.0
//
// cli/comparison.hpp: what is concluded from runs, and how it is printed. The runs are made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "comparison.hpp"

namespace {

using thrum::Comparison;
using thrum::Pair;
using thrum::Summary;
using thrum::Verdict;

struct Threads {
    std::uint64_t created = 3, reused = 1997, passed = 0;
};

thrum::Run run(double wall, double cpu, std::uint64_t switches) {
    thrum::Run run;
    run.wall = wall;
    run.user = cpu / 4;
    run.system = cpu - cpu / 4;
    run.voluntary = switches / 2;
    run.involuntary = switches - switches / 2;
    return run;
}

// One pair a ratio; a run without takes `wall`.
std::vector<Pair> pairs(const std::vector<double> &ratios, const Threads &threads = {}, double wall = 1,
                        double cpu_ratio = 1) {
    std::vector<Pair> list;
    for (const double ratio : ratios) {
        Pair pair;
        pair.runs[thrum::kWithout] = run(wall, 0.5, 100);
        pair.runs[thrum::kWith] = run(wall / ratio, 0.5 / cpu_ratio, 100);
        thrum::Counters counters = {};
        counters.created = threads.created;
        counters.reused = threads.reused;
        counters.passed = counters.passed_by[0] = threads.passed; // "user stack"
        pair.runs[thrum::kWith].counters = counters;
        list.push_back(pair);
    }
    return list;
}

std::vector<double> around(double ratio, double spread) {
    std::vector<double> list;
    for (int i = 0; i < 10; i++)
        list.push_back(ratio * (1 + spread * (i - 4.5) / 4.5));
    return list;
}

thrum::Load load(double others) {
    thrum::Load load;
    load.seconds = 10;
    load.others = others;
    return load;
}

Verdict judged(const std::vector<Pair> &list, double others = 0) {
    return thrum::judge(thrum::summarize(list), load(others), 2);
}

std::string noted(const Verdict &verdict) {
    std::string text;
    for (const std::string &note : verdict.notes)
        text += note + "\n";
    return text;
}

TEST(Verdict, Faster) {
    const Verdict verdict = judged(pairs(around(2.3, 0.05)));
    EXPECT_EQ(verdict.kind, Verdict::kFaster);
    EXPECT_EQ(verdict.line, "2.3x faster");
    EXPECT_EQ(noted(verdict), "");
    EXPECT_EQ(judged(pairs(around(1.12, 0.02))).line, "1.12x faster");
    EXPECT_EQ(judged(pairs(around(31, 0.02))).line, "31x faster");
}

TEST(Verdict, NoDifferenceAndWhy) {
    const Verdict verdict = judged(pairs(around(1.001, 0.02), {4, 0, 0}));
    EXPECT_EQ(verdict.kind, Verdict::kSame);
    EXPECT_EQ(verdict.line, "no difference: it creates 4 threads, and none could be reused");
    EXPECT_EQ(judged(pairs(around(1, 0.02), {0, 0, 0})).line, "no difference: it creates no threads");
    EXPECT_EQ(judged(pairs(around(1, 0.02), {2, 2, 0})).line, "no difference: it creates 4 threads");
    EXPECT_EQ(judged(pairs(around(1, 0.02), {1, 0, 0})).line,
              "no difference: it creates 1 thread, and none could be reused");
    EXPECT_EQ(judged(pairs(around(1, 0.02), {0, 0, 50})).line,
              "no difference: it creates 50 threads, and none could be reused (user stack 50)");
    EXPECT_EQ(judged(pairs(around(1, 0.02), {}, 20)).line,
              "no difference: it creates 2000 threads in 20.0 s");
}

TEST(Verdict, ADifferenceTooSmallToMatterIsNone) {
    EXPECT_EQ(judged(pairs(around(1.015, 0.005))).kind, Verdict::kSame)
        << "although 1 is not in the interval";
    EXPECT_EQ(judged(pairs(around(0.985, 0.005))).kind, Verdict::kSame);
}

TEST(Verdict, SlowerAndWhy) {
    const Verdict few = judged(pairs(around(0.8, 0.02), {0, 0, 0}, 0.001));
    EXPECT_EQ(few.kind, Verdict::kSlower);
    EXPECT_EQ(few.line, "slower: 1.25x (it creates no threads; loading the cache costs 250 us a run)");
    EXPECT_EQ(judged(pairs(around(0.8, 0.02), {0, 0, 50})).line,
              "slower: 1.25x (it creates 50 threads, and none could be reused (user stack 50))");
    EXPECT_EQ(judged(pairs(around(0.8, 0.02))).line, "slower: 1.25x") << "nothing is known of it";
    std::vector<Pair> list = pairs(around(0.8, 0.02));
    for (Pair &pair : list)
        pair.runs[thrum::kWith].voluntary = 850;
    EXPECT_EQ(judged(list).line, "slower: 1.25x (900 context switches instead of 100)");
}

TEST(Verdict, InconclusiveAndWhy) {
    const Verdict noisy = judged(pairs(around(1.05, 0.3)), 0.1);
    EXPECT_EQ(noisy.kind, Verdict::kInconclusive);
    EXPECT_EQ(noisy.line, "inconclusive: between 0.80x and 1.30x as fast; more runs (-n 40) may tell");
    const Verdict busy = judged(pairs(around(1.05, 0.3)), 0.9);
    EXPECT_EQ(busy.line,
              "inconclusive: the machine was busy (others used 0.9 of 2 CPUs); between 0.80x and 1.30x as "
              "fast");
    EXPECT_EQ(noted(busy), "");
    EXPECT_EQ(noted(judged(pairs(around(1.05, 0.3), {1, 3, 0}))),
              "it creates 4 threads, so little difference is to be expected\n");
}

TEST(Verdict, FewPairsTellNothing) {
    EXPECT_EQ(judged({}).kind, Verdict::kNone);
    const Verdict three = judged(pairs({2.3, 2.4, 2.5}));
    EXPECT_EQ(three.kind, Verdict::kInconclusive);
    EXPECT_EQ(three.line,
              "inconclusive: 3 pairs of runs, and it takes 5 to tell (so far between 2.3x and 2.5x as fast)");
    EXPECT_EQ(judged(pairs({0.93})).line,
              "inconclusive: 1 pair of runs, and it takes 5 to tell (so far 0.93x as fast)");
    EXPECT_EQ(judged(pairs({2, 2, 2, 2, 2})).kind, Verdict::kFaster);
}

TEST(Verdict, ABusyMachineIsMentioned) {
    EXPECT_EQ(noted(judged(pairs(around(2, 0.05)), 1.5)),
              "the machine was busy: others used 1.5 of 2 CPUs\n");
}

// What others use is not taken from a program that sleeps, or that has a CPU to itself.
TEST(Verdict, OnlyWhereTheRunsWereHindered) {
    std::vector<Pair> asleep = pairs(around(1.05, 0.3)), alone = asleep;
    for (std::size_t i = 0; i < asleep.size(); i++)
        for (const auto arm : {thrum::kWithout, thrum::kWith}) {
            asleep[i].runs[arm].user = asleep[i].runs[arm].system = 0.001;
            alone[i].runs[arm].involuntary = 2;
        }
    for (const std::vector<Pair> &list : {asleep, alone}) {
        const Verdict verdict = judged(list, 1.5);
        EXPECT_EQ(verdict.kind, Verdict::kInconclusive);
        EXPECT_EQ(verdict.line, "inconclusive: between 0.80x and 1.30x as fast; more runs (-n 40) may tell");
        EXPECT_EQ(noted(verdict), "");
    }
}

TEST(Verdict, CpuTimeIsMentionedWhereItDiffers) {
    EXPECT_EQ(noted(judged(pairs(around(1, 0.01), {}, 1, 2))), "CPU time: 2.0x less (2.0x to 2.0x)\n");
    EXPECT_EQ(noted(judged(pairs(around(1, 0.01), {}, 1, 0.8))),
              "CPU time: 1.25x as much (1.25x to 1.25x)\n");
    EXPECT_EQ(noted(judged(pairs(around(1, 0.01), {}, 1, 1.01))), "");
}

TEST(Verdict, ThreadsThatWereNotCountedAreNotKnown) {
    std::vector<Pair> list = pairs(around(1, 0.01));
    for (Pair &pair : list)
        pair.runs[thrum::kWith].counters.reset();
    EXPECT_FALSE(thrum::summarize(list).threads);
    EXPECT_EQ(judged(list).line, "no difference");
}

// --- printing ------------------------------------------------------------------------------------------------

Comparison comparison(const std::vector<Pair> &list) {
    Comparison made;
    made.words = {"prog", "</title><b>&\"", "\n", "\xff"};
    made.pairs = list;
    made.wanted = list.size() + 1;
    made.load = load(0.3);
    made.machine.processors = 2;
    return made;
}

TEST(Verdict, TheTableFitsIntoEightyColumns) {
    for (const double ratio : {0.001, 0.5, 1.0, 700.0})
        for (const double wall : {0.000001, 0.9999, 12345.0}) {
            const std::vector<Pair> list = pairs(around(ratio, 0.3), {}, wall);
            const Summary summary = thrum::summarize(list);
            std::istringstream table(thrum::as_table(comparison(list), summary, judged(list, 1.5)));
            for (std::string line; std::getline(table, line);)
                EXPECT_LE(line.size(), 80u) << line;
        }
}

TEST(Verdict, TheTable) {
    const std::vector<Pair> list = pairs({2, 2, 2, 2, 2, 2});
    Comparison made = comparison(list);
    made.words = {"prog", "a b"};
    EXPECT_EQ(thrum::as_table(made, thrum::summarize(list), judged(list)),
              "prog 'a b'\n"
              "6 of 7 pairs of runs, without and with the cache in turn; median (middle half)\n"
              "\n"
              "                  without                 with the cache          ratio\n"
              "wall time         1.00 s (1.00-1.00)      0.500 s (0.500-0.500)   2.0x\n"
              "CPU time          500 ms (500-500)        500 ms (500-500)        1.00x\n"
              "  in the kernel   75 % (75-75)            75 % (75-75)\n"
              "threads created   2000                    3\n"
              "threads reused    0                       1997\n"
              "context switches  100 (100-100)           100 (100-100)           1.00x\n"
              "\n"
              "wall time without / with, pair by pair:\n"
              "  2.00  2.00  2.00  2.00  2.00  2.00\n"
              "median 2.00, 97 % interval 2.00 to 2.00\n"
              "\n"
              "2.0x faster\n");
}

std::vector<Pair> with_footprint(double memory, double tasks) {
    std::vector<Pair> list = pairs(around(1, 0.01));
    for (std::size_t i = 0; i < list.size(); i++)
        for (const thrum::Arm arm : {thrum::kWithout, thrum::kWith}) {
            thrum::Run &run = list[i].runs[arm];
            const double noise = 1 + 0.001 * static_cast<double>(i);
            run.peak_memory = 8e6 * noise;
            run.peak_tasks = 10;
            run.mean_memory = 4e6 * noise * (arm == thrum::kWith ? memory : 1);
            run.mean_tasks = 5 * (arm == thrum::kWith ? tasks : 1);
        }
    return list;
}

// Runs that are over before they are looked at have none: those pairs say nothing, and no median is made of zeros.
TEST(Verdict, MemoryOfRunsThatWereTooShort) {
    std::vector<Pair> list = with_footprint(1, 1);
    for (std::size_t i = 0; i < 3; i++)
        list[i].runs[thrum::kWithout].peak_memory = 0;
    const Summary some = thrum::summarize(list);
    EXPECT_GT(some.peak_memory.arms[thrum::kWithout].low, 7.9e6);
    EXPECT_EQ(some.peak_memory.ratio.count, list.size() - 3);
    for (std::size_t i = 4; i < list.size(); i++)
        list[i].runs[thrum::kWith].mean_memory = 0; // known of four pairs
    std::vector<Pair> few(list.begin(), list.begin() + 7);
    EXPECT_EQ(judged(few).memory.find(
                  "memory: inconclusive: known of 4 pairs of runs, and it takes 5 to tell (so far "),
              0U)
        << judged(few).memory;
    for (std::size_t i = 3; i < 8; i++)
        list[i].runs[thrum::kWithout].peak_memory = 0;
    const std::string table = thrum::as_table(comparison(list), thrum::summarize(list), judged(list));
    EXPECT_EQ(table.find("memory, peak"), std::string::npos) << table;
}

TEST(Verdict, TwoCommands) {
    const auto of_two = [](std::vector<Pair> list) {
        Summary summary = thrum::summarize(list);
        summary.is_of_two = true;
        return thrum::judge(summary, load(0), 2);
    };
    EXPECT_EQ(of_two(pairs(around(2, 0.01))).line, "B is 2.0x faster");
    EXPECT_EQ(of_two(pairs(around(0.5, 0.01))).line.find("B is slower: 2.0x"), 0U);
    EXPECT_EQ(of_two(pairs({2, 2}))
                  .line.find("inconclusive: 2 pairs of runs, and it takes 5 to tell (so far B is 2.0x"),
              0U)
        << of_two(pairs({2, 2})).line;
    EXPECT_EQ(of_two(with_footprint(1.5, 4)).tasks, "tasks: B has 4.0x as many in the mean (4.0x to 4.0x)");
}

TEST(Verdict, MemoryAndTasksHaveALineEach) {
    Verdict verdict = judged(with_footprint(1, 1));
    EXPECT_EQ(verdict.memory, "memory: no difference");
    EXPECT_EQ(verdict.tasks, "tasks: no difference");
    verdict = judged(with_footprint(1.5, 4));
    EXPECT_EQ(verdict.memory, "memory: 1.50x as much in the mean (1.50x to 1.50x)");
    EXPECT_EQ(verdict.tasks, "tasks: 4.0x as many in the mean (4.0x to 4.0x)");
    verdict = judged(with_footprint(0.5, 1));
    EXPECT_EQ(verdict.memory, "memory: 2.0x less in the mean (2.0x to 2.0x)");
    EXPECT_EQ(judged(with_footprint(1, 0.5)).tasks, "tasks: 2.0x fewer in the mean (2.0x to 2.0x)");
    EXPECT_EQ(judged(pairs(around(1, 0.01))).memory, "") << "no run was looked at";

    std::vector<Pair> list = with_footprint(1, 1);
    list.resize(2);
    EXPECT_EQ(judged(list).tasks,
              "tasks: inconclusive: known of 2 pairs of runs, and it takes 5 to tell (so far 1.00x as many)")
        << "two ends that are shown alike are one";
    list = with_footprint(1, 1);
    for (Pair &pair : list)
        pair.runs[thrum::kWith].peak_memory *= 3;
    EXPECT_EQ(judged(list).memory, "memory: 3.0x as much at the peak (3.0x to 3.0x)");
    const std::string table = thrum::as_table(comparison(list), thrum::summarize(list), judged(list));
    EXPECT_NE(table.find("memory, peak      8.04 MB (8.02-8.05)     24.1 MB (24.1-24.2)     0.33x\n"),
              std::string::npos)
        << table;
    EXPECT_NE(table.find("tasks, peak       10.0 (10.0-10.0)"), std::string::npos) << table;
}

TEST(Verdict, ThePageQuotesTheCommand) {
    const std::vector<Pair> list = pairs(around(2, 0.3));
    const std::string page = thrum::as_html(comparison(list), thrum::summarize(list), judged(list));
    EXPECT_EQ(page.find("<b>"), std::string::npos);
    EXPECT_EQ(page.find('\xff'), std::string::npos);
    EXPECT_EQ(page.find("nan"), std::string::npos);
    EXPECT_EQ(page.find("inf"), std::string::npos);
}

TEST(Verdict, OddNumbersDoNotBreakThePlots) {
    for (const double wall : {0.0, 1e-9, 1e6}) {
        const std::vector<Pair> list = pairs({1}, {}, wall);
        const std::string page = thrum::as_html(comparison(list), thrum::summarize(list), judged(list));
        EXPECT_EQ(page.find("nan"), std::string::npos) << wall;
        EXPECT_EQ(page.find("inf"), std::string::npos) << wall;
        EXPECT_LT(page.size(), 20000u) << wall;
    }
}

std::string page_of(const std::vector<Pair> &list) {
    return thrum::as_html(comparison(list), thrum::summarize(list), judged(list));
}

// Of the circles of a class: how far they are apart, from the topmost to the lowest.
double spread_of(const std::string &page, const std::string &style) {
    double low = 1e9, high = -1e9;
    const std::string end = "\" r=\"4.5\" class=\"" + style + "\"";
    for (std::size_t at = page.find(end); at != std::string::npos; at = page.find(end, at + 1)) {
        const double y = std::stod(page.substr(page.rfind("cy=\"", at) + 4));
        low = std::min(low, y);
        high = std::max(high, y);
    }
    return high - low;
}

// It is drawn at the end of the axis, with a note.
TEST(Verdict, APointFarFromAllOthersDoesNotFlattenThem) {
    std::vector<Pair> list = pairs(around(1, 0.3));
    const double usual = spread_of(page_of(list), "with");
    EXPECT_EQ(page_of(list).find("beyond the axis"), std::string::npos);
    list[4].runs[thrum::kWith].wall = 100;
    list[6].runs[thrum::kWithout].wall = 300;
    const std::string page = page_of(list);
    EXPECT_NE(page.find("2 points beyond the axis, up to 300 s"), std::string::npos);
    EXPECT_GT(spread_of(page, "with"), 0.7 * usual);
}

// The interval of six pairs' median is from the least to the greatest.
TEST(Verdict, AnIntervalThatReachesSuchAPointFlattensNothing) {
    std::vector<Pair> list = pairs({1.1, 1.2, 1.3, 1.4, 1.5, 1.6});
    const double usual = spread_of(page_of(list), "ratio");
    list[0].runs[thrum::kWithout].wall *= 77;
    const std::string page = page_of(list);
    EXPECT_NE(page.find("1 point beyond the axis, up to 84.7x"), std::string::npos);
    EXPECT_GT(spread_of(page, "ratio"), 0.5 * usual) << "without that point, which has another style";
}

TEST(Verdict, OnePairHasNoInterval) {
    EXPECT_EQ(page_of(pairs({1.1})).find("% interval"), std::string::npos);
    EXPECT_NE(page_of(pairs(around(1.1, 0.1))).find("% interval"), std::string::npos);
}

} // namespace
