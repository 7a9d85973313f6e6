// SPDX-License-Identifier: Apache-2.0
//
// `thrum compare [OPTIONS] [--] PROG [ARGS...]`: is this program faster with the cache, and by how much?
// `thrum compare [OPTIONS] [--] A [ARGS...] --vs B [ARGS...]`: is B faster than A? What is said of the two ways to run one
// program holds for A and B, in the places of without and with.
//
// The program is run without and with the cache in turn, so that whatever changes on the machine meanwhile changes
// both. A pair of runs gives one ratio, and the ratios' median is what counts; within a pair, the order alternates
// (without-with, with-without, ...), so that neither has the advantage of coming second. measure.cpp runs,
// summary.cpp and verdict.cpp conclude, compare_table.cpp, compare_json.cpp and compare_html.cpp print.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "comparison.hpp"
#include "interrupts.hpp"
#include "preload.hpp"
#include "program.hpp"
#include "tools/output_file.hpp"
#include "tools/progress.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr std::size_t kFewestPairs = 10, kMostPairs = 40; // without -n: as many as fit into kSeconds
constexpr double kSeconds = 10;
constexpr double kLong = 5; // seconds; what runs longer is not warmed up
constexpr std::size_t kLastWords = 2000;

struct Options {
    std::optional<unsigned long> pairs, warmups;
    std::string time_limit, input, html, csv, markdown, output, prepare; // empty: not given
    double seconds = 0;                                                  // of the time limit
    bool json = false, show_output = false, any_status = false;
    bool tunes_cache = false; // an option of the cache was given
};

// --- the two environments ----------------------------------------------------------------------------

// As the library reads a switch.
void check_not_switched_off() {
    const char *value = std::getenv("THRUM_CACHE");
    if (value != nullptr && (std::strcmp(value, "off") == 0 || std::strcmp(value, "0") == 0))
        throw Failure(kRefused, std::string("THRUM_CACHE=") + value +
                                    " is in the environment and turns the cache off; unset it to compare");
}

std::vector<std::string> cache_variables(const std::vector<std::string> &environment) {
    std::vector<std::string> list;
    for (const std::string &entry : environment)
        if (entry.compare(0, 12, "THRUM_CACHE_") == 0 && entry.compare(0, 18, "THRUM_CACHE_TOTAL=") != 0 &&
            entry.compare(0, 20, "THRUM_CACHE_PROGRAM=") != 0)
            list.push_back(entry);
    return list;
}

// --- runs that failed --------------------------------------------------------------------------------

// What is wrong with a pair, or nothing. Two commands need not end alike, but well.
std::string failure_of_two(const Pair &pair, const Options &options) {
    for (const Arm arm : {kWithout, kWith}) {
        const std::string name = kCommandNames[arm];
        if (pair.runs[arm].timed_out)
            return "a run of " + name + " took longer than " + options.time_limit + " s and was ended";
        if (pair.runs[arm].status != 0 && !options.any_status)
            return name + " failed: " + how_it_ended(pair.runs[arm].status) + " (-i compares all the same)";
    }
    return "";
}

std::string failure_of(const Pair &pair, const Options &options) {
    const Run &without = pair.runs[kWithout], &with = pair.runs[kWith];
    for (const Arm arm : {kWithout, kWith})
        if (pair.runs[arm].timed_out)
            return std::string("a run ") + kArmNames[arm] + " the cache took longer than " +
                   options.time_limit + " s and was ended";
    if (without.status != with.status)
        return "the program ended differently: " + how_it_ended(without.status) + " without the cache, " +
               how_it_ended(with.status) + " with it";
    if (without.status != 0 && !options.any_status)
        return "the program failed: " + how_it_ended(without.status) +
               ", both without and with the cache (-i compares anyway)";
    return "";
}

// A file in memory for what a program prints before it fails. For warm-up runs only: its size is not bounded.
class LastWords {
  public:
    LastWords() : file_(memfd_create("thrum-stderr", MFD_CLOEXEC)) {}

    int fd() const { return file_.get(); }
    void clear() {
        if (ftruncate(file_.get(), 0) == 0)
            lseek(file_.get(), 0, SEEK_SET);
    }
    // The end of it, whole lines, indented.
    std::string text() const {
        const off_t size = lseek(file_.get(), 0, SEEK_END);
        std::string end(kLastWords, '\0');
        const auto length = static_cast<off_t>(kLastWords);
        const ssize_t got = pread(file_.get(), end.data(), end.size(), std::max<off_t>(0, size - length));
        end.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
        if (size > length)
            end.erase(0, end.find('\n') + 1);
        std::string lines;
        for (const std::string &line : split(end, "\n"))
            lines += "  | " + line + "\n";
        return lines;
    }

