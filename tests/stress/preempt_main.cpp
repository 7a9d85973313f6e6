// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: threads that are preempted at any moment of anything. Each *torture* (preempt_stress.h) does what a
// preemption may break, and looks whether it has: malloc, stdio, errno and thread-locals, pthread's locks, exceptions,
// the loader, kernel threads and processes, registers, stacks, waiting without a wait. Many threads do some of each
// while ticks come every slice; and some tortures, each in a round of its own, look at preemption itself: that no tick
// is lost (preempt_turns.cpp), that regions are left alone, that a lack of kernel threads neither hangs nor starves anybody,
// and that signals of the program's do no harm (preempt_signals.cpp).
//
//     stress-preempt --mode lend --workers 2 --threads 32 --slice 100 --seconds 10 --only malloc,stdio
//     stress-preempt --mode lend,none --workers 1,2,8 --threads 8,32,1000 --slice 50,100,1000 --seconds 60
//
// The second is all combinations, a minute in all. --mode pthread runs the same on kernel threads: what fails there is
// the test's fault. A run counts only if malloc, free, stdio, the mutexes, other locks, the unwinder, the bottoms of
// stacks and the registers were hit often enough (--least-hits, of several modes in each; preempt_pcs.h). --clock-steps sets
// the machine's clock by an hour and back again and again, where the process may. --source monitor has the library's monitor
// send the ticks, --monitor-each N in each N-th combination. --lose 2,3 keeps two of three ticks from the library, --unheeded
// 2,3 does so when they have been counted; --bites shows by these and others that the checks can fail. The seed of a run is
// printed, --seed N takes it again: the choices are the same then, the interleaving is not.
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "preempt_bites.h"
#include "preempt_crew.h"
#include "preempt_faults.h"
#include "preempt_matrix.h"
#include "preempt_options.h"
#include "preempt_outside.h"
#include "preempt_report.h"
#include "preempt_stress.h"
#include "preempt_watch.h"

Options options;

void fail(const char *file, int line, const char *format, ...) {
    char text[400];
    int length = std::snprintf(text, sizeof text, "stress-preempt: %s:%d: ", file, line);
    va_list arguments;
    va_start(arguments, format);
    length +=
        std::vsnprintf(text + length, sizeof text - 80 - static_cast<std::size_t>(length), format, arguments);
    va_end(arguments);
    length = std::min(length, static_cast<int>(sizeof text) - 80);
    length += std::snprintf(text + length, 80, " (%s, seed %llu)\n", name_of(options.mode),
                            static_cast<unsigned long long>(options.seed));
    (void)!write(STDERR_FILENO, text, static_cast<std::size_t>(length));
    abort();
}

