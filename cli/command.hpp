// SPDX-License-Identifier: Apache-2.0
//
// What the subcommands of `thrum` share: how each is added to the command line (main.cpp calls the
// add_* functions), and how each gives up (failure.hpp).
#pragma once

#include <string>
#include <vector>

#include "tools/command_line.hpp"
#include "tools/failure.hpp"

namespace thrum {

// `behind_mark`: the words from the first "--" on, that word included; CLI11 is shown those before it only,
// because it would give the words behind a "--" in a subcommand to the main command.
void add_run(CommandLine &line, const std::vector<std::string> &behind_mark);
void add_compare(CommandLine &line, const std::vector<std::string> &behind_mark);
void add_stat(CommandLine &line, const std::vector<std::string> &behind_mark);
void add_counters(CommandLine &line);
void add_ps(CommandLine &line);
void add_trace(CommandLine &line, const std::vector<std::string> &behind_mark);

} // namespace thrum
