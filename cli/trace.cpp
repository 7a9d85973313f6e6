// SPDX-License-Identifier: Apache-2.0
//
// `thrum trace [-o OUT.json] [--] PROG [ARGS...]`: runs a program with THRUM_TRACE, so that libthrum in it writes down what
// its threads did, and turns that into what Perfetto shows. `thrum trace --convert RAW [-o OUT.json]` does the second
// part alone.
//
// Each process of the program's, as those that it forks, writes a file of its own into a folder beside OUT.json; all
// of them are in the result.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
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
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "command.hpp"
#include "descriptor.hpp"
#include "program.hpp"
#include "text.hpp"
#include "trace_file.hpp"
#include "trace_json.hpp"

namespace thrum {

namespace {

struct Options {
    std::string out = "trace.json";
    std::string raw; // to be converted; empty: a program is run
    unsigned long events = 0;
};

constexpr const char *kStandardOutput = "-";

// --- the result --------------------------------------------------------------------------------------

class Output {
  public:
    // Opened before the program runs, which may take long; what is there already stays until there is something new.
    // "-" is standard output. One that another trace is being written to is refused: one of the two would be lost.
    explicit Output(const std::string &path)
        : path_(path), is_new_(path != kStandardOutput && !std::filesystem::exists(path)),
          file_(path == kStandardOutput ? fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w")
                                        : std::fopen(path.c_str(), "ae")) {
        if (file_ == nullptr)
            fail();
        struct stat status;
        const bool is_file = fstat(fileno(file_), &status) == 0 && S_ISREG(status.st_mode);
        if (path != kStandardOutput && is_file && flock(fileno(file_), LOCK_EX | LOCK_NB) != 0 &&
            errno == EWOULDBLOCK) {
            std::fclose(file_);
            throw Failure(kFailed, "another process is writing a trace to " + path +
                                       "; choose another file with -o FILE");
        }
    }
    ~Output() {
        if (file_ != nullptr)
            std::fclose(file_);
        if (is_new_ && !written_)
            std::remove(path_.c_str());
    }
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    TraceSummary write(const std::vector<TraceSection> &sections) {
        const bool is_cut = path_ == kStandardOutput || ftruncate(fileno(file_), 0) == 0;
        if (!is_cut && errno != EINVAL) // a pipe has nothing to be cut
            fail();
        const TraceSummary summary = write_trace_json(sections, file_);
        const bool failed = std::ferror(file_) != 0;
        written_ = std::fclose(std::exchange(file_, nullptr)) == 0 && !failed;
        if (!written_)
            fail();
        return summary;
    }

  private:
    [[noreturn]] void fail() const {
        throw Failure(kFailed, "cannot write " + path_ + ": " + std::strerror(errno));
    }

    std::string path_;
    bool is_new_;
    std::FILE *file_;
    bool written_ = false;
};

void report(const std::string &path, const TraceSummary &summary) {
    std::cerr << "thrum trace: " << (path == kStandardOutput ? "standard output" : path) << " has "
              << counted(static_cast<double>(summary.threads), "thread");
    if (summary.tasklets != 0)
        std::cerr << " and " << counted(static_cast<double>(summary.tasklets), "tasklet");
    std::cerr << " in " << counted(static_cast<double>(summary.runs), "run") << " on "
              << counted(static_cast<double>(summary.workers), "worker");
    if (summary.lost != 0)
        std::cerr << "; the " << counted(static_cast<double>(summary.lost), "oldest event")
                  << " had no room (--events)";
    std::cerr << "; open it at https://ui.perfetto.dev\n";
}

// --- running the program -----------------------------------------------------------------------------

// Where its processes write to; gone with what is in it at the end.
class Folder {
  public:
    explicit Folder(const std::string &out) {
        const char *temporary = std::getenv("TMPDIR");
        const std::string beside =
            out != kStandardOutput
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
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto &entry : std::filesystem::directory_iterator(path_))
            names.push_back(entry.path().string());
        std::sort(names.begin(), names.end());
        return names;
    }

  private:
    std::string path_;
};

// Ctrl-C is for the program; what is written down when that ends is worth having.
class Deaf {
  public:
    Deaf() {
        for (std::size_t i = 0; i < kCount; i++)
            sigaction(kSignals[i], &ignore_, &before_[i]);
    }
    ~Deaf() { restore(); }
    Deaf(const Deaf &) = delete;
    Deaf &operator=(const Deaf &) = delete;
    void restore() const {
        for (std::size_t i = 0; i < kCount; i++)
            sigaction(kSignals[i], &before_[i], nullptr);
    }

