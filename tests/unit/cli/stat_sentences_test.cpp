// SPDX-License-Identifier: Apache-2.0
//
// Each sentence of the text report is held against the numbers that it stands beside: reports are made up in many ways, and
// no line of one may deny another.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>

#include "stat/facts.hpp"
#include "stat/rules.hpp"
#include "stat/scaling.hpp"
#include "stat_fixture.hpp"

namespace {

using thrum::stat::Doing;
using thrum::stat::Point;
using thrum::stat::Process;
using thrum::stat::Report;

// Lines that were wrapped are one again.
std::string unwrapped(const std::string &text) {
    return std::regex_replace(text, std::regex("\n +"), " ");
}

double seconds_of(const std::string &number, const std::string &unit) {
    return std::stod(number) * (unit == "s" ? 1 : unit == "ms" ? 1e-3 : 1e-6);
}

// What a number may be off by that is shown with so many digits.
double rounding_of(const std::string &number, const std::string &unit) {
    const std::size_t point = number.find('.');
    const double last =
        point == std::string::npos ? 1 : std::pow(10, -static_cast<double>(number.size() - point - 1));
    return seconds_of("0.5", unit) * last;
}

// Calls `check` with each match.
template <typename Check>
void each(const std::string &text, const char *pattern, const Check &check) {
    const std::regex regex(pattern);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), regex); at != std::sregex_iterator(); ++at)
        check(*at);
}

void expect_products(const std::string &text) {
    each(text, R"((\d+) voluntary switch(?:es)? x ([\d.]+) (\w+) \(measured\) = ([\d.]+) (\w+))",
         [&](const std::smatch &m) {
             const double product = std::stod(m[1]) * seconds_of(m[2], m[3]);
             EXPECT_NEAR(product, seconds_of(m[4], m[5]), 1.01 * rounding_of(m[4], m[5])) << m.str();
         });
}

// No more than there is, and by one thread no more than one.
void expect_cpus(const std::string &text) {
    each(text, R"(used ([\d.]+) of (\d+) CPUs?)",
         [](const std::smatch &m) { EXPECT_LE(std::stod(m[1]), std::stod(m[2]) * 1.1) << m.str(); });
    each(text, R"(with a single thread: it used ([\d.]+))",
         [](const std::smatch &m) { EXPECT_LE(std::stod(m[1]), 1.02) << m.str(); });
    each(text, R"(got ([\d.]+) of the ([\d.]+) that)",
         [](const std::smatch &m) { EXPECT_LT(std::stod(m[1]), std::stod(m[2])) << m.str(); });
}

void expect_threads(const Report &report, const std::string &text) {
    if (text.find("with a single thread") != std::string::npos) {
        EXPECT_EQ(report.threads_created, 0U) << text;
        EXPECT_LE(report.processes.size(), 1U) << text;
    }
    each(text, R"((\d+) threads? at once at most, (\d+) new)",
         [](const std::smatch &m) { EXPECT_TRUE(std::stoul(m[2]) == 0 || std::stoul(m[1]) > 1) << m.str(); });
    each(text, R"((\d+) (?:created|seen to begin), (\d+) joined \(ok\))",
         [](const std::smatch &m) { EXPECT_GE(std::stoul(m[2]), std::stoul(m[1])) << m.str(); });
}

// The verdict's ratio lies within its interval, and is the one in the table.
void expect_ratios(const Report &report, const std::string &text) {
    each(text, R"(([\d.]+)x (?:the time of|as fast as) \d+ \(([\d.]+)x to ([\d.]+)x\))",
         [](const std::smatch &m) {
             EXPECT_LE(std::stod(m[2]), std::stod(m[1])) << m.str();
             EXPECT_GE(std::stod(m[3]), std::stod(m[1])) << m.str();
         });
    const auto table = std::regex(R"(\n +(\d+) +[\d.]+ \w+ +([\d.]+)x +([\d.]+)-([\d.]+) )");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), table); at != std::sregex_iterator();
         ++at) {
        EXPECT_LE(std::stod((*at)[3]), std::stod((*at)[2]) + 0.005) << at->str();
        EXPECT_GE(std::stod((*at)[4]), std::stod((*at)[2]) - 0.005) << at->str();
    }
    const bool is_slower = report.verdict.find("SLOWER: ") != std::string::npos && !report.points.empty() &&
                           report.verdict.find("CPU time") == std::string::npos;
    EXPECT_TRUE(!is_slower || thrum::stat::Facts(report).speedup < 1) << report.verdict;
}

// Of the processes there are in the table, as many as their CPU time says.
void expect_shares(const std::string &text) {
    double sum = 0;
    bool is_there = false;
    each(text, R"(\n +(?:\d+|others) +[\d.]+ \w+ +(\d+)%)", [&](const std::smatch &m) {
        sum += std::stod(m[1]);
        is_there = true;
    });
    EXPECT_NEAR(sum, is_there ? 100 : 0, 6) << text;
}

