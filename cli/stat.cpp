// SPDX-License-Identifier: Apache-2.0
//
// `thrum stat [OPTIONS] [--] PROG [ARGS...]`: is this program slower because of its threads, why, where, and what
// helps? `thrum stat -p PID` asks the same of a running process.
//
// Times come from bare runs with different numbers of threads (stat/sweep.cpp); causes from further runs that are
// observed from outside, or counted from inside (stat/layers.hpp). Without a number of threads to vary there is one
// run, which is observed from outside. stat/examination.cpp makes the runs, stat/rules/ concludes,
// stat/report_*.cpp print.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "process.hpp"
#include "stat/examination.hpp"
#include "stat/lock_table.hpp"
#include "stat/rate.hpp"
#include "stat/report.hpp"
#include "stat/sweep.hpp"
#include "tools/machine.hpp"
#include "tools/output_file.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

using namespace stat;

// --- the command line ---------------------------------------------------------------------------------

void check_process_options(const Options &options) {
    if (!options.sweep.empty() || options.telling.any() || options.runs || options.exact || options.rate ||
        options.show_output || !options.input.empty() || options.time_limit > 0)
        throw Failure(kUsage, "-p observes a running process; it combines only with --seconds, --json, "
                              "--html, --trace, --folded, -o, --locks, --no-profile and --no-follow");
}

void check_affinity(const Options &options, unsigned processors) {
    if (options.telling.by_affinity && !options.sweep.empty() && options.sweep.back() > processors)
        throw Failure(kUsage, "--by-affinity can give a program 1 to " + std::to_string(processors) +
                                  " CPUs, not " + std::to_string(options.sweep.back()));
}

// One of two files would be lost.
void check_files(const Options &options) {
    const std::string report =
        options.output.empty() && options.json ? OutputFile::kStandard : options.output;
    const std::vector<std::string> files = {options.html, options.trace, options.folded, report};
    for (std::size_t i = 0; i < files.size(); i++)
        for (std::size_t j = i + 1; j < files.size(); j++)
            if (!files[i].empty() && files[i] == files[j])
                throw Failure(
                    kUsage,
                    "two of --html, --trace, --folded and " +
                        std::string(options.output.empty() && files[i] == report ? "the report" : "-o") +
                        " name the same file, " + name_of_output(files[i]) +
                        (options.output.empty() && files[i] == report
                             ? "; -o FILE writes the report elsewhere"
                             : ""));
}

// What the command line leaves to be found out: whether {} is meant, and which numbers of threads to try.
void complete(Options &options, const std::vector<std::string> &words, unsigned processors) {
    const bool wanted = !options.sweep.empty();
    options.telling.braces = wanted && has_braces(words);
    if (options.rate != nullptr && !wanted && !options.telling.any())
        throw Failure(kUsage, "--rate compares runs, so it needs --sweep");
    if (wanted && !options.telling.any())
        throw Failure(kUsage, "--sweep needs a way to tell the program the number of threads: write {} in "
                              "its arguments, or give --threads-env NAME or --by-affinity");
    check_affinity(options, processors);
    if (!wanted && options.telling.any())
        options.sweep = default_sweep(processors);
}

std::string check_variable(const std::string &name) {
    if (name.empty() || name.find('=') != std::string::npos)
        throw Failure(kUsage, "--threads-env takes a variable name, not '" + name + "'");
    return name;
}

// --- files --------------------------------------------------------------------------------------------

// Opened before the runs.
class Files {
  public:
    explicit Files(const Options &options)
        : html_(options.html), trace_(options.trace), folded_(options.folded), report_(options.output) {}
    OutputFile &report() { return report_; }
    void write(const Report &report) {
        if (html_.wanted())
            html_.write(html_of(report));
        if (trace_.wanted())
            trace_.write(trace_of(report));
        if (folded_.wanted())
            folded_.write(folded_of(report));
    }

  private:
    OutputFile html_, trace_, folded_, report_;
};

// --- locks --------------------------------------------------------------------------------------------

void add_locks(const std::string &file) {
    check_file_name("--locks", file);
    struct stat status;
    if (::stat(file.c_str(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)))
        throw Failure(kFailed, file + " is a device, not a file that lists locks");
    const auto text = process::read_all(file);
    if (!text)
        throw Failure(kFailed, "cannot read " + file + ": " + std::strerror(errno));
    lock_table().add(*text, file);
}

// --- the end ------------------------------------------------------------------------------------------

// What began as this process's program ends as it did: by exit code, or by the same signal.
void end_as(int status) {
    if (WIFSIGNALED(status))
        throw Interrupted(WTERMSIG(status), "");
    if (WEXITSTATUS(status) != 0)
        throw Failure(WEXITSTATUS(status), "");
}

