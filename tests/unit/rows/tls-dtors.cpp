// SPDX-License-Identifier: Apache-2.0
//
// Row "tls-dtors": destructors of thread_local objects run when the logical thread ends, in reverse order, before
// those of keys; once each; on the thread that made the object. exit() from a thread runs that thread's.

#include <atomic>
#include <cstdlib>
#include <string>

#include "check.h"

extern "C" int __cxa_thread_atexit_impl(void (*)(void *), void *, void *) noexcept;
extern "C" void *__dso_handle;

namespace {

std::string trace; // written by one thread at a time
std::atomic<int> destroyed;

struct Tracked {
    char name;
    int magic = 4711;
    pid_t tid = kernel_tid();
    pthread_t self = pthread_self();
    explicit Tracked(char n) : name(n) {}
    ~Tracked() {
        CHECK(magic == 4711, "destructor of something that was not constructed");
        CHECK(tid == kernel_tid(), "destroyed by kernel thread %d, made by %d", (int)kernel_tid(), (int)tid);
        CHECK(pthread_equal(self, pthread_self()), "destroyed by another thread than its own");
        magic = 0;
        trace += name;
        destroyed++;
    }
    void touch() { CHECK_EQ(magic, 4711); }
};

template <char name>
Tracked &tracked() {
    thread_local Tracked object(name);
    return object;
}

void expect_trace(const char *expected) {
    CHECK(trace == expected, "destructors ran as \"%s\", expected \"%s\"", trace.c_str(), expected);
    trace.clear();
}

void run_twice(void *(*start)(void *), const char *expected) {
    pid_t first = run_thread(start, nullptr);
    expect_trace(expected);
    pid_t second = run_thread(start, nullptr);
    expect_trace(expected);
    expect_reused(first, second);
}

void *three(void *arg) {
    tracked<'1'>().touch();
    tracked<'2'>().touch();
    tracked<'3'>().touch();
    return arg;
}

void reverse_order() {
    run_twice(three, "321");
}

void *three_and_exit(void *arg) {
    three(arg);
    pthread_exit(arg);
}

void pthread_exit_runs_them() {
    run_twice(three_and_exit, "321");
}

struct Chained {
    ~Chained() {
        trace += 'c';
        tracked<'x'>().touch(); // made only now, so it goes after this one
    }
    void touch() {}
};

void *chain(void *arg) {
    tracked<'1'>().touch();
    thread_local Chained chained;
    chained.touch();
    return arg;
}

void destructor_makes_another() {
    run_twice(chain, "cx1");
}

// Threads of one kernel thread with different objects: only their own are destroyed.
void *only_first(void *arg) {
    tracked<'1'>().touch();
    return arg;
}

void *only_second(void *arg) {
    tracked<'2'>().touch();
    return arg;
}

void each_its_own() {
    pid_t first = run_thread(only_first, nullptr);
    expect_trace("1");
    pid_t second = run_thread(only_second, nullptr);
    expect_trace("2");
    pid_t third = run_thread(do_nothing, nullptr);
    expect_trace("");
    expect_reused(first, second);
    expect_reused(second, third);
}

pthread_key_t key;

void key_destructor(void *) {
    trace += 'k';
}

void *object_and_key(void *arg) {
    CHECK_OK(pthread_setspecific(key, &key));
    tracked<'1'>().touch();
    return arg;
}

void before_keys() {
    CHECK_OK(pthread_key_create(&key, key_destructor));
    run_twice(object_and_key, "1k");
}

int made_late, destroyed_late;

struct Late {
    int magic = 815;
    Late() { made_late++; }
    ~Late() {
        CHECK(magic == 815, "a destructor met an object of another thread");
        destroyed_late++;
    }
};

void late_destructor(void *) {
    thread_local Late late;
    CHECK_EQ(late.magic, 815);
}

void *only_key(void *arg) {
    CHECK_OK(pthread_setspecific(key, &key));
    return arg;
}

// An object made first in a key's destructor: glibc never destroys it, the cache does, at the same thread's end
// (docs/internals/soundness.md). Each thread makes its own, and it does not haunt the next thread.
void made_in_a_key_destructor() {
    CHECK_OK(pthread_key_create(&key, late_destructor));
    pid_t last = 0;
    for (int i = 1; i <= 4; i++) {
        pid_t tid = run_thread(i % 2 ? only_key : three, nullptr);
        CHECK_EQ(made_late, (i + 1) / 2);
        CHECK_EQ(destroyed_late, under_thrum() ? made_late : 0);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
    expect_trace("321321");
}

void *cancel_self(void *arg) {
    tracked<'1'>().touch();
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return arg;
}

void cancelled_thread_runs_them() {
    run_thread(do_nothing, nullptr);
    for (int i = 0; i < 2; i++) {
        void *result = nullptr;
        run_thread_result(cancel_self, nullptr, &result);
        CHECK(result == PTHREAD_CANCELED, "not cancelled");
        expect_trace("1");
    }
}

void detached_thread_runs_them() {
    pthread_attr_t attributes;
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED));
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK_OK(pthread_create(&thread, &attributes, only_first, nullptr));
        for (int ms = 0; ms < 3000 && destroyed.load() == i; ms++)
            sleep_ms(1);
        CHECK_EQ(destroyed.load(), i + 1);
        expect_trace("1");
    }
}