// What it costs is the difference of the table's rows, and the sampled times are the report's.
void expect_costs(const Report &report, const std::string &text) {
    const auto near = [](const std::smatch &m, int at, double seconds) {
        EXPECT_NEAR(seconds_of(m[at], m[at + 1]), seconds, 1.01 * rounding_of(m[at], m[at + 1])) << m.str();
    };
    const Point &few = report.points.front(), &most = report.points.back();
    each(text, R"(([\d.]+) (\w+) CPU (above|less than) (\d+) thread)", [&](const std::smatch &m) {
        EXPECT_EQ(m[3] == "above", most.cpu() >= few.cpu()) << m.str();
        near(m, 1, std::abs(most.cpu() - few.cpu()));
    });
    each(text, R"((\d+) % of CPU is in the kernel)", [&](const std::smatch &m) {
        EXPECT_NEAR(std::stod(m[1]), 100 * most.system / most.cpu(), 0.51) << m.str();
    });
    const auto of = [&report](Doing what) { return report.doing[static_cast<int>(what)]; };
    each(
        text,
        R"(threads: ([\d.]+) (\w+) running, ([\d.]+) (\w+) runnable, ([\d.]+) (\w+) lock waits, ([\d.]+) (\w+) I/O)",
        [&](const std::smatch &m) {
            near(m, 1, of(Doing::kRunning));
            near(m, 3, of(Doing::kRunnable));
            near(m, 5, of(Doing::kLockWait));
            near(m, 7, of(Doing::kInputOutput));
        });
    each(text, R"(from others: (\w+) \(up to ([\d.]+) of (\d+) CPU)", [](const std::smatch &m) {
        EXPECT_LE(std::stod(m[2]), std::stod(m[3])) << m.str();
        const double over = std::stod(m[2]) - 0.3 * std::stod(m[3]);
        EXPECT_TRUE(std::abs(over) <= 0.05 || (m[1] == "high") == (over > 0)) << m.str();
    });
}

// The line below the table says no more than the verdict does.
void expect_scaling_as_judged(const Report &report, const std::string &text) {
    const thrum::stat::Facts facts(report);
    if (text.find("Retrograde: best at 1 thread") != std::string::npos) {
        EXPECT_LT(facts.gain.high, 1) << text;
    }
    if (text.find("No number of threads is faster than 1") != std::string::npos) {
        EXPECT_LE(facts.speedup, 1) << text;
    }
}

void expect_no_contradiction(const Report &report) {
    const std::string text = text_of(report), line = unwrapped(text);
    expect_products(line);
    expect_cpus(line);
    expect_threads(report, line);
    expect_ratios(report, text);
    expect_shares(text);
    expect_costs(report, line);
    expect_scaling_as_judged(report, text);
}

// --- reports ------------------------------------------------------------------------------------------------

class Reports {
  public:
    explicit Reports(unsigned seed) : random_(seed) {}

    Report one() {
        Report report;
        report.machine.processors = report.cores = 2;
        report.switch_cost = between(0.3e-6, 9e-6);
        report.rate = 100;
        report.sampled_wall = between(0.01, 3);
        const bool is_sweep = chance();
        for (const unsigned threads : is_sweep ? std::vector<unsigned>{1, 2, 4} : std::vector<unsigned>{0})
            report.points.push_back(point(threads));
        report.is_attached = !is_sweep && chance();
        report.threads_created = chance() ? static_cast<std::uint64_t>(between(0, 9)) : 0;
        report.sampled_threads =
            std::max(report.points.back().most_threads, report.threads_created > 0 ? 2U : 1U);
        report.threads_joined = static_cast<std::uint64_t>(between(0, 9));
        report.threads_counted = !report.is_attached && chance();
        report.creations_counted = report.threads_counted || chance();
        for (int doing = 0; doing < static_cast<int>(Doing::kDoings); doing++)
            report.doing[doing] = chance() ? between(0, 2) : 0;
        add_processes(report);
        thrum::stat::add_scaling(report);
        conclude(report, "");
        return report;
    }

  private:
    double between(double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(random_);
    }
    bool chance() { return between(0, 1) < 0.5; }

    Point point(unsigned threads) {
        Point made;
        made.threads = threads;
        made.runs = 3;
        const double wall = std::pow(10, between(-3, 0.5));
        made.wall = {wall, wall * between(0.8, 1), wall * between(1, 1.2), 0.75, 3};
        made.user = wall * between(0.01, 1.5);
        made.system = chance() ? wall * between(0, 0.49) : 0;
        made.voluntary = std::floor(between(0, 50)) / 2; // a median of two is between them
        made.involuntary = between(0, 200);
        made.run_delay = chance() ? wall * between(0, 1) : 0;
        made.most_threads = 1 + static_cast<unsigned>(between(0, 3));
        made.load.seconds = wall;
        if (chance())
            made.load.others = between(0, 2);
        return made;
    }

