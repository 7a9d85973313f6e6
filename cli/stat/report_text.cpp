// SPDX-License-Identifier: Apache-2.0
//
// A report for a terminal (report.hpp), as wide as report_columns() says: what is the matter first, then what shows it.
#include <algorithm>
#include <cmath>
#include <optional>

#include "comparison.hpp"
#include "stat/facts.hpp"
#include "stat/names.hpp"
#include "stat/openmp.hpp"
#include "tools/table.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kLabel = 9, kSites = 4, kBurners = 4;
constexpr double kBar = 10; // characters for a speedup of 1
constexpr std::size_t kLongestBar = 18, kBarsAt = 61;
constexpr double kSpun = 0.25; // of the CPU time lost: less than that by switches means spinning
constexpr double kLowShare = 0.1, kSomeShare = 0.3; // of the CPUs, used by others
constexpr double kManyRunnable = 4;                 // threads that want a CPU, to cores

// What may be a name of the program's choice is no more than text to a terminal, here and in what else shows one.
std::string labelled(const char *label, const std::string &text) {
    return wrapped(to_left(label, kLabel) + terminal_text(text), std::string(kLabel, ' '));
}

// Two short ones, side by side where there is room.
std::string labelled(const char *label, const std::string &first, const std::string &second) {
    const std::string line = to_left(to_left(label, kLabel) + first, 46) + second;
    return line.size() <= report_columns() ? line + "\n" : labelled(label, first) + labelled("", second);
}

std::string percent(double share) {
    return fixed(100 * share, 0) + "%";
}

// Two digits that count are enough beside others.
std::string rough(double seconds) {
    const Unit unit = unit_of_time(seconds);
    const double number = seconds / unit.seconds;
    return seconds > 0 ? fixed(number, number < 9.95 ? 1 : 0) + " " + unit.name : "0 s";
}

// The number that rough() shows, so that a product of two is what a reader makes of them.
double as_shown(double seconds) {
    const Unit unit = unit_of_time(seconds);
    const double number = seconds / unit.seconds;
    return std::round(number < 9.95 ? number * 10 : number) / (number < 9.95 ? 10 : 1) * unit.seconds;
}

// A row of a table: what a narrow terminal has no room for is left out.
std::string cut_row(const std::string &line) {
    const std::string row = cut(line, report_columns());
    return row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
}

// --- what is the matter -------------------------------------------------------------------------------

std::string cause_text(const Finding &finding) {
    const std::string line = to_left("CAUSE", kLabel) + terminal_text(finding.cause);
    const std::string confidence = std::string("confidence: ") + name_of(finding.confidence);
    if (line.size() + 2 + confidence.size() <= report_columns())
        return line + to_right(confidence, report_columns() - line.size()) + "\n";
    return labelled("CAUSE", finding.cause + " (" + confidence + ")");
}

std::string heading(const Report &report) {
    std::string text = labelled("VERDICT", report.verdict);
    for (const Finding &finding : report.findings) {
        text += cause_text(finding);
        if (finding.rule ==
            "deadlock") // there are no shares: the threads that wait for each other are all there is
            for (const std::string &line : finding.evidence)
                text += labelled("", line);
        text += labelled("FIX", finding.fix);
    }
    return text;
}

// --- the sweep ----------------------------------------------------------------------------------------

// None on a terminal that has no room for it.
std::string bar(double speedup, double most) {
    const std::size_t room = report_columns() > kBarsAt ? report_columns() - kBarsAt - 1 : 0;
    const double longest = static_cast<double>(std::min(kLongestBar, room));
    const double scale = std::min(kBar, longest / std::max(most, 1e-9));
    return std::string(static_cast<std::size_t>(std::max(0.0, std::round(speedup * scale))), '#');
}

std::string row(const Point &point, const std::string &threads, const std::string &speedup,
                const std::string &range, const std::string &graph) {
    return cut_row(to_right(threads, 8) + to_right(duration(point.wall.median), 9) + to_right(speedup, 10) +
                   to_right(range, 12) + to_right(duration(point.cpu()), 9) +
                   to_right(fixed(point.parallelism(), 2), 11) + "  " + graph);
}