void note_plainly(void *p) {
    trace += *static_cast<char *>(p);
}

void *register_directly(void *arg) {
    static char names[] = "abc";
    for (char *name = names; *name; name++)
        CHECK_EQ(__cxa_thread_atexit_impl(note_plainly, name, &__dso_handle), 0);
    return arg;
}

void registered_directly() {
    run_twice(register_directly, "cba");
}

const char *expected_at_exit;

void at_exit() {
    // Runs on the thread that called exit, after its own thread_local objects are gone.
    if (trace != expected_at_exit) {
        fprintf(stderr, "at exit the trace is \"%s\", expected \"%s\"\n", trace.c_str(), expected_at_exit);
        _exit(1);
    }
    _exit(0);
}

void *exit_with_three(void *arg) {
    three(arg);
    std::exit(1);
}

void exit_from_a_reused_thread() {
    CHECK_EQ(std::atexit(at_exit), 0);
    pid_t first = run_thread(only_first, nullptr), second = run_thread(only_first, nullptr);
    expect_reused(first, second);
    expect_trace("11");
    expected_at_exit = "321";
    run_thread(exit_with_three, nullptr);
    CHECK(false, "exit did not end the process");
}

void exit_from_main_runs_mains_only() {
    CHECK_EQ(std::atexit(at_exit), 0);
    run_thread(only_second, nullptr);
    trace.clear();
    tracked<'m'>().touch();
    expected_at_exit = "m";
    std::exit(1);
}

const check_case cases[] = {
    {"reverse-order", reverse_order, FAILS_WHEN_SKIPPED},
    {"pthread-exit-runs-them", pthread_exit_runs_them, FAILS_WHEN_SKIPPED},
    {"destructor-makes-another", destructor_makes_another, FAILS_WHEN_SKIPPED},
    {"each-its-own", each_its_own, FAILS_WHEN_SKIPPED},
    {"before-keys", before_keys, FAILS_WHEN_SKIPPED},
    {"made-in-a-key-destructor", made_in_a_key_destructor, FAILS_WHEN_SKIPPED},
    {"cancelled-thread-runs-them", cancelled_thread_runs_them, HOLDS_WHEN_SKIPPED},
    {"detached-thread-runs-them", detached_thread_runs_them, FAILS_WHEN_SKIPPED},
    {"registered-directly", registered_directly, FAILS_WHEN_SKIPPED},
    {"exit-from-a-reused-thread", exit_from_a_reused_thread, FAILS_WHEN_SKIPPED},
    {"exit-from-main-runs-mains-only", exit_from_main_runs_mains_only, HOLDS_WHEN_SKIPPED},
};

} // namespace

CHECK_MAIN(cases)
