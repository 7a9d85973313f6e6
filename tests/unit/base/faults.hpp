// SPDX-License-Identifier: Apache-2.0
//
// libc's functions that the tests can make fail or lie. Everything works as usual until a test says otherwise, and
// again after faults_clear().
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

struct Faults {
    // The number of calls from now on that fail with this error; the calls that there were.
    struct Failing {
        std::atomic<int> times{0}, error{0}, calls{0};
        void next(int count, int code) {
            error = code;
            times = count;
        }
        // Counts the call. The error to fail with, 0 for none.
        int strike();
        void clear() { times = error = calls = 0; }
    };
    // By name, at the linker.
    Failing mmap, attr_init, attr_setstacksize, attr_setguardsize;
    std::vector<int> write;                // what the next writes do: -errno, or at most so many bytes
    std::map<std::string, void *> symbols; // what dlsym finds instead
    // Through the table of kthread/libc.h.
    Failing create, join, detach, iterate;
    std::atomic<int> register_cancel{0}, unregister_cancel{0}, unwind_next{0}, call_tls_dtors{0};
};
extern Faults faults;
void faults_clear();

// The NUMA node that the calling thread is told to run on; -1: the real one.
extern thread_local int fake_node;
