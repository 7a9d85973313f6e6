// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands of `thrum` share: how each is added to the command line (main.cpp calls the
// add_* functions), and how each gives up. A subcommand that cannot go on throws Failure; main()
// prints it as one line, "thrum SUBCOMMAND: what", and ends with its exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace thrum {

// Exit codes of `thrum` itself. Those of `thrum run` are env(1)'s, so that a script can tell a
// failure of thrum from one of the program; so are those of `thrum stat`. `thrum compare` adds 128 + signal where it is
// interrupted, `thrum trace` where that ends the program.
enum ExitCode : int {
    kFailed =
        1,      // counters, ps: the process cannot be read; compare: the program failed; trace: there is none
    kUsage = 2, // the command line is wrong
    kRefused = 125, // run, compare: thrum can do nothing for this program
    kNotExecutable = 126,
    kNotFound = 127,
};

// Without a line: what there is to say has been said, as by a program that fails.
class Failure : public std::runtime_error {
  public:
    Failure(int code, const std::string &line) : std::runtime_error(line), code_(code) {}
    int code() const { return code_; }

  private:
    int code_;
};

// CLI11's help with a usage line of our own, because its own cannot say "-- PROG ARGS...".
class Help : public CLI::Formatter {
  public:
    explicit Help(std::string usage) : usage_(std::move(usage)) { column_width(20); }
    std::string make_usage(const CLI::App *, std::string) const override { return "Usage: " + usage_ + "\n"; }

  private:
    std::string usage_;
};

// `behind_mark`: the words from the first "--" on, that word included; CLI11 is shown those before it only,
// because it would give the words behind a "--" in a subcommand to the main command.
void add_run(CLI::App &app, const std::vector<std::string> &behind_mark);
void add_compare(CLI::App &app, const std::vector<std::string> &behind_mark);
void add_stat(CLI::App &app, const std::vector<std::string> &behind_mark);
void add_counters(CLI::App &app);
void add_ps(CLI::App &app);
void add_trace(CLI::App &app, const std::vector<std::string> &behind_mark);

} // namespace thrum
