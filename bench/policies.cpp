// SPDX-License-Identifier: Apache-2.0
//
// What the policies for idle threads cost and give back (libthrum-cache(7)), each beside keeping all of them: threads per
// second and CPU time of one creator that makes sixteen at a time, and how many idle threads and how much resident memory
// are left when it has done nothing for a while. Before it begins, 64 threads have run at once, which used 48 KiB of their
// stacks: what a program leaves behind that was busier once.
#include <pthread.h>

#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "rounds.hpp"

namespace {

constexpr unsigned kOnce = 64, kAtOnce = 16;
constexpr std::size_t kStackUsed = 48 << 10;

// --- in the measuring process --------------------------------------------------------------------------------

void *use_stack(void *barrier) {
    volatile char stack[kStackUsed];
    for (std::size_t i = 0; i < sizeof stack; i += 512)
        stack[i] = 1;
    pthread_barrier_wait(static_cast<pthread_barrier_t *>(barrier));
    return nullptr;
}

void have_been_busy() {
    pthread_barrier_t barrier;
    std::vector<pthread_t> threads(kOnce);
    pthread_barrier_init(&barrier, nullptr, kOnce);
    for (pthread_t &thread : threads)
        if (pthread_create(&thread, nullptr, use_stack, &barrier) != 0)
            throw bench::Failure("64 threads at once are too many here");
    for (const pthread_t thread : threads)
        pthread_join(thread, nullptr);
    pthread_barrier_destroy(&barrier);
}

void work(const std::vector<std::string> &words) {
    if (words.size() != 2)
        throw bench::Failure("--work takes seconds, and seconds to do nothing afterwards");
    const double seconds = std::strtod(words[0].c_str(), nullptr);
    have_been_busy();
    bench::report_work([&] { return bench::create_and_join(kAtOnce, bench::after_seconds(seconds)); },
                       std::strtod(words[1].c_str(), nullptr));
}

// --- in the parent ---------------------------------------------------------------------------------------------

struct Policy {
    const char *name, *variable, *value;
};

constexpr Policy kPolicies[] = {{"keep all", nullptr, ""}, // the others beside this
                                {"at most 8", "THRUM_CACHE_MAX_IDLE", "8"},
                                {"for 100 ms", "THRUM_CACHE_MAX_AGE", "100"},
                                {"for 1 s in all", "THRUM_CACHE_THREAD_SECONDS", "1"},
                                {"trimmed after 100 ms", "THRUM_CACHE_TRIM_AFTER", "100"},
                                {"until memory is short", "THRUM_CACHE_PRESSURE", "1"},
                                {"rest of 1 ms", "THRUM_CACHE_MIN_REST", "1"},
                                {"stack wiped", "THRUM_CACHE_WIPE_STACK", "1"}};

bench::Sample measure(const Policy &policy, const bench::Options &options) {
    bench::Environment environment;
    environment.preload(options.library);
    if (policy.variable != nullptr)
        environment.set(policy.variable, policy.value);
    return bench::measure({std::to_string(options.numbers[0]), std::to_string(options.numbers[2])},
                          environment, true);
}

bench::Table empty_table() {
    return {"policies",
            std::string("One creator, 16 threads at a time") + bench::kMedians,
            {{"policy", "idle threads are kept", "", 0},
             {"setting", "setting", "", 0},
             {"per_s", "rate", "1000/s", 1},
             {"speedup", "rate", "× keep all", 2},
             {"cpu_us", "CPU", "µs/thread", 2},
             {"cpu_ratio", "CPU", "× keep all", 2},
             {"idle", "idle afterwards", "threads", 0},
             {"resident_kb", "resident afterwards", "KiB", 0}},
            {}};
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Turns turns{options.numbers[1], {}};
    for (const Policy &policy : kPolicies)
        turns.variants.emplace_back(policy.name);
    const bench::Rounds<bench::Sample> rounds(
        turns, [&](std::size_t which, std::size_t) { return measure(kPolicies[which], options); });
    bench::Table table = empty_table();
    const auto rate = &bench::Sample::thousands_per_second;
    const auto cpu = &bench::Sample::cpu_us_each;
    for (std::size_t i = 0; i < std::size(kPolicies); i++) {
        const Policy &policy = kPolicies[i];
        const bool base = i == 0;
        table.rows.push_back({policy.name, base ? "-" : std::string(policy.variable) + "=" + policy.value,
                              rounds.of(i, rate), base ? bench::Cell("1") : rounds.ratio(i, 0, rate),
                              rounds.of(i, cpu), base ? bench::Cell("1") : rounds.ratio(i, 0, cpu),
                              rounds.of(i, &bench::Sample::idle).median,
                              rounds.of(i, &bench::Sample::resident_kb).median});
    }
    report.note("× keep all: of the rate below 1, of the CPU time above 1 the policy costs something.");
    report.note("Memory is not made short: what the one for that costs is its looking.");
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"policies",
         "Creating and joining threads under each policy for idle threads, and what is left of them.",
         {{"--seconds", "Seconds a measurement", 0.05, 0.3, 1, 0.01, 3600},
          {"--rounds", "Measurements of each policy", 1, 7, 15, 1, 10000},
          {"--settle", "Seconds from then to the look at what is left", 0.2, 1.5, 3, 0, 3600}},
         {}},
        body, work);
}
