// SPDX-License-Identifier: Apache-2.0
//
// Runs a program with its streams, environment and user as a test wants them, and says how it ended.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

using Words = std::vector<std::string>;

struct World {
    std::map<std::string, std::string>
        environment; // on top of the tests' own, without LD_PRELOAD and THRUM_*
    std::string input;
    bool terminal = false;         // the standard error is one
    uid_t user = 0;                // other than 0: become this user (and group) first; needs root
    bool ignore_and_block = false; // SIGUSR1 ignored and SIGUSR2 blocked, to see them inherited
};

// This environment, and nothing else out of the ordinary.
inline World with(std::map<std::string, std::string> environment) {
    World world;
    world.environment = std::move(environment);
    return world;
}

struct Ended {
    int status = 0; // as from waitpid
    pid_t pid = 0;
    std::string out, err;

    int code() const;   // -1 where a signal ended it
    int signal() const; // 0 where it exited
};

Ended spawn(const Words &words, const World &world = {});

// A program that runs while the test observes it; it ends when its stdin is closed, by finish() or the destructor.
// Ready when the program has printed a line.
class Running {
  public:
    explicit Running(const Words &words, const World &world = {});
    ~Running();
    Running(const Running &) = delete;
    Running &operator=(const Running &) = delete;

    pid_t pid() const { return pid_; }
    int finish(); // the status as from waitpid

  private:
    pid_t pid_ = 0;
    int input_ = -1, output_ = -1;
    std::optional<int> status_;
};

// --- what starting a program is made of, for session.cpp -----------------------------------------------

// Throws what errno says.
[[noreturn]] void fail(const char *what);

// As a program has it in such a world.
std::vector<std::string> environment_of(const World &world);

// Of a terminal that posix_openpt made: the end that a program has.
int open_other_end(int terminal);
termios settings_of(int terminal);