// The program's stdout is its own: the report goes to stderr, except for --json, which is for another program.
void print(const Options &options, const Report &report, OutputFile &file) {
    if (file.wanted()) {
        file.write(options.json ? json_of(report) : text_of(report));
        return;
    }
    if (options.json) {
        std::cout << json_of(report) << std::flush;
        if (!std::cout)
            throw Failure(kFailed, "cannot write to standard output");
        return;
    }
    fit_reports_to(STDERR_FILENO);
    std::cerr << text_of(report) << std::flush;
    const bool was_closed = (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY; // main.cpp
    if (!std::cerr && !was_closed)
        throw Failure(kFailed, "cannot write to standard error");
}

void stat_program(Options options, const std::vector<std::string> &words) {
    complete(options, words, this_machine().processors);
    Files files(options);
    Report report;
    int status = 0;
    {
        Examination examination(options, report);
        examination.run_program(words);
        status = examination.status();
    }
    print(options, report, files.report()); // first: a file may be gone later
    files.write(report);
    end_as(status);
}

void stat_process(const Options &options) {
    check_process_options(options);
    Files files(options);
    Report report;
    Examination(options, report).watch_process();
    print(options, report, files.report());
    files.write(report);
}

void stat_either(const Command &command, const Options &options,
                 const std::vector<std::string> &behind_mark) {
    const bool has_program = !command.words().empty() || behind_mark.size() > 1;
    check_files(options);
    if (options.pid == 0 && options.seconds)
        throw Failure(kUsage, "--seconds needs -p; a program is observed until it ends");
    if (options.pid == 0)
        stat_program(options, program_words(command, behind_mark));
    else if (has_program)
        throw Failure(kUsage, "-p PID and a program exclude each other");
    else
        stat_process(options);
}

void add_sweep_options(Command &command, Options &options) {
    command.value(
        "--sweep", "LIST",
        "Run with these numbers of threads, such as 1,2,4 or 1-4; {}\nin the arguments stands for the number",
        [&options](const std::string &text) { options.sweep = parse_sweep(text); });
    command.value("--threads-env", "NAME", "Pass the number in this variable, such as OMP_NUM_THREADS",
                  [&options](const std::string &name) { options.telling.variable = check_variable(name); });
    command.flag("--by-affinity", "Run on that many CPUs, for a program that counts CPUs",
                 options.telling.by_affinity);
    command.value("--rate", "REGEX",
                  "Read the speed from the program's output, if it runs for a fixed\ntime: the number in the "
                  "last match, or in its first group",
                  [&options](const std::string &regex) { options.rate = std::make_shared<Rate>(regex); });
    command.value("-n,--runs", "N",
                  "Bare runs of each number (1 to 1000; default: as many as\nfit into 12 seconds, 1 to 5; "
                  "without --sweep none)",
                  [&options](const std::string &text) { options.runs = whole_number("-n", text, 1, 1000); });
}

void add_options(Command &command, Options &options) {
    add_sweep_options(command, options);
    command.flag("--exact", "Count every wait for a lock, in one more run", options.exact);
    command.flag("--no-profile", "Do not profile CPU time", options.no_profile);
    command.flag("--no-follow", "Do not observe processes that the program starts",
                 [&options] { options.follow = false; });
    add_file(command, "--input", "What each run reads as its stdin", options.input);
    command.flag("--show-output", "Show what all runs print, not only the first", options.show_output);
    command.flag("--json", "Print one JSON object on stdout; the program's own stdout\ngoes to stderr",
                 options.json);
    add_file(command, "-o,--output",
             "Write the report (text, or with --json the object) to FILE; -:\n"
             "stdout, and the program's own stdout goes to stderr",
             options.output);
    command.value("--timeout", "SECONDS", "Kill a run that takes longer, and give up",
                  [&options](const std::string &text) {
                      options.time_limit = parse_seconds("--timeout", text);
                      options.time_limit_text = text;
                  });
    add_file(command, "--html", "Also write an HTML page with plots to FILE", options.html);
    add_file(command, "--trace", "Also write a trace of the threads, for ui.perfetto.dev", options.trace);
    add_file(command, "--folded", "Also write folded stacks, for flame graphs", options.folded);
    command.value("--locks", "FILE", "Also know the locks that FILE lists, as share/thrum/locks.conf does",
                  [](const std::string &file) { add_locks(file); });
    command.value("-p,--pid", "PID", "Observe a running process",
                  [&options](const std::string &text) { options.pid = process::parse(text); });
    command.value(
        "--seconds", "S", "With -p: observe for this long (default: 10)",
        [&options](const std::string &text) { options.seconds = parse_seconds("--seconds", text); });
}

} // namespace

void add_stat(CommandLine &line, const std::vector<std::string> &behind_mark) {
    auto options = std::make_shared<Options>();
    Command command =
        line.add({"stat", "Tell whether a program is slow because of its threads, and why",
                  "thrum stat [OPTIONS] [--] PROG [ARGS...]\n"
                  "       thrum stat [OPTIONS] -p PID",
                  "The report goes to stderr. Ctrl-C ends the program and prints what was seen so far;\n"
                  "a second Ctrl-C kills it, or ends everything at once. With -p it ends the\n"
                  "observation, and the exit code is 0. Exit code: the program's, or 1 something cannot\n"
                  "be read or written, 2 wrong command line, 125 refused (--exact), 126 not executable,\n"
                  "127 not found. More in thrum-stat(1)."});
    command.takes_program();
    add_options(command, *options);
    command.then([command, options, behind_mark] { stat_either(command, *options, behind_mark); });
}

} // namespace thrum
