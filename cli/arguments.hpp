// SPDX-License-Identifier: Apache-2.0
//
// What the command lines of run.cpp and compare.cpp have in common: a program with its arguments, and the options
// that tune the cache, each of which sets its environment variable.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace thrum {

// The program and its arguments. CLI11 hands back what it does not know from the words before "--":
// unknown options, then everything from the program on. Only behind "--" may a program's name begin with a dash.
// Throws Failure (2) where there is none.
std::vector<std::string> program_words(const CLI::App &command, const std::vector<std::string> &behind_mark);

// Digits only, within these bounds: strtoul would take " +7", "-1" and "0x7" as well. Throws Failure (2).
unsigned long whole_number(const std::string &option, const std::string &text, unsigned long least,
                           unsigned long most);

// --mode, --standby, --min-rest, --max-idle, --max-age, --thread-seconds, --trim-after, --pressure, --wipe-stack.
void add_cache_options(CLI::App &command);

// The parts of a list, without empty ones.
std::vector<std::string> split(const std::string &list, const char *separators);

} // namespace thrum