    void add_processes(Report &report) {
        report.own_cpu = between(0, 1);
        const int count = chance() ? static_cast<int>(between(1, 12)) : 1;
        for (int i = 0; i < count; i++) {
            Process process;
            process.id = 100 + i;
            process.parent = i > 0 ? 100 : 0;
            process.name = "prog";
            process.threads = 1;
            process.cpu = i > 0 ? between(0, 1) : report.own_cpu;
            report.children_cpu += i > 0 ? process.cpu : 0;
            report.processes.push_back(process);
        }
    }

    std::mt19937 random_;
};

TEST(StatSentences, NoneDeniesTheNumbersBesideIt) {
    for (unsigned seed = 0; seed < 300 && !testing::Test::HasFailure(); seed++) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_no_contradiction(Reports(seed).one());
    }
}

TEST(StatSentences, NorInReportsOfWholePrograms) {
    for (Report report : {report_of_random(), report_that_scales()}) {
        expect_no_contradiction(report);
        conclude(report, "");
        expect_no_contradiction(report);
    }
}

// What a reader multiplies is what is shown.
TEST(StatSentences, ProductsAreOfTheNumbersShown) {
    Report report = report_of_random();
    report.points.back().voluntary = 2.5;
    report.switch_cost = 2.14e-6;
    const std::string text = unwrapped(text_of(report));
    EXPECT_NE(text.find("3 voluntary switches x 2.1 us (measured) = 6.3 us"), std::string::npos) << text;
    report.points.back().voluntary = 1;
    const std::string one = unwrapped(text_of(report));
    EXPECT_NE(one.find("1 voluntary switch x 2.1 us (measured) = 2.1 us"), std::string::npos) << one;
}

TEST(StatSentences, OneThreadDoesNotUseTwoCpus) {
    for (const double cpu : {0.5, 1.0, 1.64}) {
        Report report;
        report.machine.processors = report.cores = 2;
        Point point;
        point.wall = {1, 1, 1, 0, 1};
        point.user = cpu;
        point.most_threads = 1;
        report.points = {point};
        conclude(report, "");
        EXPECT_EQ(report.verdict.find("with a single thread") != std::string::npos, cpu <= 1)
            << report.verdict;
        report.threads_created = 2;
        conclude(report, "");
        EXPECT_EQ(report.verdict.find("with a single thread"), std::string::npos) << report.verdict;
    }
}

// --- a busy machine -----------------------------------------------------------------------------------------

Point on_busy_machine(unsigned threads, double wall, double cpu, double delay, double others) {
    Point point;
    point.threads = threads;
    point.runs = 3;
    point.wall = {wall, wall, wall, 0.75, 3};
    point.user = cpu;
    point.run_delay = delay;
    point.most_threads = threads;
    point.load.seconds = wall;
    point.load.others = others;
    return point;
}

Report concluded(const std::vector<Point> &points) {
    Report report;
    report.machine.processors = report.cores = 2;
    report.points = points;
    report.sampled_wall = points.back().wall.median;
    conclude(report, "");
    return report;
}

// More ran beside one thread, which had a CPU to itself.
TEST(StatSentences, ThePointThatWasHinderedIsNamed) {
    const Report report = concluded({on_busy_machine(1, 1, 1, 0, 1.2), on_busy_machine(2, 1, 1, 0.9, 0.9)});
    EXPECT_EQ(report.outcome, thrum::stat::Outcome::kInconclusive);
    EXPECT_NE(
        report.verdict.find("others used 0.9 of 2 CPUs, and 2 threads got 1.00 of the 1.90 that they wanted"),
        std::string::npos)
        << report.verdict;
}

// Of a short run the use of the others' is not known. What the verdict goes by then stands beside it.
TEST(StatSentences, AShortRunOnABusyMachine) {
    Point point = on_busy_machine(0, 0.02, 0.002, 0.02, 0);
    point.most_threads = 1;
    point.load.others.reset();
    point.load.waited = 0.95;
    const Report report = concluded({point});
    EXPECT_EQ(report.verdict,
              "One run, with a single thread: it used 0.10 of 2 CPUs. (The machine was busy.)");
    const std::string text = unwrapped(text_of(report));
    EXPECT_NE(
        text.find("CPU pressure from others: not known; a thread, theirs or the program's, waited for a "
                  "CPU for 95% of the time"),
        std::string::npos)
        << text;
    point.load.waited.reset();
    EXPECT_NE(text_of(concluded({point})).find("CPU pressure from others: not known  "), std::string::npos);
}

// Whatever else the machine does: it hardly wants a CPU, and a tenth of its time is not waiting for one.
TEST(StatSentences, AProgramThatSleepsIsNotInTheWay) {
    const Report report =
        concluded({on_busy_machine(1, 1, 0.05, 0.06, 1.8), on_busy_machine(2, 1, 0.05, 0.07, 1.8)});
    EXPECT_EQ(report.verdict.find("busy"), std::string::npos) << report.verdict;
    for (const auto &finding : report.findings)
        EXPECT_EQ(finding.cause.find("busy"), std::string::npos) << finding.cause;
}

} // namespace
