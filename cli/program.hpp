// SPDX-License-Identifier: Apache-2.0
//
// What `thrum run`, `thrum compare` and `thrum stat` must know about a program before they start it: where it is, and whether
// a preloaded library reaches it. Scripts are followed to the program that the kernel will really start.
#pragma once

#include <string>
#include <vector>

#include "tools/failure.hpp"

namespace thrum {

// The path of the program that execvp(3) would start. Throws Failure: 127 where there is none, 126 where
// what is there cannot be executed.
std::string find_program(const std::string &name);

struct Inspection {
    std::string refusal; // why LD_PRELOAD cannot reach it, in one line; empty: it can
    std::string remedy;  // what to do about it, where it was to run with the cache
    std::string refusal_and_remedy() const { return refusal + "; " + remedy; }
    // What it is built with that wants the thread functions for itself, as "AddressSanitizer (libasan.so.8)":
    // it runs, but without the cache. Empty: nothing.
    std::string exclusive;
};

// Throws Failure (127) where the interpreter of a script or the loader of a program does not exist. A
// file that cannot be read or understood is left to the kernel: nothing is found wrong with it.
Inspection inspect_program(const std::string &path);

// Starting it as execvp(3) does: a file that the kernel does not know (ENOEXEC) is a script for the shell.
constexpr const char *kShell = "/bin/sh";
void give_to_shell(const std::string &path, std::vector<char *> &arguments);
Failure not_executed(const std::string &path, int error);

// Puts the program in this process's place. Throws Failure where that fails.
[[noreturn]] void become_program(const std::string &path, const std::vector<std::string> &words);

// "exit code 3", "signal 11 (Segmentation fault)". `status` is as from waitpid.
std::string how_it_ended(int status);

// This process's: NAME=VALUE, all of them.
std::vector<std::string> present_environment();

// What each run reads as its stdin. Throws Failure (1) if it does not exist or is a directory, which opens like a
// file, and which no run could read.
void check_input(const std::string &path);

} // namespace thrum
