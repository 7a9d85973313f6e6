// SPDX-License-Identifier: Apache-2.0
//
// See preempt_bites.h.
#include "preempt_bites.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "preempt_matrix.h"

namespace {

constexpr int kTries = 5;
constexpr std::size_t kRoomLeft = 1024; // less than any signal's frame

std::string last_line(const std::string &said) {
    const std::size_t end = said.find_last_not_of('\n');
    if (end == std::string::npos)
        return "\n";
    const std::size_t before = said.rfind('\n', end);
    return said.substr(before == std::string::npos ? 0 : before + 1, end - before) + "\n";
}

// With a thread's own cache, which YIELD lets another use half-way through a change.
bool yield_corrupts(std::uint64_t seed) {
    for (int i = 1; i <= kTries; i++) {
        std::string said;
        const int status = run_self({"--mode", "yield", "--only", "malloc", "--workers", "2", "--threads",
                                     "32", "--slice", "50", "--seconds", "5", "--stall", "5", "--undisturbed",
                                     "--seed", std::to_string(seed + static_cast<unsigned>(i))},
                                    "", &said, nullptr);
        if (WIFSIGNALED(status)) {
            std::printf("yield: malloc went wrong, as it should, at try %d: %s; %s", i,
                        strsignal(WTERMSIG(status)), last_line(said).c_str());
            return true;
        }
        if (status != 0) {
            std::printf("yield: status %#x, which is no corruption: %s", static_cast<unsigned>(status),
                        last_line(said).c_str());
            return false;
        }
    }
    std::printf("yield: malloc is as good as ever after %d times 5 s: the check does not bite\n", kTries);
    return false;
}

bool overflow_is_told() {
    std::string said;
    const int status = run_self({"--overflow"}, "", &said, nullptr);
    const bool told = WIFSIGNALED(status) && said.find("stack overflow") != std::string::npos;
    std::printf("overflow: %s, status %#x: %s",
                told ? "a stack without room for a signal's frame" : "this should have been a stack overflow",
                static_cast<unsigned>(status), last_line(said).c_str());
    return told;
}

__attribute__((noinline)) void go_down(std::uintptr_t lowest) {
    char here[128];
    __asm__ volatile("" : : "r"(here) : "memory");
    if (reinterpret_cast<std::uintptr_t>(here) - lowest > kRoomLeft)
        go_down(lowest);
    else
        work_for(100 * options.slice_ns());
    __asm__ volatile("" : : "r"(here) : "memory");
}

void *go_to_the_end(void *) {
    std::size_t used = 0, size = 0;
    CHECK_EQ(thrum_stack_used(thrum_self(), &used, &size), 0);
    char here = 0;
    go_down(reinterpret_cast<std::uintptr_t>(&here) - size + kRoomLeft);
    return nullptr;
}

} // namespace

int bites_run(const CommandLine &line) {
    const bool corrupts = yield_corrupts(line.common.seed), told = overflow_is_told();
    return corrupts && told ? 0 : 1;
}

void overflow_run() {
    thrum_config config = {};
    config.workers = 1;
    config.preempt.mode = THRUM_PREEMPT_LEND;
    config.preempt.slice = options.slice;
    CHECK_EQ(thrum_init(&config), 0);
    thrum_t threads[2];
    for (thrum_t &thread : threads)
        CHECK_EQ(thrum_spawn(&thread, nullptr, go_to_the_end, nullptr), 0);
    for (const thrum_t thread : threads)
        CHECK_EQ(thrum_join(thread, nullptr), 0);
    _exit(0);
}