  private:
    Descriptor file_;
};

// --- the comparison ----------------------------------------------------------------------------------

class Comparer {
  public:
    Comparer(const Options &options, Comparison &comparison) : options_(options), comparison_(comparison) {}

    // May end early, by an interrupt or because the program fails; `comparison` holds what was seen until then.
    void compare() {
        prepare();
        progress_ = std::make_unique<Progress>(!options_.show_output);
        Pair pair;
        const bool begun = warm_up(pair);
        if (may_continue())
            measure_pairs(pair, begun);
        comparison_.interrupt = interrupts_.caught();
        comparison_.load = load_between(begin_, moment_now());
        progress_.reset();
        if (!last_words_.empty())
            std::cerr << last_words_ << std::flush;
    }

  private:
    void prepare() {
        set_program(programs_[kWithout], comparison_.words);
        set_program(programs_[kWith], comparison_.is_of_two() ? comparison_.other : comparison_.words);
        comparison_.wanted = options_.pairs.value_or(0);
        comparison_.warmups = static_cast<unsigned>(options_.warmups.value_or(1));
        if (comparison_.is_of_two())
            environments_[kWithout] = environments_[kWith] = present_environment();
        else
            prepare_cache(programs_[kWith]);
    }

    void set_program(Program &program, const std::vector<std::string> &words) {
        program.path = find_program(words.front());
        program.words = words;
        program.show_output = options_.show_output;
        if (!options_.input.empty()) {
            check_input(options_.input);
            program.input = options_.input;
        }
        program.time_limit = options_.seconds;
    }

    void prepare_cache(const Program &program) {
        const Inspection inspection = inspect_program(program.path);
        if (!inspection.refusal.empty())
            throw Failure(kRefused, inspection.refusal_and_remedy());
        if (!inspection.exclusive.empty())
            throw Failure(kRefused, program.path + " is built with " + inspection.exclusive +
                                        ", so it runs without the cache and there is nothing to compare");
        check_cache_environment();
        check_not_switched_off();
        set_environments(find_library());
    }

    // Nothing differs but LD_PRELOAD.
    void set_environments(const std::string &library) {
        setenv("THRUM_CACHE_TOTAL", total_.path().c_str(), 1);
        for (const Arm arm : {kWithout, kWith}) {
            set_preload(library, arm == kWith);
            environments_[arm] = present_environment();
        }
        comparison_.variables = cache_variables(environments_[kWith]);
    }

    bool may_continue() const { return interrupts_.caught() == 0 && comparison_.failure.empty(); }

    static Run ended_early() {
        Run none;
        none.incomplete = true;
        return none;
    }

    // Before each run, and in no time of any.
    void run_preparation() {
        Program shell;
        shell.path = "/bin/sh";
        shell.words = {"sh", "-c", options_.prepare};
        shell.show_output = options_.show_output;
        const Run done =
            measure(shell, environments_[kWithout], total_, -1, interrupts_, [this] { progress_->draw(); });
        if (done.status != 0 && interrupts_.caught() == 0)
            throw Failure(kFailed, "the --prepare command failed: " + how_it_ended(done.status));
    }

    // Again where Ctrl-Z stopped it for a while.
    Run run(Arm arm, int errors) {
        for (;;) {
            if (!options_.prepare.empty())
                run_preparation();
            if (interrupts_.caught() != 0)
                return ended_early();
            const Run done = measure(programs_[arm], environments_[arm], total_, errors, interrupts_,
                                     [this] { progress_->draw(); });
            if (!done.stopped || done.incomplete || interrupts_.caught() != 0)
                return done;
        }
    }

    // True: the first run of the first pair is in `pair`, for the program runs too long to be run for nothing.
    bool warm_up(Pair &pair) {
        begin_ = moment_now();
        for (unsigned done = 0; done < comparison_.warmups && may_continue(); done++) {
            if (warm_up_pair(pair))
                return true;
            check(pair);
        }
        begin_ = moment_now();
        return false;
    }

    bool warm_up_pair(Pair &pair) {
        LastWords words;
        for (const Arm arm : {kWithout, kWith}) {
            words.clear();
            const Run &done = pair.runs[arm] = run(arm, options_.show_output ? -1 : words.fd());
            if (done.status != 0)
                last_words_ = words.text();
            if (done.incomplete || done.timed_out)
                break;
            if (done.status == 0 && arm == kWithout && !options_.warmups && done.wall > kLong) {
                comparison_.warmups = 0;
                return true;
            }
        }
        return false;
    }

