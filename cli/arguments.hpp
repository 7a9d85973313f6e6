// SPDX-License-Identifier: Apache-2.0
//
// What the command lines of run.cpp, compare.cpp, stat.cpp and trace.cpp have in common: a program with its arguments, and, of
// the first two, the options that tune the cache, each of which sets its environment variable.
#pragma once

#include <string>
#include <vector>

namespace thrum {

class Command;

// The program and its arguments. CLI11 hands back what it does not know from the words before "--":
// unknown options, then everything from the program on. Only behind "--" may a program's name begin with a dash.
// Throws Failure (2) where there is none.
std::vector<std::string> program_words(const Command &command, const std::vector<std::string> &behind_mark);

// Digits only, within these bounds: strtoul would take " +7", "-1" and "0x7" as well. Throws Failure (2).
unsigned long whole_number(const std::string &option, const std::string &text, unsigned long least,
                           unsigned long most);

// "5", "0.5": from a millisecond to a day. Throws Failure (2).
double parse_seconds(const std::string &option, const std::string &text);

// Throws Failure (2) where it is not the name of a file at all.
void check_file_name(const std::string &option, const std::string &name);

// An option that takes the name of a file.
void add_file(Command &command, const std::string &option, const std::string &help, std::string &name);

// The variables of the cache in the environment, wherever they come from: throws Failure (2) for a value that the
// library would complain of, in the program's stderr, and put its default in place of.
void check_cache_environment();

// --min-rest, --max-idle, --max-age, --thread-seconds, --trim-after, --pressure, --wipe-stack.
void add_cache_options(Command &command);
// Is one of them on the command line?
bool has_cache_options(const Command &command);

// The parts of a list, without empty ones.
std::vector<std::string> split(const std::string &list, const char *separators);

} // namespace thrum
