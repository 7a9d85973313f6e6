// SPDX-License-Identifier: Apache-2.0
//
// The child processes that a benchmark measures.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "common.hpp"
#include "tools/clock.hpp"
#include "tools/text.hpp"
#include "tools/words.hpp"

extern char **environ;

namespace bench {

Environment::Environment() {
    for (char **variable = environ; *variable != nullptr; variable++)
        if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0 && std::strncmp(*variable, "THRUM_", 6) != 0)
            variables_.emplace_back(*variable);
}

Environment &Environment::set(const std::string &name, const std::string &value) {
    variables_.push_back(name + "=" + value);
    return *this;
}

namespace {

std::string read_to_end(int descriptor) {
    std::string text;
    char part[4096];
    ssize_t length;
    while ((length = read(descriptor, part, sizeof part)) > 0 || (length < 0 && errno == EINTR))
        text.append(part, length > 0 ? static_cast<std::size_t>(length) : 0);
    return text;
}

// posix_spawn's list of what the child does with its standard output; freed with the object.
class OutputTo {
  public:
    explicit OutputTo(int pipe_end) {
        posix_spawn_file_actions_init(&actions_);
        if (pipe_end >= 0)
            posix_spawn_file_actions_adddup2(&actions_, pipe_end, STDOUT_FILENO);
        else
            posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    ~OutputTo() { posix_spawn_file_actions_destroy(&actions_); }
    OutputTo(const OutputTo &) = delete;
    OutputTo &operator=(const OutputTo &) = delete;
    const posix_spawn_file_actions_t *actions() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_;
};

} // namespace

Ended run(const std::vector<std::string> &command, const Environment &environment, bool read_output) {
    int ends[2] = {-1, -1};
    if (read_output && pipe2(ends, O_CLOEXEC) != 0)
        throw Failure(std::string("cannot create a pipe: ") + std::strerror(errno));
    const OutputTo output(ends[1]);
    const std::vector<char *> words = thrum::pointers(command),
                              variables = thrum::pointers(environment.variables());
    Ended ended{};
    pid_t child = 0;
    rusage usage{};

    const double start = thrum::seconds_now();
    const int error =
        posix_spawn(&child, words[0], output.actions(), nullptr, words.data(), variables.data());
    if (read_output)
        close(ends[1]);
    if (error == 0 && read_output)
        ended.output = read_to_end(ends[0]);
    while (error == 0 && wait4(child, &ended.status, 0, &usage) < 0 && errno == EINTR) {
    }
    ended.wall_us = (thrum::seconds_now() - start) * 1e6;

    if (read_output)
        close(ends[0]);
    if (error != 0)
        throw Failure("cannot start " + command[0] + ": " + std::strerror(error));
    ended.cpu_us = (thrum::seconds_of(usage.ru_utime) + thrum::seconds_of(usage.ru_stime)) * 1e6;
    return ended;
}

Ended run_well(const std::vector<std::string> &command, const Environment &environment, bool read_output) {
    Ended ended = run(command, environment, read_output);
    if (ended.status != 0) {
        const bool is_own = command.size() > 1 && command[1] == kWork;
        throw Failure((is_own ? "a measuring process" : thrum::shell_line(command)) +
                      " failed (wait status " + std::to_string(ended.status) + ")");
    }
    return ended;
}

std::array<Environment, 2> without_and_with(const std::string &library) {
    std::array<Environment, 2> both;
    both[kCached].preload(library);
    return both;
}

std::string word_of(double number) {
    std::ostringstream word;
    word.precision(12);
    word << number;
    return word.str();
}

std::vector<std::string> own_work(const std::vector<std::string> &words) {
    std::vector<std::string> command = {own_path(), kWork};
    command.insert(command.end(), words.begin(), words.end());
    return command;
}

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof path))
        throw Failure("cannot find out where this program is");
    return std::string(path, static_cast<std::size_t>(length));
}

std::string beside(const std::string &relative) {
    const std::string own = own_path();
    return own.substr(0, own.rfind('/') + 1) + relative;
}

std::string on_path(const std::string &program) {
    const char *path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string candidate = folder + "/" + program;
        if (!folder.empty() && access(candidate.c_str(), X_OK) == 0)
            return candidate;
    }
    return "";
}

} // namespace bench
