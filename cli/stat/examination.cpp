// SPDX-License-Identifier: Apache-2.0
#include "stat/examination.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iostream>

#include "process.hpp"
#include "program.hpp"
#include "stat/facts.hpp"
#include "stat/hardware.hpp"
#include "stat/host.hpp"
#include "stat/rules.hpp"
#include "stat/scaling.hpp"
#include "tools/failure.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kRate = 100;      // sweeps a second, and samples for each second of CPU time
constexpr double kBudget = 0.0125; // of one CPU, for sampling; CPU profiles have their own (collect.hpp)
constexpr double kLong = 2;        // seconds; what runs longer is not warmed up
constexpr double kWatched = 10;    // seconds, for a process that runs already
constexpr double kChanged = 1.25;  // times as long when it is looked at: worth a warning

std::string iso_time() {
    const time_t now = time(nullptr);
    tm parts;
    char text[64];
    if (localtime_r(&now, &parts) == nullptr ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts) == 0)
        return "";
    return text;
}

} // namespace

Examination::Examination(const Options &options, Report &report) : options_(options), report_(report) {
    report_.machine = this_machine();
    report_.began = iso_time();
    look_at_host();
}

void Examination::run_program(const std::vector<std::string> &words) {
    prepare(words);
    if (options_.sweep.empty())
        one_number();
    else
        sweep();
    conclude_all();
}

int Examination::status() const {
    // A program that a second interrupt killed ended by the first.
    const bool is_ours = !options_.sweep.empty() || (WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL);
    return interrupts_.caught() != 0 && is_ours ? interrupts_.caught() : status_;
}

void Examination::look_at_host() {
    const unsigned seen = report_.machine.processors;
    report_.host_processors = static_cast<unsigned>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
    report_.cores = std::min(physical_cores(), seen);
    if (report_.cores > 0 && report_.cores < seen)
        know(counted(seen, "CPU") + " are hyper-threads of " + counted(report_.cores, "core") +
             "; speedups are relative to cores.");
    const std::optional<double> quota = cpu_quota();
    if (!quota || *quota >= seen)
        return;
    report_.quota = *quota;
    report_.machine.processors = static_cast<unsigned>(std::max(1.0, std::ceil(*quota)));
    report_.cores = std::min(report_.cores, report_.machine.processors);
    warn("the control group allows " + fixed(*quota, 1) + " of " + counted(seen, "CPU") +
         "; its throttling looks like other programs' load");
}

void Examination::prepare(const std::vector<std::string> &words) {
    report_.command = words;
    report_.is_rated = options_.rate != nullptr;
    launch_.path = find_program(words.front());
    launch_.words = words;
    launch_.environment = present_environment();
    if (!options_.input.empty())
        check_input(options_.input);
    launch_.time_limit = options_.time_limit;
    if (options_.exact)
        exact_ = make_exact(launch_.path);
    if (options_.sweep.empty() && has_braces(words))
        warn("the {} was passed to the program as it is: there is no --sweep");
    report_.switch_cost = measure_switch_cost();
}

// The program's output is the user's once, as if it had been run without thrum; what follows is repetition.
Streams Examination::streams(bool first) const {
    Streams streams;
    streams.input = options_.input;
    streams.input_begin = input_begin_;
    streams.own_input = first && options_.input.empty();
    if (first || options_.show_output)
        streams.output = options_.writes_to_output() ? Streams::kErrors : Streams::kOwn;
    return streams;
}

void Examination::show_progress(const std::string &note) {
    if (!progress_)
        progress_ = std::make_unique<Progress>(!options_.show_output, options_.pid == 0 ? "warming up" : "");
    const double last =
        runs_.empty() || runs_.back().measured.empty() ? 0 : runs_.back().measured.back().wall;
    progress_->set_done(done_, last, note);
}

// False: it is no use to continue.
bool Examination::take_status(const Launch &launch, const Measured &measured) {
    if (status_ == 0)
        status_ = measured.timed_out ? W_EXITCODE(kFailed, 0) : measured.status;
    if (measured.incomplete)
        return false;
    if (measured.stopped)
        warn("the program was stopped for some time, which is included in the times");
    if (measured.left_behind)
        warn("the program left processes running: no number here includes them, and they disturb later runs");
    const std::string with = launch.threads > 0 ? " with " + counted(launch.threads, "thread") : "";
    if (measured.timed_out)
        failure_ = "a run took longer than " + options_.time_limit_text + " s and was ended" + with;
    else if (WIFSIGNALED(measured.status))
        failure_ = "the program was ended by " + how_it_ended(measured.status) + with;
    else if (first_status_.value_or(measured.status) != measured.status)
        failure_ = "the program ended differently: " + how_it_ended(*first_status_) + " first, " +
                   how_it_ended(measured.status) + with;
    else if (measured.status != 0)
        warn("the program ended with " + how_it_ended(measured.status));
    report_.timed_out = measured.timed_out;
    report_.has_failed = !failure_.empty() && !measured.timed_out;
    first_status_ = first_status_.value_or(measured.status);
    if (!failure_.empty())
        warn(failure_);
    return failure_.empty();
}

