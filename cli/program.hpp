// SPDX-License-Identifier: Apache-2.0
//
// What `thrum run` must know about a program before it becomes it: where it is, and whether a preloaded
// library reaches it. Scripts are followed to the program that the kernel will really start.
#pragma once

#include <string>

namespace thrum {

// The path of the program that execvp(3) would start. Throws Failure: 127 where there is none, 126 where
// what is there cannot be executed.
std::string find_program(const std::string &name);

struct Inspection {
    std::string refusal; // why LD_PRELOAD cannot reach it, as one line; empty: it can
    // What it is built with that wants the thread functions for itself, as "AddressSanitizer (libasan.so.8)":
    // it runs, but without the cache. Empty: nothing.
    std::string exclusive;
};

// Throws Failure (127) where the interpreter of a script or the loader of a program does not exist. A
// file that cannot be read or understood is left to the kernel: nothing is found wrong with it.
Inspection inspect_program(const std::string &path);

} // namespace thrum
