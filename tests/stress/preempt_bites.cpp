// SPDX-License-Identifier: Apache-2.0
//
// See preempt_bites.h.
#include "preempt_bites.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "preempt_matrix.h"

namespace {

constexpr std::size_t kRoomLeft = 1024; // less than any signal's frame

using Words = std::vector<std::string>;

struct Ended {
    int status = 0;
    Words lines; // that it has said
    bool is_good() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
    bool was_killed() const { return WIFSIGNALED(status); }
    const char *last() const { return lines.empty() ? "nothing" : lines.back().c_str(); }

    // The first line for which that is so, nullptr for none.
    template <typename Is>
    const char *line(const Is &is) const {
        const auto found = std::find_if(lines.begin(), lines.end(), is);
        return found != lines.end() ? found->c_str() : nullptr;
    }
};

Ended run(const Words &arguments) {
    std::string said, line;
    Ended ended;
    ended.status = run_self(arguments, "", &said, nullptr);
    for (std::istringstream lines(said); std::getline(lines, line);)
        ended.lines.push_back(line);
    return ended;
}

bool has(const std::string &text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

// What was expected, and was seen; or what was seen instead.
bool told(const char *what, bool good, const char *which, const Ended &ended, const char *line) {
    std::printf("%s: %s%s, status %#x: %s\n", what, good ? "" : "NOT ", which,
                static_cast<unsigned>(ended.status), line != nullptr ? line : ended.last());
    std::fflush(stdout);
    return good;
}

bool is_clean(const char *what, const Ended &ended) {
    return told(what, ended.is_good(), "nothing is wrong", ended, nullptr);
}

// --- malloc -----------------------------------------------------------------------------------------------------

Words malloc_in(const char *mode, std::uint64_t seed, const Words &options) {
    Words words = {"--mode",       mode, "--only",  "malloc", "--workers", "2",
                   "--threads",    "32", "--slice", "50",     "--seed",    std::to_string(seed),
                   "--undisturbed"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
}

// libc's own words, as it ends the process.
bool libc_says_so(const std::string &line) {
    static constexpr std::array<std::string_view, 12> kBegins = {"malloc(): ",
                                                                 "malloc_consolidate(): ",
                                                                 "free(): ",
                                                                 "realloc(): ",
                                                                 "munmap_chunk(): ",
                                                                 "mremap_chunk(): ",
                                                                 "unlink_chunk(): ",
                                                                 "tcache_thread_shutdown(): ",
                                                                 "double free or corruption",
                                                                 "corrupted size vs. prev_size",
                                                                 "corrupted double-linked list",
                                                                 "break adjusted to free malloc space"};
    return std::any_of(kBegins.begin(), kBegins.end(),
                       [&](std::string_view begin) { return line.rfind(begin, 0) == 0; }) ||
           has(line, "malloc.c:") || has(line, "arena.c:"); // assertions
}

// The torture's look at its blocks; what it asks of libthrum is another thing.
bool blocks_say_so(const std::string &line) {
    return has(line, "/preempt_malloc.cpp:") && !has(line, "thrum_");
}

// In malloc, or at a block that is none: neither in the library nor where no actor is.
bool fault_says_so(const std::string &line) {
    return has(line, "a fault in libc, on an actor's stack") ||
           has(line, "a fault in this program, on an actor's stack");
}

bool is_corruption(const std::string &line) {
    return libc_says_so(line) || blocks_say_so(line) || fault_says_so(line);
}

// With a thread's own cache, which YIELD lets another use half-way through a change; LEND does not. A hang is no
// expected end, nor is any other.
bool malloc_bites(std::uint64_t seed) {
    const Ended ended = run(malloc_in("yield", seed, {"--seconds", "25", "--stall", "5"}));
    const char *line = ended.line(is_corruption);
    const bool good =
        told("yield", ended.was_killed() && line != nullptr, "malloc has gone wrong", ended, line);
    return is_clean("lend", run(malloc_in("lend", seed, {"--seconds", "1"}))) && good;
}

// --- turns ------------------------------------------------------------------------------------------------------

// One worker: of its ticks so many in a row are kept back as the options say. The first round that tells of it ends it: where
// others have the CPUs there are few ticks in one, or there is an excuse.
Ended turns_with(const Words &options, std::uint64_t seed) {
    Words words = {
        "--only",       "turns",     "--workers", "1",       "--threads", "4",      "--slice",
        "1000",         "--seconds", "60",        "--round", "0.25",      "--seed", std::to_string(seed),
        "--undisturbed"};
    words.insert(words.end(), options.begin(), options.end());
    return run(words);
}

struct Loss {
    const char *what;
    Words options;
    const char *said;
};

bool turns_bite(std::uint64_t seed) {
    const std::array<Loss, 6> losses = {{
        {"two of three, lend", {"--mode", "lend", "--lose", "2,3"}, "lost ticks: of "},
        {"two of three, klt", {"--mode", "klt", "--lose", "2,3"}, "lost ticks: of "},
        {"two of three, none", {"--mode", "none", "--lose", "2,3"}, "lost ticks: of "},
        // Too seldom for the rule that long turns are seldom.
        {"twelve in a row, own-tls", {"--mode", "own-tls", "--lose", "12,400"}, "of more than four slices"},
        {"most that came, lend",
         {"--mode", "lend", "--unheeded", "14,15"},
         "ticks that came were not heeded"},
        // The monitor waits for it to come, and sends no more.
        {"the monitor's, lend",
         {"--mode", "lend", "--source", "monitor", "--lose", "1,50", "--stall", "1"},
         "hangs: no step"},
    }};
    bool good = true;
    for (const Loss &loss : losses) {
        const Ended ended = turns_with(loss.options, seed);
        const char *line = ended.line([&](const std::string &text) { return has(text, loss.said); });
        good &= told(loss.what, ended.was_killed() && line != nullptr, "noticed", ended, line);
    }
    for (const char *source : {"timer", "monitor"})
        good &=
            is_clean(source, turns_with({"--mode", "lend", "--source", source, "--seconds", "0.5"}, seed));
    return good;
}

// --- overflow ---------------------------------------------------------------------------------------------------

bool overflow_bites() {
    const Ended ended = run({"--overflow"});
    const char *line = ended.line([](const std::string &text) { return has(text, "stack overflow"); });
    return told("overflow", ended.was_killed() && line != nullptr, "a stack had no room for a signal's frame",
                ended, line);
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
    go_down(reinterpret_cast<std::uintptr_t>(&here) - size);
    return nullptr;
}

} // namespace

int bites_run(const CommandLine &line) {
    if (line.bites == "malloc")
        return malloc_bites(line.common.seed) ? 0 : 1;
    if (line.bites == "turns")
        return turns_bite(line.common.seed) ? 0 : 1;
    if (line.bites == "overflow")
        return overflow_bites() ? 0 : 1;
    std::fprintf(stderr, "stress-preempt: --bites takes malloc, turns or overflow, not '%s'\n",
                 line.bites.c_str());
    return 2;
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