// A run that was looked at and ended in another way did something else, or not all of it.
void Examination::compare_status(const std::string &which, const Measured &measured) {
    if (!measured.incomplete && first_status_ && measured.status != *first_status_)
        warn(which + " ended differently: " + how_it_ended(measured.status) + " instead of " +
             how_it_ended(*first_status_) + "; its results may not hold for the others");
}

// Of a run with a library of ours in it.
void Examination::warn_of_filter(const Measured &measured, const std::string &way_out) {
    if (WIFSIGNALED(measured.status) && WTERMSIG(measured.status) == SIGSYS)
        warn("SIGSYS ends a program that makes a system call which a seccomp filter forbids. If the program "
             "does not end so by itself, the library that thrum stat preloads made that call: " +
             way_out + " the program runs without that library");
}

// Working out what a run has shown may take a while. One interrupt then keeps further runs from being made, and the next ends
// all at once.
Measured Examination::run_once(const Launch &launch, const Streams &streams,
                               const std::vector<Layer *> &layers) {
    interrupts_.watch();
    const Measured measured = run(launch, streams, layers, interrupts_, on_tick());
    interrupts_.release_second();
    return measured;
}

// With --rate, the program's output is read when it has ended, and shown then if it is to be shown at all.
Measured Examination::run_bare(const Launch &launch, Streams streams) {
    if (options_.rate == nullptr)
        return run_once(launch, streams, {});
    const Descriptor file(memfd_create("thrum-output", MFD_CLOEXEC));
    if (!file.is_open()) // the output would go elsewhere, and no rate be found in it
        throw Failure(kFailed, std::string("no memory for what the program prints: ") + std::strerror(errno));
    streams.capture = file.get();
    Measured measured = run_once(launch, streams, {});
    const std::string output = process::read_all("/proc/self/fd/" + std::to_string(file.get())).value_or("");
    if (streams.output != Streams::kNowhere) {
        std::ostream &to = streams.output == Streams::kErrors ? std::cerr : std::cout;
        to << output << std::flush;
    }
    const std::optional<double> rate = options_.rate->find(output);
    if (!rate && !measured.incomplete && measured.status == 0)
        throw Failure(kFailed,
                      "--rate found no number above 0 in what the program printed: no line matches '" +
                          options_.rate->regex() + "'");
    if (rate && work_ <= 0)
        work_ = *rate * measured.wall;
    if (rate)
        scale_to_work(measured, *rate, work_);
    return measured;
}

// Again where Ctrl-Z stopped it for a while; the first run, whose output is shown, is made once only.
bool Examination::measure_bare(Runs &runs, const Streams &streams) {
    Measured measured = run_bare(runs.launch, streams);
    while (measured.stopped && !streams.in_foreground() && may_continue())
        measured = run_bare(runs.launch, streams);
    if (!take_status(runs.launch, measured))
        return false;
    runs.measured.push_back(measured);
    done_++;
    return true;
}

// --- one number of threads ----------------------------------------------------------------------------

// Observed from outside in its only run, unless more are requested.
void Examination::one_number() {
    runs_.push_back({launch_, {}});
    for (unsigned long done = 0; done < options_.runs.value_or(0) && may_continue(); done++) {
        if (done > 0)
            show_progress("bare runs");
        if (!measure_bare(runs_.back(), streams(done == 0)))
            break;
    }
    if (!may_continue())
        return;
    const bool only = !options_.runs;
    const Measured measured = observe(launch_, streams(only), true);
    if (only) {
        take_status(launch_, measured);
        runs_.back().measured.push_back(measured);
        report_.is_bare = false;
        know("The program was run once, and observed meanwhile: its times include the cost of that.");
    }
    if (exact_ && may_continue())
        count_exactly(launch_);
}

// --- several ------------------------------------------------------------------------------------------

void Examination::sweep() {
    for (const unsigned threads : options_.sweep)
        runs_.push_back({with_threads(launch_, options_.telling, threads), {}});
    const bool has_first = warm_up();
    if (may_continue())
        measure_rounds(has_first);
    if (may_continue())
        look_closer();
}

