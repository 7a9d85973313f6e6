// SPDX-License-Identifier: Apache-2.0
//
// How a subcommand of `thrum` gives up: it throws Failure, which main() prints as one line, "thrum SUBCOMMAND: what", and ends
// with its exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace thrum {

// Exit codes of `thrum` itself. Those of `thrum run` are env(1)'s, so that a script can tell a
// failure of thrum from one of the program; so are those of `thrum stat`. `thrum trace` adds 128 + signal where a signal ended
// the program. A command that is interrupted dies of that signal (Interrupted).
enum ExitCode : int {
    kFailed =
        1,      // counters, ps: the process cannot be read; compare: the program failed; trace: there is none
    kUsage = 2, // the command line is wrong
    kRefused = 125, // run, compare: thrum can do nothing for this program
    kNotExecutable = 126,
    kNotFound = 127,
};

// Without a line: the reason was printed already, as by a program that fails.
class Failure : public std::runtime_error {
  public:
    Failure(int code, const std::string &line) : std::runtime_error(line), code_(code) {}
    int code() const { return code_; }

  private:
    int code_;
};

// By a signal that was caught, or that ended the program which was run: main() prints the line, if there is one, and dies of
// the same signal. A shell ends its loop by that, and not by an exit code.
class Interrupted : public Failure {
  public:
    Interrupted(int signal, const std::string &line) : Failure(128 + signal, line), signal_(signal) {}
    int signal() const { return signal_; }

  private:
    int signal_;
};

} // namespace thrum