namespace {

constexpr double kShortest = 0.2; // s, of a round
constexpr double kLongest = 2;
constexpr std::uint64_t kManyNested = 100;
constexpr int kPatience = 20; // so many times as long as was asked for, until enough was hit

bool is_wanted(const Torture &torture) {
    const std::vector<std::string> &only = options.only;
    return torture.fits() &&
           (only.empty() || std::find(only.begin(), only.end(), torture.name()) != only.end());
}

Tortures all_tortures() {
    Tortures all;
    for (auto *add : {add_malloc, add_stdio, add_locals, add_mutexes, add_conds, add_throw, add_loader,
                      add_process, add_threads, add_floats, add_deep, add_busy, add_turns, add_regions,
                      add_scarce, add_signals, add_pressure})
        add(all);
    return all;
}

void names_exist(const Tortures &all) {
    for (const std::string &name : options.only)
        if (std::none_of(all.begin(), all.end(),
                         [&](const auto &torture) { return name == torture->name(); })) {
            std::fprintf(stderr, "stress-preempt: there is no torture '%s', but", name.c_str());
            for (const auto &torture : all)
                std::fprintf(stderr, " %s", torture->name());
            std::fprintf(stderr, "\n");
            std::exit(2);
        }
}

// Signals are neither merged nor lost, but for those that are on their way when a round ends: one a kernel thread.
void nested_ticks_came(const Nested &nested) {
    if (nested.came > nested.sent || (nested.sent >= kManyNested && nested.came * 2 < nested.sent))
        fail(__FILE__, __LINE__, "of %llu ticks that were sent from within the handler %llu came",
             static_cast<unsigned long long>(nested.sent), static_cast<unsigned long long>(nested.came));
}

Report report_now() {
    return {crew_totals.preemptions,
            crew_totals.ticks,
            crew_totals.steps,
            pcs_ticks(),
            options.monitored() ? pcs_ticks() : 0,
            pcs_counts(),
            {},
            pcs_nested(),
            clock_steps_so_far(),
            stops_so_far()};
}

// Rounds of all that can be mixed, and of what has to be alone in turn, of which there may be more than there is time.
void torture_all(const Tortures &all) {
    std::vector<Torture *> mixed_ones, lone;
    for (const auto &torture : all)
        if (is_wanted(*torture))
            (torture->alone() ? lone : mixed_ones).push_back(torture.get());
    const std::uint64_t begin = thrum_now();
    const auto total = static_cast<std::uint64_t>(options.seconds * 1e9);
    Random random(options.seed);
    std::size_t next = mixed(options.seed) % std::max<std::size_t>(lone.size(), 1);
    for (bool mixes = true; !mixed_ones.empty() || !lone.empty(); mixes = !mixes) {
        const std::uint64_t gone = thrum_now() - begin;
        if (gone >= total &&
            (mixed_ones.empty() || report_now().is_enough(options.mode) || gone >= kPatience * total))
            break;
        const double left = gone < total ? static_cast<double>(total - gone) * 1e-9 : kLongest;
        const double part = std::clamp(options.seconds / 4, kShortest, kLongest);
        const auto seconds = [&](double of_all) {
            return std::min(left + 0.01, options.round > 0 ? options.round : of_all);
        };
        if (!mixed_ones.empty() && (mixes || lone.empty() || gone >= total))
            crew_run(mixed_ones, seconds(part), random.next());
        else if (!lone.empty())
            crew_run({lone[next++ % lone.size()]}, seconds(part / 2), random.next());
    }
}

int run(const CommandLine &line) {
    const Tortures all = all_tortures();
    names_exist(all);
    const bool is_part = line.report_to >= 0;
    const int places = is_part ? line.places_to : places_file();
    places_go_to(places);
    watch_start();
    faults_are_told();
    torture_all(all);
    char what[100];
    std::snprintf(what, sizeof what, "%s, %u workers, %u threads, %u us%s", name_of(options.mode),
                  options.workers, options.threads, options.slice,
                  options.monitored() ? ", by the monitor" : "");
    Report report = report_now();
    if (!is_part) // those of a part are counted together with others'
        report.places = places_in({places});
    report.print(what);
    if (is_part)
        CHECK(write(line.report_to, &report, sizeof report) == sizeof report);
    report.say_misses(options.mode, false);
    report.say_if_few();
    nested_ticks_came(report.nested);
    return report.is_enough(options.mode) ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
    CommandLine line = command_line(argc, argv);
    options = line.common;
    options.mode = line.modes[0];
    options.workers = line.workers[0];
    options.threads = line.threads[0];
    options.slice = line.slices[0];
    if (line.overflow)
        overflow_run();
    if (options.clock_steps && !clock_may_be_set()) {
        options.clock_steps = line.common.clock_steps = false;
        std::printf("the clock is not set: this process may not (CAP_SYS_TIME)\n");
    }
    if (line.report_to < 0)
        std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
    std::fflush(stdout);
    if (!line.bites.empty())
        return bites_run(line);
    if (line.monitor_each > 0 ||
        line.modes.size() * line.workers.size() * line.threads.size() * line.slices.size() > 1)
        return matrix_run(line);
    return run(line);
}