// The run whose output is shown; it also brings files into memory. True: it took so long that it counts.
bool Examination::warm_up() {
    const Measured measured = run_bare(runs_.front().launch, streams(true));
    struct stat input;
    if (options_.input.empty() && fstat(STDIN_FILENO, &input) == 0 &&
        (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode)))
        warn("standard input is a pipe, which only the first run could read; use --input FILE for all runs");
    if (!take_status(runs_.front().launch, measured) || measured.wall < kLong || measured.stopped)
        return false;
    runs_.front().measured.push_back(measured);
    return true;
}

// One number of threads after the other. False: it is over.
bool Examination::measure_round(bool backwards, bool has_first) {
    for (std::size_t i = 0; i < runs_.size(); i++) {
        Runs &runs = runs_[backwards ? runs_.size() - 1 - i : i];
        if (has_first && &runs == &runs_.front())
            continue;
        show_progress("bare, " + counted(runs.launch.threads, "thread"));
        if (!measure_bare(runs, streams(false)) || !may_continue())
            return false;
    }
    return true;
}

void Examination::measure_rounds(bool has_first) {
    if (!measure_round(false, has_first))
        return;
    double seconds = 0;
    for (const Runs &runs : runs_)
        seconds += runs.measured.back().wall;
    const unsigned long rounds = options_.runs.value_or(rounds_for(seconds));
    const std::size_t closer = 1 + (profiles_both() ? 1 : 0) + (exact_ ? 1 : 0);
    show_progress("bare runs");
    progress_->set_total(rounds * runs_.size() + closer);
    for (unsigned long round = 1; round < rounds; round++)
        if (!measure_round(round % 2 != 0, false))
            return;
}

// With the most threads, where what is wrong shows, and with the fewest, to see what is different.
void Examination::look_closer() {
    show_progress("sampled, " + counted(runs_.back().launch.threads, "thread"));
    observe(runs_.back().launch, streams(false), true);
    done_++;
    if (profiles_both() && interrupts_.caught() == 0) {
        show_progress("profiled, " + counted(runs_.front().launch.threads, "thread"));
        observe(runs_.front().launch, streams(false), false);
        done_++;
    }
    if (exact_ && interrupts_.caught() == 0)
        count_exactly(runs_.back().launch);
    else if (report_.makers.empty() && is_churning(report_) && interrupts_.caught() == 0)
        look_for_makers(runs_.back().launch);
    if (is_sharing_nameless(report_) && interrupts_.caught() == 0)
        look_for_allocations(runs_.back().launch);
}

// --- runs that are looked at --------------------------------------------------------------------------

void Examination::take_notes(const Layer &layer) {
    for (const std::string &sentence : layer.how_known)
        know(sentence);
    for (const std::string &sentence : layer.warnings)
        warn(sentence);
}

// `whole`: with the sampler; otherwise the CPU profile alone, of the fewest threads.
Measured Examination::observe(const Launch &launch, const Streams &streams, bool whole) {
    std::unique_ptr<Sampler> sampler = whole ? std::make_unique<Sampler>(kRate, kBudget) : nullptr;
    std::string why_not;
    std::unique_ptr<CpuProfile> profile;
    if (options_.no_profile)
        know("There is no CPU profile (--no-profile).");
    else if ((profile = make_cpu_profile(launch.path, kRate, why_not)) == nullptr)
        warn("no CPU profile: " + why_not);
    HardwareCounters hardware;
    std::vector<Layer *> layers = {&hardware};
    if (sampler)
        layers.push_back(sampler.get());
    if (profile)
        layers.push_back(profile.get());

    ProcessTree tree;
    ChildWatch children(tree, profile.get(), kRate, kBudget);
    if (whole && options_.follow) {
        sampler->are_children_followed = true;
        layers.push_back(&tree);
        layers.push_back(&children);
    }

    const double throttled = cpu_throttled();
    const Measured measured = run_once(launch, streams, layers);
    if (whole)
        report_.throttled = std::max(0.0, cpu_throttled() - throttled);
    if (whole)
        take_processes(measured, tree);
    compare_status(whole ? "the sampled run" : "the profiled run", measured);
    if (measured.stopped && (options_.runs || !options_.sweep.empty())) // else take_status() says it
        warn("the observed run was stopped for some time, which is included in its results");
    if (profile && !profile->environment().empty())
        warn_of_filter(measured, "with --no-profile");
    if (progress_)
        progress_->draw();
    hardware.finish();
    take_notes(hardware);
    (whole ? report_.counters : report_.counters_one) = hardware.counters;
    if (profile) {
        profile->finish();
        take_notes(*profile);
        report_.profile_source = profile->source;
        if (whole)
            add_makers(report_, profile->observed.maps, profile->makers);
        add_profile(whole ? report_.burns : report_.burns_one, *profile);
        if (whole)
            add_accesses(report_, *profile);
    }
    if (sampler) {
        take_sampled(*sampler, launch, measured);
        take_children(children, measured.load);
    }
    if (sampler && profile && profile->threads_created >= report_.threads_created) {
        report_.threads_created =
            profile->threads_created; // of those that live for less than a look most are not seen
        report_.creations_counted = profile->threads_created > 0;
    }
    return measured;
}

