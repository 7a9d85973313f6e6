// SPDX-License-Identifier: Apache-2.0
//
// A thread-local in a shared library: those of the test program, which has libthrum's objects in it, are left as they are where
// a thread control block is used again.
#pragma once

#include <atomic>

// Counts itself, on whatever kernel thread that is.
struct Counted {
    Counted() { made++; }
    ~Counted() { gone++; }
    int value = 7;
    static std::atomic<int> made, gone;
};
extern thread_local Counted counted;