  private:
    static constexpr int kSignals[] = {SIGINT, SIGQUIT};
    static constexpr std::size_t kCount = 2;
    struct sigaction ignore_ = make_ignore(), before_[kCount];

    static struct sigaction make_ignore() {
        struct sigaction action = {};
        action.sa_handler = SIG_IGN;
        return action;
    }
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

// The status as from waitpid. Throws Failure where the program cannot be executed. `has_output`: standard output is for the
// trace.
int run_program(const std::string &path, const std::vector<std::string> &words, bool has_output) {
    const Deaf deaf;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Failure(kFailed, std::string("cannot create a pipe: ") + std::strerror(errno));
    const Descriptor trouble(ends[0]);
    Descriptor other_end(ends[1]);
    const pid_t pid = fork();
    if (pid < 0)
        throw Failure(kFailed, std::string("cannot create a process: ") + std::strerror(errno));
    if (pid == 0) {
        deaf.restore();
        be_program(path, words, other_end.get(), has_output);
    }
    other_end = Descriptor();
    const std::string why_not = read_to_end(trouble.get());
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            throw Failure(kFailed, std::string("cannot wait for the program: ") + std::strerror(errno));
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

// Of those processes that have written something; one that outlives the program may be at it.
std::vector<TraceSection> read_all(const std::vector<std::string> &files) {
    std::vector<TraceSection> sections;
    for (const std::string &file : files)
        try {
            if (std::filesystem::file_size(file) != 0)
                for (TraceSection &section : read_trace(file))
                    sections.push_back(std::move(section));
        } catch (const Failure &failure) {
            std::cerr << "thrum trace: left out: " << failure.what() << '\n';
        }
    return sections;
}

Failure nothing_to_show(const std::string &program, const std::vector<std::string> &files, int status) {
    const int code = code_of(status) != 0 ? code_of(status) : static_cast<int>(kFailed);
    if (files.empty())
        return {code, program + " did not use libthrum: it is not linked with it, or spawned no thread; it " +
                          end_of_program(status)};
    return {code,
            program + " wrote no trace (thrum_fini() or exit() writes it); it " + end_of_program(status)};
}

void trace(const Options &options, const std::vector<std::string> &words) {
    const std::string path = find_program(words.front());
    Output output(options.out);
    const Folder folder(options.out);
    setenv("THRUM_TRACE", folder.pattern().c_str(), 1);
    if (options.events != 0)
        setenv("THRUM_TRACE_EVENTS", std::to_string(options.events).c_str(), 1);
    const int status = run_program(path, words, options.out == kStandardOutput);
    const std::vector<std::string> files = folder.files();
    const std::vector<TraceSection> sections = read_all(files);
    if (sections.empty() && is_from_keyboard(status))
        throw Interrupted(WTERMSIG(status), nothing_to_show(words.front(), files, status).what());
    if (sections.empty())
        throw nothing_to_show(words.front(), files, status);
    report(options.out, output.write(sections));
    if (is_from_keyboard(status))
        throw Interrupted(WTERMSIG(status), "");
    if (code_of(status) != 0)
        throw Failure(code_of(status), "");
}

void convert(const Options &options) {
    const std::vector<TraceSection> sections = read_trace(options.raw);
    report(options.out, Output(options.out).write(sections));
}

void trace_or_convert(const Command &command, const Options &options,
                      const std::vector<std::string> &behind_mark) {
    const bool has_program = !command.words().empty() || behind_mark.size() > 1;
    if (options.raw.empty())
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
                  "       thrum trace [OPTIONS] --convert RAW",
                  "Exit code: the program's, or 128 + N if signal N ended it (after Ctrl-C it dies of "
                  "SIGINT\nas the program does); 1 no trace, or it cannot be written, 2 wrong command line, "
                  "126\nnot executable, 127 not found. More in thrum-trace(1)."});
    command.takes_program();
    command.value("-o,--output", "FILE",
                  "Write to FILE, for https://ui.perfetto.dev (default: trace.json);\n-: to standard output",
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
    command.value("--convert", "RAW", "Convert RAW, which a program wrote for THRUM_TRACE; run nothing",
                  [options](const std::string &name) {
                      check_file_name("--convert", name);
                      options->raw = name;
                  });
    command.then([command, options, behind_mark] { trace_or_convert(command, *options, behind_mark); });
}

} // namespace thrum
