// SPDX-License-Identifier: Apache-2.0
//
// libc's functions that the tests can make fail. Everything works as usual until a test says otherwise, and again
// after faults_clear().
#pragma once

#include <atomic>

struct Failing {
    // Calls from now on: so many go well, then so many fail with this error.
    std::atomic<int> well{0}, times{0}, error{0}, calls{0};
    void after(int count, int failures, int code) {
        error = code;
        calls = 0;
        well = count;
        times = failures;
    }
    // Counts the call. The error to fail with, 0 for none.
    int strike();
};

struct Faults {
    Failing mmap, guard /* madvise(MADV_GUARD_INSTALL) */, mprotect, create;
};
extern Faults faults;
// Not UINT32_MAX: the number of kernel threads of the process from which on the library makes no more
// (quota_threads).
extern std::atomic<unsigned> faults_threads;
// Called once, before the next time that a thread's own kernel thread is woken (solo_wake). It must not wait for a thread.
extern std::atomic<void (*)()> before_solo_wake;
// Called once, before the next unlock of a mutex within another operation of this kernel thread (mutex_unlock_inside).
extern thread_local void (*before_unlock_inside)();
void faults_clear();