std::string table(const Report &report) {
    if (report.points.empty())
        return "";
    const Point &first = report.points.front();
    const auto speedup = [&first](const Point &point) {
        return point.wall.median > 0 ? first.wall.median / point.wall.median : 0;
    };
    double most = 1;
    for (const Point &point : report.points)
        most = std::max(most, speedup(point));
    // "0.97-1.04"; of the first point, and where it is not known, nothing.
    const auto range = [](const Point &point) {
        const Interval &at = point.speedup;
        const int decimals = at.high < 9.95 ? 2 : 1;
        return at.count > 0 ? fixed(at.low, decimals) + "-" + fixed(at.high, decimals) : "";
    };
    std::string text = "\n" + cut_row(" threads     wall   speedup    interval      cpu   parallel");
    if (report.points.size() == 1) {
        const unsigned threads = first.threads > 0 ? first.threads : first.most_threads;
        return text + row(first, std::to_string(threads), "-", "", "");
    }
    for (const Point &point : report.points)
        text += row(point, std::to_string(point.threads), fixed(speedup(point), 2) + "x", range(point),
                    bar(speedup(point), most));
    return report.scaling_text.empty() ? text : text + wrapped(" " + report.scaling_text, " ");
}

// --- processes ----------------------------------------------------------------------------------------

// Where there are several: a row each, the program's own first.
std::string processes_text(const Report &report) {
    constexpr std::size_t kRows = 8;
    if (report.processes.size() < 2)
        return "";
    const double all = std::max(report.own_cpu + report.children_cpu, 1e-9);
    std::string text = "\n" + cut_row(" process      cpu  share  threads  command");
    double shown = 0;
    for (std::size_t i = 0; i < std::min(kRows, report.processes.size()); i++) {
        const Process &process = report.processes[i];
        const std::string own = i == 0 ? "  (the program)" : "";
        const std::string numbers =
            to_right(std::to_string(process.id), 8) + to_right(duration(process.cpu), 9) +
            to_right(percent(process.cpu / all), 7) + to_right(std::to_string(process.threads), 9) + "  ";
        const std::size_t taken = std::min(numbers.size() + own.size(), report_columns());
        text += cut_row(numbers + cut(terminal_text(process.name), report_columns() - taken) + own);
        shown += process.cpu;
    }
    const std::size_t more = report.processes.size() - std::min(kRows, report.processes.size());
    if (const double rest = report.own_cpu + report.children_cpu - shown; more > 0 || rest / all >= 0.01)
        text += to_right("others", 8) + to_right(duration(std::max(0.0, rest)), 9) +
                to_right(percent(std::max(0.0, rest) / all), 7) + "\n";
    return text;
}

// --- where --------------------------------------------------------------------------------------------

// Templates of the standard library's are part of the program, but not what its author has written.
bool is_written(const Frame &frame) {
    return frame.is_user && frame.function.compare(0, 5, "std::") != 0 &&
           frame.function.compare(0, 11, "__gnu_cxx::") != 0;
}

// "main::{closure#0}::{closure#2} (main.rs:5)" as "main::{closure} (main.rs:5)": of a function inside a function, how many
// there are around it.
std::string without_closures(const std::string &text) {
    const std::string closure = "::{";
    std::string kept;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (text.compare(end, closure.size(), closure) == 0 && text.find("closure", end) - end <= 4 &&
               text.find('}', end) != std::string::npos) {
            end = text.find('}', end) + 1;
            end += text.compare(end, 1, "}") == 0; // "{{closure}}", of the older mangling
        }
        kept += end > at ? "::{closure}" : text.substr(at, 1);
        at = std::max(end, at + 1);
    }
    return kept;
}

// The end of a name says most.
std::string cut_in_front(const std::string &text, std::size_t width) {
    const std::string dots = "...";
    return text.size() <= width ? text : dots + text.substr(text.size() - width + dots.size());
}

// As many frames as fit, from the outermost function of the libraries on: what is below it is how locks are made. Where in the
// program that is always is among them.
std::string chain(const std::vector<Frame> &stack, std::size_t width) {
    const std::size_t place_room = std::min<std::size_t>(30, width / 2); // for that place
    const auto written = std::find_if(stack.begin(), stack.end(), is_written);
    const auto own = written != stack.end() ? written
                                            : std::find_if(stack.begin(), stack.end(),
                                                           [](const Frame &frame) { return frame.is_user; });
    auto at = own == stack.begin() || own == stack.end() ? stack.begin() : own - 1;
    std::string text;
    for (; at != stack.end(); ++at) {
        const std::string next =
            (text.empty() ? "" : " <- ") + (at == own ? frame_place(*at) : frame_name(*at));
        if (!text.empty() && text.size() + next.size() > width) {
            if (at == own)
                text = cut(text, width - place_room) + " <- " +
                       cut_in_front(without_closures(frame_place(*own)),
                                    width - std::min(text.size(), width - place_room) - 4);
            break;
        }
        text += next;
    }
    return cut(terminal_text(text), width);
}

