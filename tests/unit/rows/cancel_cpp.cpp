// SPDX-License-Identifier: Apache-2.0
//
// Row "cancel", C++: a cancelled thread's frames are unwound with their destructors, its thread_local objects are
// destroyed, and the next thread can use exceptions and be cancelled in its turn.

#include <atomic>
#include <cxxabi.h>
#include <string>

#include "check.h"

namespace {

std::string trace;
std::atomic<bool> ready;

struct Marker {
    char name;
    ~Marker() { trace += name; }
};

struct OfThread {
    bool used = false;
    ~OfThread() { trace += 't'; }
};
thread_local OfThread of_thread;

void *sleep_with_objects(void *arg) {
    of_thread.used = true;
    Marker outer{'2'};
    try {
        Marker inner{'1'};
        ready = true;
        for (int i = 0; i < 5000; i++)
            usleep(2000);
    } catch (abi::__forced_unwind &) {
        trace += 'u';
        throw;
    }
    return arg;
}

void *throw_and_catch(void *arg) {
    try {
        throw 5;
    } catch (int &value) {
        CHECK_EQ(value, 5);
    }
    return arg;
}

void unwinds() {
    for (int i = 0; i < 5; i++) {
        pid_t first = run_thread(throw_and_catch, nullptr), second = run_thread(throw_and_catch, nullptr);
        expect_reused(first, second);
        int64_t busy = busy_threads();
        ready = false;
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, nullptr, sleep_with_objects, nullptr));
        while (!ready)
            sleep_ms(1);
        CHECK_OK(pthread_cancel(thread));
        void *result = nullptr;
        CHECK_OK(pthread_join(thread, &result));
        CHECK(result == PTHREAD_CANCELED, "not cancelled");
        CHECK(trace == "1u2t", "the trace is \"%s\"", trace.c_str());
        trace.clear();
        wait_until_settled(busy);
    }
}

const check_case cases[] = {{"unwinds", unwinds, FAILS_WHEN_SKIPPED}};

} // namespace

CHECK_MAIN(cases)