    // True: nothing is wrong with it.
    bool check(const Pair &pair) {
        if (interrupts_.caught() == 0)
            comparison_.failure =
                comparison_.is_of_two() ? failure_of_two(pair, options_) : failure_of(pair, options_);
        if (comparison_.failure.empty())
            last_words_.clear(); // of a program that may fail, or was interrupted
        return may_continue();
    }

    void measure_pairs(Pair pair, bool begun) {
        choose_number(pair);
        progress_->set_done(begun ? 1 : 0, seconds_each(pair), "");
        while (may_continue() && (comparison_.wanted == 0 || comparison_.pairs.size() < comparison_.wanted)) {
            if (!begun)
                pair = Pair();
            pair.first = comparison_.pairs.size() % 2 == 0 ? kWithout : kWith;
            if (!measure_pair(pair, begun))
                break;
            comparison_.pairs.push_back(pair);
            begun = false;
            choose_number(pair);
        }
    }

    bool measure_pair(Pair &pair, bool begun) {
        for (const Arm arm : {pair.first, pair.first == kWithout ? kWith : kWithout}) {
            if (begun && arm == pair.first)
                continue;
            pair.runs[arm] = run(arm, -1);
            if (interrupts_.caught() != 0)
                return false;
            if (pair.runs[arm].timed_out)
                break;
            progress_->set_done(2 * comparison_.pairs.size() + (arm == pair.first ? 1 : 2),
                                seconds_each(pair), ratio_so_far());
        }
        return check(pair);
    }

    // The mean of a pair's runs, as far as there are any.
    static double seconds_each(const Pair &pair) {
        const double without = pair.runs[kWithout].wall, with = pair.runs[kWith].wall;
        return without > 0 && with > 0 ? (without + with) / 2 : std::max(without, with);
    }

    void choose_number(const Pair &pair) {
        const double seconds = pair.runs[kWithout].wall + pair.runs[kWith].wall;
        if (comparison_.wanted == 0 && pair.runs[kWithout].wall > 0 && pair.runs[kWith].wall > 0)
            comparison_.wanted = std::clamp(static_cast<std::size_t>(std::min(kSeconds / seconds, 1e6)),
                                            kFewestPairs, kMostPairs);
        progress_->set_total(2 * comparison_.wanted);
    }

    std::string ratio_so_far() const {
        std::vector<double> ratios;
        for (const Pair &pair : comparison_.pairs)
            ratios.push_back(pair.runs[kWithout].wall / pair.runs[kWith].wall);
        return ratios.empty() ? "" : times(median(ratios)) + " so far";
    }

    const Options &options_;
    Comparison &comparison_;
    Program programs_[2]; // by Arm
    Total total_;
    std::vector<std::string> environments_[2];
    Interrupts interrupts_;
    std::unique_ptr<Progress> progress_;
    Moment begin_;
    std::string last_words_;
};

std::string when_interrupted(const Comparison &comparison) {
    return comparison.pairs.empty() ? "before the first pair of runs was complete"
                                    : "after " + pairs_line(comparison);
}

// One of two files would be lost.
void check_files(const Options &options) {
    const std::string table = options.output.empty() ? OutputFile::kStandard : options.output;
    const std::string files[] = {options.html, options.csv, options.markdown, table};
    for (const std::string &one : files)
        if (!one.empty() && std::count(std::begin(files), std::end(files), one) > 1)
            throw Failure(
                kUsage,
                "two of --html, --export-csv, --export-markdown and " +
                    std::string(options.output.empty() && one == table ? "the table" : "-o") +
                    " name the same file, " + name_of_output(one) +
                    (options.output.empty() && one == table ? "; -o FILE writes the table elsewhere" : ""));
}

// At the first --vs that has a command on both sides.
void split_words(const std::vector<std::string> &words, Comparison &comparison) {
    const auto mark = std::find(words.begin(), words.end(), "--vs");
    comparison.words.assign(words.begin(), mark);
    if (mark == words.end())
        return;
    const bool has_dashes = mark + 1 != words.end() && *(mark + 1) == "--";
    comparison.other.assign(mark + (has_dashes ? 2 : 1), words.end());
    if (comparison.words.empty() || comparison.other.empty())
        throw Failure(kUsage, "--vs stands between two commands: thrum compare [OPTIONS] -- A ARGS... --vs B "
                              "ARGS...");
}

