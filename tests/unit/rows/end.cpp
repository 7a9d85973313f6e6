// SPDX-License-Identifier: Apache-2.0
//
// Row "end", the C++ half: however a thread ends, its stack is unwound first, and the kernel thread is fit for the
// next one. Frames with destructors, catch clauses that see the forced unwinding, an exit out of a signal handler. An
// exception that no handler takes, of the start routine or of a destructor at the end, ends the process.

#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

namespace {

std::string trace; // written by one thread at a time

struct Marker {
    char name;
    ~Marker() { trace += name; }
};

volatile bool really = true; // keeps the compiler from knowing that leave() does not return

[[gnu::noinline]] void leave(void *value) {
    if (really)
        pthread_exit(value);
}

[[gnu::noinline]] void nest(int depth, void *value) {
    Marker marker{static_cast<char>('0' + depth)};
    if (depth < 3) {
        nest(depth + 1, value);
    } else {
        leave(value);
    }
    trace += '!';
}

void *exits_deep(void *value) {
    Marker marker{'a'};
    nest(1, value);
    return nullptr;
}

void run_twice(void *(*start)(void *), const char *expected) {
    int values[2];
    pid_t tids[2];
    for (int i = 0; i < 2; i++) {
        void *result = nullptr;
        trace.clear();
        tids[i] = run_thread_result(start, &values[i], &result);
        CHECK(trace == expected, "thread %d left the trace \"%s\", expected \"%s\"", i + 1, trace.c_str(),
              expected);
        CHECK(result == &values[i], "thread %d: join gave another value than pthread_exit got", i + 1);
    }
    expect_reused(tids[0], tids[1]);
}

void destructors() {
    run_twice(exits_deep, "321a");
}

void *exits_through_catch(void *value) {
    try {
        Marker marker{'b'};
        leave(value);
    } catch (abi::__forced_unwind &) {
        trace += 'u';
        throw;
    } catch (...) {
        trace += '?';
    }
    return nullptr;
}

void forced_unwind_is_seen() {
    run_twice(exits_through_catch, "bu");
}

void *exits_through_catch_all(void *value) {
    try {
        leave(value);
    } catch (...) {
        trace += 'c';
        throw;
    }
    return nullptr;
}

void catch_all_is_entered() {
    run_twice(exits_through_catch_all, "c");
}

// pthread_exit while another exception is being handled: that one is released on the way.
struct Payload {
    Payload() = default;
    Payload(const Payload &) = default;
    ~Payload() { trace += 'p'; }
};

void *exits_in_handler(void *value) {
    try {
        throw Payload();
    } catch (Payload &) {
        Marker marker{'m'};
        leave(value);
    }
    return nullptr;
}

void exit_while_handling() {
    run_twice(exits_in_handler, "mp");
}

void *value_of_signal;

void exit_from_signal(int) {
    pthread_exit(value_of_signal);
}

void *raises(void *value) {
    Marker marker{'s'};
    value_of_signal = value;
    signal(SIGUSR1, exit_from_signal);
    sigset_t only, none;
    sigemptyset(&none);
    sigemptyset(&only);
    sigaddset(&only, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &only, nullptr);
    pthread_kill(pthread_self(), SIGUSR1);
    sigsuspend(&none); // unlike raise, may be unwound through
    return nullptr;
}

// Leaves the handler by unwinding through the signal frame, with SIGUSR1 blocked. The next thread starts with its
// creator's mask: it can be interrupted again.
void exit_from_a_signal_handler() {
    run_twice(raises, "s");
}

void destroy_value(void *) {
    trace += 'k';
}

pthread_key_t key;

struct AtEnd {
    bool used = true;
    ~AtEnd() { trace += 't'; }
};
thread_local AtEnd at_end;

void *exits_with_everything(void *value) {
    pthread_setspecific(key, &key);
    at_end.used = true;
    Marker marker{'f'};
    leave(value);
    return nullptr;
}

// Frames first, then thread_local objects, then keys.
void order_of_the_end() {
    CHECK_OK(pthread_key_create(&key, destroy_value));
    run_twice(exits_with_everything, "ftk");
}

constexpr int kThrown = 4711, kAnotherException = 3, kNoReuse = 4, kStillAlive = 5;
pid_t expected_tid; // of the thread that throws; 0: any

// std::terminate is called by the thread that threw, and the exception is the one that it handles.
[[noreturn]] void look_at_exception() {
    if (expected_tid != 0 && expected_tid != kernel_tid())
        _exit(kNoReuse);
    try {
        if (std::current_exception() != nullptr)
            throw;
    } catch (int thrown) {
        if (thrown == kThrown)
            std::abort();
    }
    _exit(kAnotherException);
}

[[noreturn]] void throw_in_child(void *(*start)(void *), bool reused) {
    std::set_terminate(look_at_exception);
    if (reused) {
        const pid_t first = run_thread(do_nothing, nullptr);
        if (under_thrum())
            expected_tid = first;
    }
    run_thread(start, nullptr);
    _exit(kStillAlive);
}

void expect_terminates(void *(*start)(void *), bool reused) {
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0)
        throw_in_child(start, reused);
    int status = 0;
    CHECK_SYS(waitpid(child, &status, 0));
    PREMISE(!WIFEXITED(status) || WEXITSTATUS(status) != kNoReuse, "no reuse in the child");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
          "child with a %s thread ended with status %#x, not by std::terminate", reused ? "reused" : "new",
          status);
}

