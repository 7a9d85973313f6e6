// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands of `thrum` share: how each is added to the command line (main.cpp calls the
// add_* functions), and how each gives up (failure.hpp).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "failure.hpp"

namespace thrum {

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