void compare(const Options &options, const std::vector<std::string> &words) {
    check_files(options);
    OutputFile page(options.html), csv(options.csv), markdown(options.markdown), output(options.output);
    Comparison comparison;
    split_words(words, comparison);
    if (comparison.is_of_two() && options.tunes_cache)
        throw Failure(kUsage,
                      "with --vs both commands run as they are, without the cache, so that options of "
                      "the cache have no effect; thrum run may be a part of a command");
    comparison.machine = this_machine();
    Comparer(options, comparison).compare();

    Summary summary = summarize(comparison.pairs);
    summary.is_of_two = comparison.is_of_two();
    const Verdict verdict = judge(summary, comparison.load, comparison.machine.processors);
    if (page.wanted() && !comparison.pairs.empty())
        page.write(as_html(comparison, summary, verdict));
    if (csv.wanted() && !comparison.pairs.empty())
        csv.write(as_csv(comparison));
    if (markdown.wanted() && !comparison.pairs.empty())
        markdown.write(as_markdown(comparison, summary, verdict));
    if (!output.wanted())
        fit_reports_to(STDOUT_FILENO);
    const std::string text = options.json                ? as_json(comparison, summary, verdict)
                             : !comparison.pairs.empty() ? as_table(comparison, summary, verdict)
                                                         : "";
    if (output.wanted() && !text.empty())
        output.write(text);
    else if (!output.wanted())
        std::cout << text << std::flush;
    if (comparison.interrupt != 0)
        throw Interrupted(comparison.interrupt, "interrupted " + when_interrupted(comparison));
    if (!comparison.failure.empty())
        throw Failure(kFailed, comparison.failure);
}

void add_options(Command &command, Options &options) {
    command.value(
        "-n,--runs", "N",
        "Make N pairs of runs (1 to 10000; default: 10, or up to 40 that\nfit into 10 seconds)",
        [&options](const std::string &text) { options.pairs = whole_number("-n", text, 1, 10000); });
    command.value(
        "--warmup", "N",
        "Make N uncounted pairs of runs first (0 to 100; default: 1, or 0\nif a run takes longer than 5 "
        "seconds)",
        [&options](const std::string &text) { options.warmups = whole_number("--warmup", text, 0, 100); });
    command.value("--timeout", "SECONDS", "Kill a run that takes longer, and give up",
                  [&options](const std::string &text) {
                      options.seconds = parse_seconds("--timeout", text);
                      options.time_limit = text;
                  });
    add_file(command, "--input", "What each run reads as its stdin (default: nothing)", options.input);
    command.flag("--show-output", "Show on stderr what the runs print (default: discard it)",
                 options.show_output);
    command.flag(
        "-i,--ignore-failure",
        "Compare even if the program fails, as long as it fails the same way\nwith and without the cache",
        options.any_status);
    command.flag("--json", "Print one JSON object instead of the table", options.json);
    command.value("--prepare", "COMMAND", "Run COMMAND by a shell before each run; its time does not count",
                  [&options](const std::string &text) { options.prepare = text; });
    add_file(command, "-o,--output", "Write the table, or with --json the object, to FILE; -: stdout",
             options.output);
    add_file(command, "--html", "Also write an HTML page with plots to FILE", options.html);
    add_file(command, "--export-csv", "Also write one CSV line per pair to FILE", options.csv);
    add_file(command, "--export-markdown", "Also write a Markdown table to FILE", options.markdown);
    add_cache_options(command);
}

} // namespace

void add_compare(CommandLine &line, const std::vector<std::string> &behind_mark) {
    auto options = std::make_shared<Options>();
    Command command =
        line.add({"compare", "Run a program without and with the cache, and tell which is faster",
                  "thrum compare [OPTIONS] [--] PROG [ARGS...]\n"
                  "       thrum compare [OPTIONS] [--] A [ARGS...] --vs B [ARGS...]",
                  "Ctrl-C ends it early and prints the results so far. Exit code: 0 compared,\n1 the program "
                  "failed or took too long, 2 wrong command line, 125 refused,\n126 not executable, 127 not "
                  "found; after Ctrl-C it dies of SIGINT. More in\nthrum-compare(1)."});
    command.takes_program();
    add_options(command, *options);
    command.then([command, options, behind_mark] {
        const std::vector<std::string> left = command.words();
        if (Comparison none; !left.empty() && left.front() == "--vs") // it is no program
            split_words(left, none);
        const std::vector<std::string> words = program_words(command, behind_mark);
        options->tunes_cache = has_cache_options(command);
        compare(*options, words);
    });
}

} // namespace thrum
