// SPDX-License-Identifier: Apache-2.0
#include "spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "tools/words.hpp"

extern char **environ;

namespace {

bool is_ours(const char *entry) {
    return std::strncmp(entry, "LD_PRELOAD=", 11) == 0 || std::strncmp(entry, "THRUM_", 6) == 0;
}

} // namespace

void fail(const char *what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::vector<std::string> environment_of(const World &world) {
    std::vector<std::string> entries;
    for (char **entry = environ; *entry != nullptr; entry++) {
        const std::string name(*entry, std::strcspn(*entry, "="));
        if (!is_ours(*entry) && world.environment.count(name) == 0)
            entries.emplace_back(*entry);
    }
    for (const auto &[name, value] : world.environment)
        entries.push_back(name + "=" + value);
    return entries;
}

int open_other_end(int terminal) {
    char name[64];
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0 ||
        ptsname_r(terminal, name, sizeof name) != 0)
        fail("posix_openpt");
    const int fd = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        fail(name);
    return fd;
}

termios settings_of(int terminal) {
    termios settings;
    if (tcgetattr(terminal, &settings) != 0)
        fail("tcgetattr");
    return settings;
}

namespace {

struct Pipe {
    int read_end = -1, write_end = -1;
    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            fail("pipe2");
        read_end = ends[0];
        write_end = ends[1];
    }
};

// In the place of a pipe: what is written comes out of the other end as it is.
struct Terminal {
    int read_end, write_end;
    Terminal() : read_end(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
        write_end = open_other_end(read_end);
        termios settings = settings_of(write_end);
        cfmakeraw(&settings);
        tcsetattr(write_end, TCSANOW, &settings);
    }
};

// In the child: nothing but system calls.
void prepare_child(const World &world, int in, int out, int err) {
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    // The tests themselves may be without (TSan needs that), what they run is as a user's.
    personality(static_cast<unsigned long>(personality(0xffffffff)) &
                ~static_cast<unsigned long>(ADDR_NO_RANDOMIZE));
    for (const int number :
         {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) // a shell ignores some in the background, nohup another
        signal(number, SIG_DFL);
    if (world.ignore_and_block) {
        signal(SIGUSR1, SIG_IGN);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        sigprocmask(SIG_BLOCK, &set, nullptr);
    }
    if (world.user != 0 && (setresgid(world.user, world.user, world.user) != 0 ||
                            setresuid(world.user, world.user, world.user) != 0))
        _exit(96);
}

pid_t start(const Words &words, const World &world, int in, int out, int err) {
    const std::vector<std::string> environment = environment_of(world);
    const std::vector<char *> arguments = thrum::pointers(words), variables = thrum::pointers(environment);
    const pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        prepare_child(world, in, out, err);
        execve(arguments[0], arguments.data(), variables.data());
        _exit(95);
    }
    return pid;
}

int wait_for(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            fail("waitpid");
    return status;
}

// Reads both until both are at their end.
void read_both(int out, int err, std::string &out_text, std::string &err_text) {
    pollfd streams[] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    std::string *texts[] = {&out_text, &err_text};
    for (int open = 2; open > 0;) {
        poll(streams, 2, -1);
        for (int i = 0; i < 2; i++) {
            if (streams[i].revents == 0)
                continue;
            char block[4096];
            const ssize_t got = read(streams[i].fd, block, sizeof block);
            if (got > 0) {
                texts[i]->append(block, static_cast<std::size_t>(got));
                continue;
            }
            streams[i].fd = -1;
            open--;
        }
    }
}

} // namespace

int Ended::code() const {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int Ended::signal() const {
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

namespace {

template <typename Err>
Ended spawn_with(const Words &words, const World &world) {
    Pipe in, out; // the input is far less than a pipe holds
    Err err;
    if (write(in.write_end, world.input.data(), world.input.size()) < 0)
        fail("write");
    close(in.write_end);
    Ended ended;
    ended.pid = start(words, world, in.read_end, out.write_end, err.write_end);
    for (const int fd : {in.read_end, out.write_end, err.write_end})
        close(fd);
    read_both(out.read_end, err.read_end, ended.out, ended.err);
    close(out.read_end);
    close(err.read_end);
    ended.status = wait_for(ended.pid);
    return ended;
}

} // namespace

Ended spawn(const Words &words, const World &world) {
    return world.terminal ? spawn_with<Terminal>(words, world) : spawn_with<Pipe>(words, world);
}

Running::Running(const Words &words, const World &world) {
    Pipe in, out;
    pid_ = start(words, world, in.read_end, out.write_end, 2);
    close(in.read_end);
    close(out.write_end);
    input_ = in.write_end;
    output_ = out.read_end;
    char ready = 0;
    while (ready != '\n' && read(output_, &ready, 1) == 1)
        continue;
    if (ready != '\n')
        throw std::runtime_error("the program ended before it was ready: " + words.front());
}

int Running::finish() {
    if (!status_) {
        close(input_);
        status_ = wait_for(pid_);
        close(output_);
    }
    return *status_;
}

Running::~Running() {
    finish();
}