std::string lock_text(const Site &site, const Lock &lock) {
    const OpenmpConstruct *construct = openmp_construct(site.stack);
    return terminal_text((construct != nullptr ? openmp_name(*construct, &lock) + "; " : "") + lock.text);
}

// Sites that a reader could not tell apart, for they differ further out than there is room, are one.
struct WaitRow {
    std::string chain, lock;
    double share = 0, seconds = 0;
    std::optional<std::uint64_t> calls;
};

std::vector<WaitRow> wait_rows(const Report &report) {
    std::vector<WaitRow> rows;
    for (const Site &site : report.waits) {
        WaitRow row{chain(site.stack, report_columns() - 8), "", site.share, site.seconds, site.calls};
        if (site.lock < report.locks.size())
            row.lock = lock_text(site, report.locks[site.lock].lock);
        const auto same = std::find_if(rows.begin(), rows.end(), [&row](const WaitRow &known) {
            return known.chain == row.chain && known.lock == row.lock &&
                   known.calls.has_value() == row.calls.has_value();
        });
        if (same == rows.end()) {
            rows.push_back(std::move(row));
            continue;
        }
        same->share += row.share;
        same->seconds += row.seconds;
        if (row.calls)
            *same->calls += *row.calls;
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const WaitRow &a, const WaitRow &b) { return a.share > b.share; });
    return rows;
}

std::string waits_text(const Report &report) {
    if (report.waits.empty())
        return "";
    const std::string how = report.exact_estimated ? "counted, places of some"
                            : report.exact
                                ? "every wait counted"
                                : counted(static_cast<double>(samples_of(report.waits)), "sample") + " at " +
                                      fixed(report.rate, 0) + " Hz";
    std::string text =
        "\n" + wrapped("WHERE waiting happened (" + how + "; join and idle waits excluded)", "  ");
    const std::vector<WaitRow> rows = wait_rows(report);
    std::string lock;
    for (std::size_t i = 0; i < std::min(kSites, rows.size()); i++) {
        const WaitRow &row = rows[i];
        text += to_right(percent(row.share), 6) + "  " + row.chain + "\n";
        if (row.calls)
            text += "        " + counted(static_cast<double>(*row.calls), "wait") + ", " +
                    duration(row.seconds) + (report.exact_estimated ? " by estimate\n" : " in all\n");
        if (!row.lock.empty() && row.lock != lock)
            text += wrapped("        lock: " + row.lock, "        ");
        lock = row.lock;
    }
    return text;
}

// Of a program that hardly runs and waits for no lock that is known: what else its threads wait for.
std::string others_text(const Report &report, const Facts &facts) {
    constexpr double kIdle = 0.2; // CPUs
    if (!report.waits.empty() || report.others.empty() || facts.parallelism >= kIdle)
        return "";
    double all = 0;
    for (const Site &site : report.others)
        all += site.seconds;
    std::string title = "WHERE threads waited (for no known lock";
    if (const std::uint64_t samples = samples_of(report.others); samples > 0)
        title += "; " + counted(static_cast<double>(samples), "sample");
    std::string text = "\n" + wrapped(title + ")", "  ");
    for (std::size_t i = 0; i < std::min(kSites, report.others.size()); i++) {
        const Site &site = report.others[i];
        const std::string what = std::string(name_of(site.doing)) + ": ";
        text += to_right(percent(all > 0 ? site.seconds / all : 0), 6) + "  " + what +
                chain(site.stack, report_columns() - 8 - what.size()) + "\n";
    }
    return text;
}

// "random <- draw (prog.c:21)"; where there is no room, without what matters least.
std::string burner_name(const Burner &burner, std::size_t width) {
    const std::string leaf = !burner.leaf.empty()     ? burner.leaf
                             : !burner.module.empty() ? burner.module
                                                      : "(not known)";
    const bool is_called = !burner.called.empty() && burner.called != burner.leaf;
    const std::string called = is_called ? " <- " + burner.called : "";
    const std::string own = burner.place.function.empty() ? burner.place.code : burner.place.function;
    const std::string place = burner.is_own || own.empty() ? "" : " <- " + own;
    const std::string line = burner.place.file.empty()
                                 ? ""
                                 : " (" + burner.place.file + ":" + std::to_string(burner.place.line) + ")";
    for (const std::string &name :
         {leaf + called + place + line, leaf + place + line, leaf + called + place, leaf + place})
        if (name.size() <= width)
            return terminal_text(name);
    return cut(terminal_text(leaf), width);
}

