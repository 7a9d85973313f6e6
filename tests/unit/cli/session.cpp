// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

#include "tools/words.hpp"

namespace {

// The end that a program has. Lines and Ctrl-C are taken as usual.
int open_for_program(int terminal) {
    const int fd = open_other_end(terminal);
    termios settings = settings_of(fd);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (tcsetattr(fd, TCSANOW, &settings) != 0)
        fail("tcsetattr");
    return fd;
}

// In the child: nothing but system calls.
[[noreturn]] void exec_program(int fd, char *const *words, char *const *variables) {
    if (setsid() < 0 || ioctl(fd, TIOCSCTTY, 0) != 0)
        _exit(96);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        signal(number, SIG_DFL);
    execve(words[0], words, variables);
    _exit(95);
}

} // namespace

Session::Session(const Words &words, const World &world, unsigned short columns)
    : terminal_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    const int other_end = open_for_program(terminal_);
    if (columns > 0)
        resize(columns);
    const std::vector<std::string> environment = environment_of(world);
    const std::vector<char *> arguments = thrum::pointers(words), variables = thrum::pointers(environment);
    pid_ = fork();
    if (pid_ < 0)
        fail("fork");
    if (pid_ == 0)
        exec_program(other_end, arguments.data(), variables.data());
    close(other_end);
}

Session::~Session() {
    if (pid_ > 0) {
        kill(-pid_, SIGKILL);
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
}

void Session::type(const std::string &bytes) {
    if (write(terminal_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        fail("write");
}

void Session::resize(unsigned short columns) {
    const winsize size = {40, columns, 0, 0};
    if (ioctl(terminal_, TIOCSWINSZ, &size) != 0)
        fail("TIOCSWINSZ");
}

// The end is EIO: no process has the terminal open any more.
bool Session::read_more() {
    char block[4096];
    ssize_t got;
    while ((got = read(terminal_, block, sizeof block)) < 0 && errno == EINTR)
        continue;
    if (got > 0)
        screen_.append(block, static_cast<std::size_t>(got));
    return got > 0;
}

bool Session::until(const std::string &text) {
    for (;;) {
        const std::size_t at = screen_.find(text, seen_);
        if (at != std::string::npos) {
            seen_ = at + text.size();
            return true;
        }
        if (!read_more())
            return false;
    }
}

Ended Session::finish() {
    while (read_more())
        continue;
    Ended ended;
    ended.pid = pid_;
    ended.out = screen_;
    while (waitpid(pid_, &ended.status, 0) < 0)
        if (errno != EINTR)
            fail("waitpid");
    pid_ = -1;
    return ended;
}