// In a new thread and in a reused one.
void expect_terminates_twice(void *(*start)(void *)) {
    expect_terminates(start, false);
    expect_terminates(start, true);
}

void *throws(void *) {
    throw kThrown;
}

// An exception that is not caught ends the process, in a reused thread as in a new one.
void uncaught_exception_terminates() {
    expect_terminates_twice(throws);
}

struct ThrowsAtEnd {
    bool used = false;
    ~ThrowsAtEnd() noexcept(false) { throw kThrown; }
};

void *makes_thread_local(void *arg) {
    thread_local ThrowsAtEnd object;
    object.used = true;
    return arg;
}

void *makes_thread_local_and_exits(void *arg) {
    leave(makes_thread_local(arg));
    return nullptr;
}

void *makes_thread_local_and_is_cancelled(void *arg) {
    makes_thread_local(arg);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return nullptr;
}

// So does one that leaves a destructor, whichever way the thread ended: no handler is around it.
void thread_local_destructor_throws() {
    expect_terminates_twice(makes_thread_local);
    expect_terminates_twice(makes_thread_local_and_exits);
    expect_terminates_twice(makes_thread_local_and_is_cancelled);
}

void throw_value(void *) {
    throw kThrown;
}

void *sets_key(void *arg) {
    CHECK_OK(pthread_setspecific(key, &key));
    return arg;
}

void *sets_key_and_exits(void *arg) {
    leave(sets_key(arg));
    return nullptr;
}

void *sets_key_and_is_cancelled(void *arg) {
    sets_key(arg);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return nullptr;
}

void key_destructor_throws() {
    CHECK_OK(pthread_key_create(&key, throw_value));
    expect_terminates_twice(sets_key);
    expect_terminates_twice(sets_key_and_exits);
    expect_terminates_twice(sets_key_and_is_cancelled);
}

void *throws_and_catches(void *arg) {
    try {
        throw std::string("caught");
    } catch (std::string &s) {
        CHECK(s == "caught", "wrong exception");
    }
    CHECK(std::uncaught_exceptions() == 0, "exceptions are still in flight");
    return arg;
}

// The exception globals of libstdc++ are clean after a thread that was unwound by force.
void exceptions_work_afterwards() {
    int value;
    pid_t first = run_thread(exits_in_handler, &value);
    pid_t second = run_thread(throws_and_catches, nullptr);
    expect_reused(first, second);
}

const check_case cases[] = {
    {"destructors", destructors, FAILS_WHEN_SKIPPED},
    {"forced-unwind-is-seen", forced_unwind_is_seen, FAILS_WHEN_SKIPPED},
    {"catch-all-is-entered", catch_all_is_entered, FAILS_WHEN_SKIPPED},
    {"exit-while-handling", exit_while_handling, FAILS_WHEN_SKIPPED},
    {"exit-from-a-signal-handler", exit_from_a_signal_handler, FAILS_WHEN_SKIPPED},
    {"order-of-the-end", order_of_the_end, FAILS_WHEN_SKIPPED},
    {"uncaught-exception-terminates", uncaught_exception_terminates, HOLDS_WHEN_SKIPPED},
    {"thread-local-destructor-throws", thread_local_destructor_throws, HOLDS_WHEN_SKIPPED},
    {"key-destructor-throws", key_destructor_throws, HOLDS_WHEN_SKIPPED},
    {"exceptions-work-afterwards", exceptions_work_afterwards, HOLDS_WHEN_SKIPPED},
};

} // namespace

CHECK_MAIN(cases)