std::string burns_text(const Report &report, const Facts &facts) {
    if (report.burns.empty())
        return "";
    const bool both = !report.burns_one.empty() && report.points.size() > 1;
    const std::size_t names = report_columns() - 25; // the column for them, beside two shares
    const std::string one = both ? std::to_string(samples_of(report.burns_one)) + " and " : "";
    std::string title = wrapped("CPU time went to (" + report.profile_source + ", " + one +
                                    counted(static_cast<double>(samples_of(report.burns)), "sample") + ")",
                                "  ");
    title.pop_back();
    if (both) {
        if (title.size() >= names)
            title += "\n" + std::string(names, ' ');
        title = to_left(title, names) + to_right(counted(facts.few->threads, "thread"), 10) +
                to_right(counted(facts.most->threads, "thread"), 12);
    }
    std::string text = "\n" + title + "\n";
    for (std::size_t i = 0; i < std::min(kBurners, facts.burners.size()); i++) {
        const Burner &burner = facts.burners[i];
        const std::string shares =
            both ? to_right(percent(burner.share_one), 10) + to_right(percent(burner.share), 12)
                 : to_right(percent(burner.share), 6);
        text += both ? to_left("  " + burner_name(burner, names - 3), names) + shares + "\n"
                     : shares + "  " + burner_name(burner, report_columns() - 8) + "\n";
    }
    return text;
}

// --- the processes that it started -----------------------------------------------------------------------

// What was seen of one: the same as of the program, without what takes several runs.
std::string child_text(const Report &child) {
    const Facts facts(child);
    std::string text =
        "\n" + labelled("PROCESS", std::to_string(child.process) + " (" + child.command.front() +
                                       "): " + duration(child.own_cpu) + " of CPU time in " +
                                       duration(child.sampled_wall) + ", " +
                                       counted(child.sampled_threads, "thread") + " at once at most");
    if (child.findings.empty() || child.findings.front().rule == "inconclusive")
        text += labelled("", child.verdict);
    else
        for (const Finding &finding : child.findings)
            text += cause_text(finding) + labelled("FIX", finding.fix);
    text += waits_text(child) + others_text(child, facts) + burns_text(child, facts);
    return text;
}

std::string children_text(const Report &report) {
    constexpr std::size_t kShown = 3;
    std::string text;
    std::size_t shown = 0, more = 0;
    for (const Report &child : report.children) {
        if (!is_worth_telling(child, report))
            continue;
        if (shown == kShown) {
            more++;
            continue;
        }
        text += child_text(child);
        shown++;
    }
    if (more > 0)
        text += labelled("", "and " + counted(static_cast<double>(more), "process", "processes") +
                                 " more, which --html and --json have");
    return text;
}

// --- what it costs ------------------------------------------------------------------------------------

std::string switches_text(const Report &report, const Facts &facts) {
    const Point &last = report.points.back();
    const double cost = std::round(last.voluntary) * as_shown(report.switch_cost);
    std::string text = counted(std::round(last.voluntary), "voluntary switch", "voluntary switches");
    if (report.switch_cost <= 0)
        return text;
    text += " x " + rough(report.switch_cost) + " (measured) = " + rough(cost);
    const double lost = facts.is_compared() ? facts.most->cpu() - facts.few->cpu() : 0;
    const bool locks = facts.lock_share > 0.05 || !facts.culprits.empty();
    return locks && lost > 0.05 && cost < kSpun * lost ? text + ": most waits spun" : text;
}

// Of exact runs, with rights for it: each switch, and so all time.
std::string switched_text(const Report &report) {
    if (!report.switched)
        return "";
    const Switched &all = *report.switched;
    const std::string where = report.exact_wall > 0 ? ", in a run of " + rough(report.exact_wall) : "";
    return labelled("", "counted" + where + ": " + rough(all.on) + " on CPUs, " + rough(all.preempted) +
                            " preempted (" + std::to_string(all.involuntary) + " times), " +
                            rough(all.blocked) + " asleep (" + std::to_string(all.voluntary) + " times)");
}

