// SPDX-License-Identifier: Apache-2.0
//
// `thrum trace [-o OUT.json] [--] PROG [ARGS...]`: runs a program with THRUM_TRACE, so that libthrum in it writes down what
// its threads did, and turns that into what Perfetto shows. `thrum trace --convert RAW [-o OUT.json]` does the second
// part alone, and `thrum trace -p PID [-o OUT.json]` reads what a process keeps out of its memory.
//
// Each process of the program's, as those that it forks, writes a file of its own into a folder beside OUT.json; all
// of them are in the result. One that a signal ends writes nothing, so meanwhile its memory is read ten times a second,
// and once more before a signal is handed on.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "interrupts.hpp"
#include "process.hpp"
#include "program.hpp"
#include "tools/clock.hpp"
#include "tools/descriptor.hpp"
#include "tools/output_file.hpp"
#include "tools/text.hpp"
#include "trace_file.hpp"
#include "trace_json.hpp"
#include "trace_watch.hpp"

namespace thrum {

namespace {

struct Options {
    std::string out = "trace.json";
    std::string raw;    // to be converted; empty: a program is run
    pid_t pid = 0;      // to be read; 0: a program is run
    double seconds = 0; // with pid: from now on, for so long; 0: what was kept until now
    unsigned long events = 0;
};

// --- the result --------------------------------------------------------------------------------------

TraceSummary write_sections(const std::vector<TraceSection> &sections, OutputFile &output) {
    std::FILE *file = fdopen(fcntl(output.begin(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1), "w");
    if (file == nullptr)
        output.fail();
    const TraceSummary summary = write_trace_json(sections, file);
    const bool failed = std::ferror(file) != 0;
    if (std::fclose(file) != 0 || failed)
        output.fail();
    return summary;
}

void report(const std::string &path, const TraceSummary &summary) {
    std::string text = "thrum trace: " + name_of_output(path) + " has " +
                       counted(static_cast<double>(summary.threads), "thread");
    if (summary.tasklets != 0)
        text += " and " + counted(static_cast<double>(summary.tasklets), "tasklet");
    text += " in " + counted(static_cast<double>(summary.runs), "run") + " on " +
            counted(static_cast<double>(summary.workers), "worker");
    if (summary.lost != 0)
        text +=
            "; the " + counted(static_cast<double>(summary.lost), "oldest event") + " had no room (--events)";
    std::cerr << message_for(STDERR_FILENO, text + "; open it at https://ui.perfetto.dev");
}

// --- running the program -----------------------------------------------------------------------------

// Where its processes write to; gone with what is in it at the end.
class Folder {
  public:
    explicit Folder(const std::string &out) {
        const char *temporary = std::getenv("TMPDIR");
        const std::string beside =
            out != OutputFile::kStandard
                ? out
                : std::string(temporary != nullptr && *temporary != '\0' ? temporary : "/tmp") + "/-";
        path_ = std::filesystem::absolute(beside).parent_path().string() + "/.thrum-trace.XXXXXX";
        if (path_.find("%p") != std::string::npos)
            throw Failure(kUsage, "the folder of '" + beside + "' must not contain %p");
        if (mkdtemp(path_.data()) == nullptr)
            throw Failure(kFailed, "cannot create a folder beside " + beside + ": " + std::strerror(errno));
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;

    // For THRUM_TRACE: libthrum puts the number of the process in the place of %p.
    std::string pattern() const { return path_ + "/%p"; }
    static pid_t process_of(const std::string &file) {
        return static_cast<pid_t>(std::atoi(std::filesystem::path(file).filename().c_str()));
    }
    // "git clean" removes it with what is in it.
    bool is_there() const {
        std::error_code error;
        return std::filesystem::exists(path_, error);
    }
    // None if it is not there.
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        std::error_code error;
        for (std::filesystem::directory_iterator at(path_, error), end; !error && at != end;
             at.increment(error))
            names.push_back(at->path().string());
        std::sort(names.begin(), names.end());
        return names;
    }

  private:
    std::string path_;
};

// What the processes that have a file in the folder have done so far.
class Watches {
  public:
    static constexpr double kPeriod = 0.1; // seconds

    explicit Watches(const Folder &folder) : folder_(folder) {}

    void look() {
        for (const std::string &file : folder_.files()) {
            std::error_code ignored;
            const pid_t pid = Folder::process_of(file);
            if (pid > 0 && std::filesystem::file_size(file, ignored) == 0) // else it has written all itself
                watches_.try_emplace(pid, pid).first->second.look();
        }
    }
    // Nothing where nothing was seen.
    const TraceWatch *of(pid_t pid) const {
        const auto at = watches_.find(pid);
        return at == watches_.end() || !at->second.has_any() ? nullptr : &at->second;
    }

  private:
    const Folder &folder_;
    std::map<pid_t, TraceWatch> watches_;
};

// What kept the program from being executed is for the parent to say: the code, and the line.
[[noreturn]] void be_program(const std::string &path, const std::vector<std::string> &words, int trouble,
                             bool has_output) {
    if (has_output) // what the program prints is not to stand in the middle of the trace
        dup2(STDERR_FILENO, STDOUT_FILENO);
    try {
        become_program(path, words);
    } catch (const Failure &failure) {
        const std::string line = failure.what();
        const int code = failure.code();
        if (write(trouble, &code, sizeof code) != static_cast<ssize_t>(sizeof code) ||
            write(trouble, line.data(), line.size()) < 0)
            _exit(kFailed);
        _exit(code);
    }
}

std::string read_to_end(int fd) {
    std::string text;
    char block[512];
    ssize_t got;
    while ((got = read(fd, block, sizeof block)) > 0 || (got < 0 && errno == EINTR))
        text.append(block, got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

// Signals that would end this command are the program's: first what there is so far is read, for that may end it at once. Ctrl-C
// and Ctrl-\ it has from the terminal already.
int wait_for(pid_t pid, Watches &watches, Interrupts &interrupts) {
    int status = 0;
    for (double next = seconds_now() + Watches::kPeriod;;) {
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            return status;
        if (ended < 0 && errno != EINTR)
            throw Failure(kFailed, std::string("cannot wait for the program: ") + std::strerror(errno));
        const bool is_interrupted = interrupts.wait(std::max(0.0, next - seconds_now()));
        interrupts.suspend(0); // Ctrl-Z, which the program has as well
        if (!is_interrupted && seconds_now() < next)
            continue;
        watches.look();
        next = seconds_now() + Watches::kPeriod;
        if (is_interrupted && !interrupts.from_terminal())
            kill(pid, interrupts.latest());
    }
}

// The status as from waitpid. Throws Failure where the program cannot be executed. `has_output`: standard output is for the
// trace.
int run_program(const std::string &path, const std::vector<std::string> &words, bool has_output,
                Watches &watches, Interrupts &interrupts) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Failure(kFailed, std::string("cannot create a pipe: ") + std::strerror(errno));
    const Descriptor trouble(ends[0]);
    Descriptor other_end(ends[1]);
    const pid_t pid = fork();
    if (pid < 0)
        throw Failure(kFailed, std::string("cannot create a process: ") + std::strerror(errno));
    if (pid == 0) {
        interrupts.restore_in_child();
        be_program(path, words, other_end.get(), has_output);
    }
    other_end = Descriptor();
    const std::string why_not = read_to_end(trouble.get());
    const int status = wait_for(pid, watches, interrupts);
    int code = 0;
    if (why_not.size() >= sizeof code) {
        std::memcpy(&code, why_not.data(), sizeof code);
        throw Failure(code, why_not.substr(sizeof code));
    }
    return status;
}

int code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Ctrl-C or Ctrl-\ ended it: so this command dies of it too, so that a shell ends its loop.
bool is_from_keyboard(int status) {
    return WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT);
}

std::string end_of_program(int status) {
    return (WIFSIGNALED(status) ? "was ended by " : "ended with ") + how_it_ended(status);
}

// What a process has written; one that outlives the program may be at it, and one that was ended may have been.
bool take_written(const std::string &file, bool is_seen, std::vector<TraceSection> &sections) {
    try {
        std::error_code error;
        if (std::filesystem::file_size(file, error) == 0 || error)
            return false;
        for (TraceSection &section : read_trace(file))
            sections.push_back(std::move(section));
        return true;
    } catch (const Failure &failure) {
        if (!is_seen)
            std::cerr << message_for(STDERR_FILENO, std::string("thrum trace: left out: ") + failure.what());
    }
    return false;
}

// Of the others, what was seen of them.
std::vector<TraceSection> read_all(const std::vector<std::string> &files, const Watches &watches) {
    std::vector<TraceSection> sections;
    for (const std::string &file : files) {
        const pid_t pid = Folder::process_of(file);
        const TraceWatch *seen = watches.of(pid);
        if (take_written(file, seen != nullptr, sections) || seen == nullptr)
            continue;
        sections.push_back(seen->section());
        std::cerr << message_for(STDERR_FILENO,
                                 "thrum trace: process " + std::to_string(pid) +
                                     " wrote no trace, so this is what was seen in its memory, ten times a "
                                     "second, until it ended");
    }
    return sections;
}

Failure nothing_to_show(const std::string &program, const Folder &folder,
                        const std::vector<std::string> &files, int status) {
    const int code = code_of(status) != 0 ? code_of(status) : static_cast<int>(kFailed);
    if (!folder.is_there())
        return {code, program +
                          " removed the folder .thrum-trace.* that libthrum writes to, so there is no "
                          "trace; name a file in another folder with -o FILE; it " +
                          end_of_program(status)};
    if (files.empty())
        return {code, program + " did not use libthrum: it is not linked with it, or spawned no thread; it " +
                          end_of_program(status)};
    return {code,
            program + " wrote no trace (thrum_fini() or exit() writes it); it " + end_of_program(status)};
}

void trace(const Options &options, const std::vector<std::string> &words) {
    const std::string path = find_program(words.front());
    OutputFile output(options.out);
    const Folder folder(options.out);
    setenv("THRUM_TRACE", folder.pattern().c_str(), 1);
    if (options.events != 0)
        setenv("THRUM_TRACE_EVENTS", std::to_string(options.events).c_str(), 1);
    Watches watches(folder);
    Interrupts interrupts;
    const int status = run_program(path, words, options.out == OutputFile::kStandard, watches, interrupts);
    interrupts.release_second();
    const auto is_ours = [&interrupts, status] { // so this command ends as well
        return is_from_keyboard(status) || (WIFSIGNALED(status) && (WTERMSIG(status) == interrupts.caught() ||
                                                                    WTERMSIG(status) == interrupts.latest()));
    };
    const std::vector<std::string> files = folder.files();
    const std::vector<TraceSection> sections = read_all(files, watches);
    if (sections.empty() && is_ours())
        throw Interrupted(WTERMSIG(status), nothing_to_show(words.front(), folder, files, status).what());
    if (sections.empty())
        throw nothing_to_show(words.front(), folder, files, status);
    report(options.out, write_sections(sections, output));
    if (is_ours())
        throw Interrupted(WTERMSIG(status), "");
    if (code_of(status) != 0)
        throw Failure(code_of(status), "");
}

void convert(const Options &options) {
    const std::vector<TraceSection> sections = read_trace(options.raw);
    OutputFile output(options.out);
    report(options.out, write_sections(sections, output));
}

// --- a process that runs already ---------------------------------------------------------------------

Failure keeps_no_trace(pid_t pid, const TraceWatch &watch) {
    if (!watch.trouble().empty())
        return {kFailed, "process " + std::to_string(pid) + ": " + watch.trouble()};
    if (!process::find_in_libthrum(pid, INSPECT_IMAGE))
        return {kFailed, "process " + std::to_string(pid) + " does not use libthrum"};
    return {kFailed,
            "process " + std::to_string(pid) +
                " keeps no trace; start it with THRUM_TRACE=FILE in its environment, and -p can read "
                "at any time what it has kept"};
}

// Until Ctrl-C, the process's end or the end of its runtime.
void watch_for(double seconds, TraceWatch &watch) {
    Interrupts interrupts;
    const double end = seconds_now() + seconds;
    for (double now; (now = seconds_now()) < end;) {
        const bool is_interrupted = interrupts.wait(std::min(Watches::kPeriod, end - now));
        if (!watch.look() || is_interrupted)
            return;
        interrupts.suspend(0);
    }
}

void attach(const Options &options) {
    process::check_has_program(options.pid);
    OutputFile output(options.out);
    TraceWatch watch(options.pid);
    if (!watch.look())
        throw keeps_no_trace(options.pid, watch);
    if (options.seconds > 0) {
        watch.forget_what_was();
        watch_for(options.seconds, watch);
    } else {
        constexpr double kApart = 0.05; // seconds, by which the rate of its clock is known
        watch_for(kApart, watch);
    }
    if (!watch.has_any())
        throw Failure(kFailed,
                      "the threads of process " + std::to_string(options.pid) + " did nothing meanwhile");
    report(options.out, write_sections({watch.section()}, output));
}

void trace_or_convert(const Command &command, const Options &options,
                      const std::vector<std::string> &behind_mark) {
    const bool has_program = !command.words().empty() || behind_mark.size() > 1;
    if (options.seconds > 0 && options.pid == 0)
        throw Failure(kUsage, "--seconds needs -p; a program is observed until it ends");
    if (options.pid != 0 && (has_program || !options.raw.empty() || options.events != 0))
        throw Failure(kUsage,
                      "-p reads the events that a process keeps; it combines only with --seconds and -o");
    if (options.pid != 0)
        attach(options);
    else if (options.raw.empty())
        trace(options, program_words(command, behind_mark));
    else if (has_program)
        throw Failure(kUsage, "--convert FILE and a program exclude each other");
    else
        convert(options);
}

} // namespace

void add_trace(CommandLine &line, const std::vector<std::string> &behind_mark) {
    auto options = std::make_shared<Options>();
    Command command =
        line.add({"trace", "Run a program that uses libthrum, and show what its threads did",
                  "thrum trace [OPTIONS] [--] PROG [ARGS...]\n"
                  "       thrum trace [OPTIONS] -p PID\n"
                  "       thrum trace [OPTIONS] --convert RAW",
                  "Ctrl-C and SIGTERM are the program's; what was seen until it ended is written. Exit\n"
                  "code: the program's, or 128 + N if signal N ended it (after Ctrl-C, or a signal that\n"
                  "this command was sent, it dies as the program does); 0 with -p and --convert; 1 no\n"
                  "trace, or it cannot be written, 2 wrong command line, 126 not executable, 127 not\n"
                  "found. More in thrum-trace(1)."});
    command.takes_program();
    command.value("-o,--output", "FILE",
                  "Write to FILE, for https://ui.perfetto.dev (default: trace.json);\n-: stdout",
                  [options](const std::string &name) {
                      check_file_name("-o", name);
                      options->out = name;
                  });
    command.value(
        "--events", "N",
        "Keep the last N events of each worker (16 to 1000000000; default\n1000000) [THRUM_TRACE_EVENTS]",
        [options](const std::string &text) {
            options->events = whole_number("--events", text, 16, 1000000000);
        });
    command.value("-p,--pid", "PID",
                  "Read what a process that has THRUM_TRACE in its environment has kept\n"
                  "so far, while it continues; run nothing",
                  [options](const std::string &text) { options->pid = process::parse(text); });
    command.value(
        "--seconds", "S", "With -p: what it does in the next S seconds, or until Ctrl-C",
        [options](const std::string &text) { options->seconds = parse_seconds("--seconds", text); });
    command.value("--convert", "RAW", "Convert RAW, which a program wrote for THRUM_TRACE; run nothing",
                  [options](const std::string &name) {
                      check_file_name("--convert", name);
                      options->raw = name;
                  });
    command.then([command, options, behind_mark] { trace_or_convert(command, *options, behind_mark); });
}

} // namespace thrum
