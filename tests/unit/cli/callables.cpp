// SPDX-License-Identifier: Apache-2.0
//
// For `thrum ps`: threads of <thrum/thrum.hpp> that were made to run functions, all of which wait.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <thrum/thrum.hpp>

static thrum::event never;
static thrum::latch waiting(14);

static void wait_here() {
    waiting.count_down();
    never.wait();
}

static void plain() {
    wait_here();
}
static void with_argument(int) {
    wait_here();
}
static void with_token(std::stop_token) {
    wait_here();
}
static int with_result(long, char) {
    wait_here();
    return 1;
}
static void in_group() {
    wait_here();
}
static int in_branch() {
    wait_here();
    return 1;
}
static void in_function() {
    wait_here();
}
struct called {
    void operator()() const { wait_here(); }
};
struct referred {
    void operator()() const { wait_here(); }
};
struct has_members {
    void member() { wait_here(); }
    int constant_member(int) const {
        wait_here();
        return 1;
    }
};

int main() {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); // the command may be no forebear of ours
    const thrum::runtime runtime(2);
    const auto queued = thrum::attributes().queued();
    const thrum::thread one(queued, plain), two(queued, with_argument, 1), three(queued, &with_token),
        four(queued, [] { wait_here(); });
    const thrum::future<int> five = thrum::async(queued, with_result, 1L, 'c');
    const thrum::future<int> six = thrum::async(queued, [] {
        wait_here();
        return 1;
    });
    thrum::task_group group(queued);
    group.run(in_group);
    const thrum::branch seven(in_branch);
    has_members object;
    const referred refers;
    const std::function<void()> of_pointer = in_function, of_object = called(),
                                of_lambda = [] { wait_here(); };
    const thrum::thread eight(queued, &has_members::member, &object),
        nine(queued, &has_members::constant_member, &object, 1), ten(queued, std::ref(refers)),
        eleven(queued, of_pointer), twelve(queued, of_object), thirteen(queued, of_lambda);
    waiting.wait();
    std::puts("ready");
    std::fflush(stdout);
    char end;
    while (read(STDIN_FILENO, &end, 1) > 0) {
    }
    _exit(0);
}