// A child that was seen may not have been waited for, and one that was waited for may not have been seen.
void Examination::take_processes(const Measured &measured, const ProcessTree &tree) {
    report_.processes = tree.processes();
    report_.own_cpu = measured.own_cpu;
    double seen = 0;
    for (std::size_t i = 1; i < report_.processes.size(); i++)
        seen += report_.processes[i].cpu;
    report_.children_cpu = std::max(measured.children_cpu, seen);
    if (!report_.processes.empty())
        report_.processes.front().cpu = std::max(report_.processes.front().cpu, measured.own_cpu);
    if (report_.processes.size() > 1)
        know("Processes that the program started were looked for in /proc at most twenty times a second: of "
             "shorter ones only the CPU time is known, if their parent waited for them.");
}

// Of those that are told of the warnings count as well: of a library without names there is no more than one.
void Examination::take_children(ChildWatch &children, const Load &load) {
    report_.children = children.reports(report_, load);
    take_notes(children);
    for (const Report &child : report_.children)
        if (is_worth_telling(child, report_))
            for (const std::string &warning : child.warnings)
                warn(warning);
    constexpr double kSome = 0.1; // of CPU time
    const double all = report_.own_cpu + report_.children_cpu;
    if (report_.profile_source.compare(0, 4, "perf") != 0 && !report_.profile_source.empty() &&
        report_.children_cpu > kSome * all && !report_.children.empty())
        know("Of the processes that the program started there is no CPU profile: only perf events see them.");
}

void Examination::take_sampled(const Sampler &sampler, const Launch &launch, const Measured &measured) {
    report_.sampled_threads = launch.threads > 0 ? launch.threads : measured.most_threads;
    report_.sampled_wall = measured.wall;
    add_samples(report_, sampler, measured.wall);
    take_notes(sampler);
    if (runs_.empty() || runs_.back().measured.empty())
        return;
    const double bare = point_of(runs_.back()).wall.median;
    if (options_.rate == nullptr)
        know("The sampled run took " + duration(measured.wall) + ", bare ones " + duration(bare) + ".");
    if (options_.rate == nullptr && (measured.wall > kChanged * bare || measured.wall * kChanged < bare))
        warn("the sampled run took " + duration(measured.wall) + " instead of " + duration(bare) +
             ": shares of waiting may differ from those of the bare runs");
}

void Examination::count_exactly(const Launch &launch) {
    if (progress_)
        show_progress("counted");
    report_.exact_tried = true;
    const Measured measured = run_once(launch, streams(false), {exact_.get()});
    report_.exact_wall = measured.wall;
    compare_status("the run in which waits were counted", measured);
    warn_of_filter(measured, "without --exact");
    exact_->finish();
    add_exact(report_, *exact_);
    take_notes(*exact_);
    if (report_.exact)
        know("Waits were counted in a separate run, whose times are not reported.");
}

// A thread that creates threads all the time hardly ever sleeps, so the sampler does not see it.
void Examination::look_for_makers(const Launch &launch) {
    std::string why_not;
    const std::unique_ptr<MakersLayer> layer = make_makers(launch.path, why_not);
    if (layer == nullptr) {
        warn("where threads are created is unknown: " + why_not);
        return;
    }
    show_progress("threads' creators");
    compare_status("the run that recorded threads' creators",
                   run_once(launch, streams(false), {layer.get()}));
    layer->finish();
    take_notes(*layer);
    add_makers(report_, layer->maps, layer->makers);
}

