// SPDX-License-Identifier: Apache-2.0
//
// The least that a create and join can cost where the creators keep all CPUs busy. A thread that has ended keeps its handle
// until it is joined, so each job needs a kernel thread of its own, and a creator that waits must give its CPU away: two
// context switches each time. `floor` is that and nothing else, pairs of threads that hand a CPU to each other; once with
// both asleep in between, once with the creator yielding, which saves its wake-up. Beside it create and join without the
// cache and with it, by as many creators, in turns. CPU time and context switches; wall time is for a quiet machine.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "rounds.hpp"

namespace {

constexpr unsigned kCreators[] = {1, 8, 32};
constexpr struct {
    const char *name, *work;
    bool cached = false;
} kForms[] = {{"default", "create"},
              {"cache", "create", true},
              {"floor, asleep", "asleep"},
              {"floor, yielding", "yielding"}};

// A word that one thread waits for and another sets.
class Word {
  public:
    void set(std::uint32_t value) {
        if (word_.exchange(value, std::memory_order_acq_rel) == kAsleep)
            syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1);
    }
    bool is_set() const { return word_.load(std::memory_order_acquire) != kNothing; }
    std::uint32_t take() {
        std::uint32_t seen = kNothing;
        if (word_.compare_exchange_strong(seen, kAsleep, std::memory_order_acq_rel))
            while (word_.load(std::memory_order_acquire) == kAsleep)
                syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, kAsleep, nullptr);
        return word_.exchange(kNothing, std::memory_order_acq_rel);
    }

  private:
    static constexpr std::uint32_t kNothing = 0, kAsleep = 1;
    std::atomic<std::uint32_t> word_{kNothing};
};
constexpr std::uint32_t kJob = 2, kQuit = 3;

struct Pair {
    alignas(64) Word job;
    alignas(64) Word done;
};

std::uint64_t hand_over(const std::atomic<bool> &stop, bool yields) {
    const auto pair = std::make_unique<Pair>();
    std::thread other([&pair] {
        while (pair->job.take() == kJob)
            pair->done.set(kJob);
    });
    std::uint64_t count = 0;
    for (; !stop; count++) {
        pair->job.set(kJob);
        if (yields && !pair->done.is_set())
            sched_yield();
        pair->done.take();
    }
    pair->job.set(kQuit);
    other.join();
    return count;
}

std::uint64_t create(const std::atomic<bool> &stop) {
    return bench::create_and_join(1, [&stop](std::uint64_t) { return stop.load(); });
}

std::uint64_t run(const std::string &form, unsigned creators, double seconds) {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> team;
    for (unsigned i = 0; i < creators; i++)
        team.emplace_back(
            [&] { sum += form == "create" ? create(stop) : hand_over(stop, form == "yielding"); });
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    for (std::thread &creator : team)
        creator.join();
    return sum;
}

void work(const std::vector<std::string> &words) {
    if (words.size() != 3)
        throw bench::Failure("--work takes a form, the number of creators and seconds");
    const auto creators = static_cast<unsigned>(std::strtoul(words[1].c_str(), nullptr, 10));
    const double seconds = std::strtod(words[2].c_str(), nullptr);
    bench::report_work([&] { return run(words[0], creators, seconds); });
}

void body(const bench::Options &options) {
    const auto environments = bench::without_and_with(options.library);
    bench::Report report(options);
    bench::Table table{"handover",
                       std::string("Creators that keep all CPUs busy") + bench::kMedians,
                       {{"form", "", "", 0},
                        {"creators", "creators", "", 0},
                        {"cpu_us", "CPU", "µs each", 2},
                        {"switches", "context switches", "each", 2},
                        {"per_s", "rate", "1000/s", 1}},
                       {}};
    for (const unsigned creators : kCreators) {
        bench::Turns turns{options.numbers[0], {}};
        for (const auto &form : kForms)
            turns.variants.push_back(std::to_string(creators) + " creators, " + form.name);
        const bench::Rounds<bench::Sample> rounds(turns, [&](std::size_t form, std::size_t) {
            const bool cached = kForms[form].cached;
            return bench::measure(
                {kForms[form].work, std::to_string(creators), std::to_string(options.numbers[1])},
                environments[cached ? bench::kCached : bench::kPlain], cached);
        });
        for (std::size_t form = 0; form < std::size(kForms); form++)
            table.rows.push_back({kForms[form].name, static_cast<double>(creators),
                                  rounds.of(form, &bench::Sample::cpu_us_each),
                                  rounds.of(form, &bench::Sample::switches_each),
                                  rounds.of(form, &bench::Sample::thousands_per_second)});
    }
    report.add(table);
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"handover",
                           "What two hand-overs of a CPU cost by themselves, beside create and join.",
                           {{"--rounds", "Rounds of all forms", 1, 7, 21, 1, 1000},
                            {"--seconds", "Seconds of a measurement", 0.05, 0.5, 2, 0.01, 60}},
                           {}},
                          body, work);
}
