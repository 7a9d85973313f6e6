// SPDX-License-Identifier: Apache-2.0
//
// See child.hpp.
#include "child.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tools/words.hpp"

namespace casestudy {

namespace {

double seconds(const timeval &time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The letter in /proc/PID/task/TID/stat, which stands behind the name in brackets; 0: the thread has gone.
char state_of(const std::string &path) {
    char text[512];
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *bracket = std::strrchr(text, ')');
    return bracket != nullptr && bracket[1] == ' ' ? bracket[2] : '\0';
}

} // namespace

// --- the process ------------------------------------------------------------------------------------------

Child::Child(const std::vector<std::string> &command, const bench::Environment &environment)
    : name_(command[0]) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw bench::Failure(std::string("cannot create a pipe: ") + std::strerror(errno));
    const std::vector<char *> words = thrum::pointers(command),
                              variables = thrum::pointers(environment.variables());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const int error = posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), variables.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
    if (error != 0) {
        close(output_);
        throw bench::Failure("cannot start " + name_ + ": " + std::strerror(error));
    }
}

Child::~Child() {
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close(output_);
}

bool Child::ready(int milliseconds) {
    pollfd look = {output_, POLLIN, 0};
    return read_.find('\n') != std::string::npos || poll(&look, 1, milliseconds) != 0;
}

std::string Child::line() {
    std::size_t end;
    while ((end = read_.find('\n')) == std::string::npos) {
        char part[512];
        const ssize_t length = read(output_, part, sizeof part);
        if (length == 0 || (length < 0 && errno != EINTR)) {
            wait(); // says what it died of
            throw bench::Failure(name_ + " has ended without a result");
        }
        read_.append(part, length > 0 ? static_cast<std::size_t>(length) : 0);
    }
    const std::string first = read_.substr(0, end);
    read_.erase(0, end + 1);
    return first;
}

void Child::wait() {
    int status = 0;
    rusage usage{};
    while (wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (status != 0)
        throw bench::Failure(
            name_ + (WIFSIGNALED(status) ? " has died of signal " + std::to_string(WTERMSIG(status))
                                         : " has failed with status " + std::to_string(WEXITSTATUS(status))));
    cpu_seconds_ = seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// --- its threads ------------------------------------------------------------------------------------------

void States::look(pid_t pid, double weight) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/task";
    DIR *threads = opendir(folder.c_str());
    if (threads == nullptr)
        return;
    while (const dirent *thread = readdir(threads)) {
        if (thread->d_name[0] == '.')
            continue;
        const char state = state_of(folder + "/" + thread->d_name + "/stat");
        running_ += state == 'R' ? weight : 0;
        sleeping_ += state == 'S' ? weight : 0;
        disk_ += state == 'D' ? weight : 0;
    }
    closedir(threads);
    looks_ += weight;
}

void States::watch(pid_t pid, Child &until) {
    using Clock = std::chrono::steady_clock;
    using Milliseconds = std::chrono::duration<double, std::milli>;
    Clock::time_point last = Clock::now();
    int pause = 1; // ms
    while (!until.ready(pause)) {
        const Clock::time_point before = Clock::now();
        look(pid, Milliseconds(before - last).count());
        last = before;
        const double took = Milliseconds(Clock::now() - before).count();
        pause = std::min(std::max(1, static_cast<int>(took * 19)), 50);
    }
}

} // namespace casestudy