// "instructions per cycle: 1.46 with 1 thread, 0.51 with 4"
std::string counters_text(const Report &report, const Facts &facts) {
    if (!report.counters || report.counters->per_cycle() <= 0)
        return "";
    const auto each = [&](const char *what, int digits, const auto &value) {
        if (!facts.is_compared() || !report.counters_one)
            return std::string(what) + ": " + fixed(value(*report.counters), digits);
        return std::string(what) + ": " + fixed(value(*report.counters_one), digits) + " with " +
               counted(facts.few->threads, "thread") + ", " + fixed(value(*report.counters), digits) +
               " with " + std::to_string(facts.most->threads);
    };
    return labelled("", each("instructions per cycle", 2,
                             [](const HardwareCounts &one) { return one.per_cycle(); })) +
           labelled("", each("cache misses per 1000 instructions", 2,
                             [](const HardwareCounts &one) { return one.per_thousand(one.cache_misses); }));
}

std::string lost_text(const Report &report, const Facts &facts) {
    if (report.points.empty())
        return "";
    std::string first;
    if (facts.is_compared()) {
        const double lost = facts.most->cpu() - facts.few->cpu();
        first = (lost >= 0 ? duration(lost) + " CPU above " : duration(-lost) + " CPU less than ") +
                counted(facts.few->threads, "thread") + "; ";
    }
    first += facts.kernel_share ? fixed(100 * *facts.kernel_share, 0) + " % of CPU is in the kernel;"
                                : "the kernel's share: unknown;";
    std::string text = labelled("LOST", first) + labelled("", switches_text(report, facts));
    const auto of = [&report](Doing what) { return report.doing[static_cast<int>(what)]; };
    if (facts.active > 0)
        text += labelled("", "threads: " + rough(of(Doing::kRunning)) + " running, " +
                                 rough(of(Doing::kRunnable)) + " runnable, " + rough(of(Doing::kLockWait)) +
                                 " lock waits, " + rough(of(Doing::kInputOutput)) + " I/O");
    return text + switched_text(report) + counters_text(report, facts);
}

std::string also_text(const Report &report, const Facts &facts) {
    std::string threads = "threads: " + std::to_string(report.threads_created);
    if (report.is_attached)
        threads = counted(report.sampled_threads, "thread") + " at once at most, " +
                  std::to_string(report.threads_created) + " new";
    else
        threads += report.creations_counted ? " created" : " seen to begin";
    if (report.threads_counted)
        threads += ", " + std::to_string(report.threads_joined) +
                   (report.threads_joined >= report.threads_created ? " joined (ok)"
                                                                    : " joined (others detached or left)");
    const double runnable = facts.wanting / facts.cores;
    return labelled("ALSO", threads,
                    "runnable/cores: " + fixed(runnable, 1) +
                        (runnable < kManyRunnable ? " (ok)" : " (many)"));
}

// Of exact runs: the most frequent ones.
std::string calls_text(const Report &report) {
    constexpr std::size_t kCalls = 6;
    std::string text;
    for (std::size_t i = 0; i < std::min(kCalls, report.system_calls.size()); i++)
        text += (i == 0 ? "" : ", ") + report.system_calls[i].first + " " +
                std::to_string(report.system_calls[i].second);
    return text.empty() ? "" : labelled("CALLS", "counted: " + text);
}

std::string noise_text(const Report &report) {
    double others = 0, waited = 0;
    bool known = false;
    for (const Point &point : report.points) {
        known = known || point.load.others;
        others = std::max(others, point.load.taken());
        waited = std::max(waited, point.load.waited.value_or(0));
    }
    const double share = others / std::max(1U, report.machine.processors);
    const char *word = !known               ? "not known"
                       : share < kLowShare  ? "low"
                       : share < kSomeShare ? "some"
                                            : "high";
    std::string text = std::string("CPU pressure from others: ") + word;
    if (known && share >= kLowShare)
        text += " (up to " + fixed(others, 1) + " of " + counted(report.machine.processors, "CPU") + ")";
    if (!known && waited > 0) // what a verdict of a short run goes by
        text +=
            "; a thread, theirs or the program's, waited for a CPU for " + percent(waited) + " of the time";
    const bool may_count = !report.exact && !report.exact_tried && !report.is_attached;
    const std::string next = may_count ? "--exact | --html" : "--html";
    return labelled("NOISE", text, "next: thrum stat " + next);
}

} // namespace

std::string text_of(const Report &report) {
    const Facts facts(report);
    std::string text = heading(report) + table(report) + processes_text(report) + waits_text(report) +
                       others_text(report, facts) + burns_text(report, facts) + children_text(report);
    text += "\n" + lost_text(report, facts) + (report.sampled_wall > 0 ? also_text(report, facts) : "") +
            calls_text(report) + noise_text(report);
    for (const std::string &warning : report.warnings)
        text += labelled("NOTE", warning);
    return text;
}

} // namespace thrum::stat