// Addresses hold for one run only: what threads share is looked for again.
void Examination::look_for_allocations(const Launch &launch) {
    std::string why_not;
    const std::unique_ptr<AllocationsLayer> layer = make_allocations(launch.path, why_not);
    const std::unique_ptr<CpuProfile> profile =
        layer != nullptr ? make_cpu_profile(launch.path, kRate, why_not) : nullptr;
    if (profile == nullptr || !profile->environment().empty()) { // only perf events tell what is accessed
        warn("where memory is allocated is unknown: " + why_not);
        return;
    }
    show_progress("allocations");
    const Measured measured = run_once(launch, streams(false), {profile.get(), layer.get()});
    compare_status("the run that recorded allocations", measured);
    warn_of_filter(measured, "with --no-profile");
    profile->finish();
    layer->finish();
    take_notes(*layer);
    Report noted;
    add_accesses(noted, *profile, layer.get());
    name_shared(report_, noted);
}

// --- a process that runs already ----------------------------------------------------------------------

void Examination::watch_process() {
    report_.command = {process::name(options_.pid), "(process " + std::to_string(options_.pid) + ")"};
    process::check_has_program(options_.pid);
    Sampler sampler(kRate, kBudget);
    std::vector<Layer *> layers = {&sampler};
    sampler.attach(options_.pid);
    std::string why_not;
    std::unique_ptr<CpuProfile> profile;
    if (options_.no_profile)
        know("There is no CPU profile (--no-profile).");
    else if ((profile = make_attached_profile(options_.pid, kRate, why_not)) == nullptr)
        know("There is no CPU profile of the process: " + why_not + ".");
    else
        layers.push_back(profile.get());
    report_.switch_cost = measure_switch_cost();
    show_progress("observing process " + std::to_string(options_.pid));
    runs_.push_back({});
    ProcessTree tree;
    ChildWatch children(tree, profile.get(), kRate, kBudget);
    if (options_.follow) {
        sampler.are_children_followed = true;
        tree.attach(options_.pid);
        layers.push_back(&tree);
        layers.push_back(&children);
    }
    const Measured measured =
        watch(options_.pid, options_.seconds.value_or(kWatched), layers, interrupts_, on_tick());
    take_processes(measured, tree);
    if (measured.stopped)
        warn("the observation was suspended for some time, in which the process was not sampled");
    interrupts_.release_second();
    runs_.back().measured.push_back(measured);
    report_.is_bare = false;
    report_.is_attached = true;
    report_.sampled_wall = measured.wall;
    add_samples(report_, sampler, measured.wall);
    report_.sampled_threads = std::max({measured.most_threads, sampler.most_threads, 1U});
    runs_.back().measured.back().most_threads = report_.sampled_threads;
    take_notes(sampler);
    if (profile) {
        profile->finish();
        take_notes(*profile);
        report_.profile_source = profile->source;
        add_profile(report_.burns, *profile);
        add_accesses(report_, *profile);
    }
    take_children(children, measured.load);
    know("The process was observed from outside for " + duration(measured.wall) + ".");
    conclude_all();
}

// --- the end ------------------------------------------------------------------------------------------

// A thread that began was there beside the one that created it, although no look may have seen both.
void Examination::count_new_threads() {
    if (report_.threads_created == 0 ||
        !options_.sweep.empty()) // a sweep shows the numbers that it requested
        return;
    report_.sampled_threads = std::max(report_.sampled_threads, 2U);
    for (Runs &runs : runs_)
        for (Measured &measured : runs.measured)
            measured.most_threads = std::max(measured.most_threads, 2U);
}

void Examination::conclude_all() {
    report_.interrupted = interrupts_.caught() != 0;
    if (report_.interrupted && runs_.back().measured.empty() && runs_.front().measured.empty())
        throw Interrupted(interrupts_.caught(), "interrupted before the first run was complete");
    count_new_threads();
    report_.points = points_of(runs_);
    if (report_.interrupted)
        warn("interrupted: these are the results so far");
    if (const std::string unheeded = unheeded_text(report_.points, options_.telling); !unheeded.empty())
        warn(unheeded);
    if (!options_.sweep.empty() || options_.runs)
        know("Times are medians of bare runs: nothing was loaded into them, and /proc was read ten times a "
             "second for threads and run-queue delays.");
    if (options_.rate != nullptr)
        know("Times and counts of the bare runs are scaled to the amount of work of the first run, by the "
             "rate that each run printed (--rate).");
    report_.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
    report_.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 0;
    add_scaling(report_);
    conclude(report_, failure_);
    if (options_.rate != nullptr) // below the table; evidence that has been concluded quotes the law alone
        report_.scaling_text = "Times and counts are scaled to the work of the first run (--rate)." +
                               (report_.scaling_text.empty() ? "" : " " + report_.scaling_text);
    progress_.reset();
}

} // namespace thrum::stat
