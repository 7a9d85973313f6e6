// SPDX-License-Identifier: Apache-2.0
//
// The idle list in the three forms that Dice and Kogan name: a stack under a lock; a lock-free stack (the head
// carries a count against A-B-A); the half-lock-free one (push by compare-and-swap, pop likewise but under a
// lock, so that a head cannot come back while a pop looks at it). N threads take an entry and put it back, with
// as much work in between as a quick reuse takes, or none.
//
// The lock is the one of src/os/lock.h; it includes no header of the library but that of public counters, so the
// forms are written out here.
#include <linux/futex.h>
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

constexpr unsigned kEntries = 64;
constexpr std::uint32_t kNone = ~0u;

struct alignas(64) Entry {
    std::atomic<std::uint32_t> next;
};

Entry entries[kEntries];

class FutexLock {
  public:
    void lock() {
        std::uint32_t seen = 0;
        if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire))
            return;
        while (word_.exchange(2, std::memory_order_acquire) != 0)
            syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, 2, nullptr);
    }
    void unlock() {
        if (word_.exchange(0, std::memory_order_release) == 2)
            syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1);
    }

  private:
    std::atomic<std::uint32_t> word_{0};
};

class Locked {
  public:
    void push(std::uint32_t entry) {
        lock_.lock();
        entries[entry].next.store(head_, std::memory_order_relaxed);
        head_ = entry;
        lock_.unlock();
    }
    std::uint32_t pop() {
        lock_.lock();
        const std::uint32_t entry = head_;
        if (entry != kNone)
            head_ = entries[entry].next.load(std::memory_order_relaxed);
        lock_.unlock();
        return entry;
    }

  private:
    alignas(64) FutexLock lock_;
    std::uint32_t head_ = kNone;
};

// Count in the upper half of the head.
class LockFree {
  public:
    void push(std::uint32_t entry) {
        std::uint64_t head = head_.load(std::memory_order_relaxed);
        do
            entries[entry].next.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
        while (!head_.compare_exchange_weak(head, (head & kCount) | entry, std::memory_order_release));
    }
    std::uint32_t pop() {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        std::uint32_t entry;
        do {
            entry = static_cast<std::uint32_t>(head);
            if (entry == kNone)
                return kNone;
        } while (!head_.compare_exchange_weak(
            head, ((head & kCount) + kOne) | entries[entry].next.load(std::memory_order_relaxed),
            std::memory_order_acquire));
        return entry;
    }

  private:
    static constexpr std::uint64_t kCount = 0xffffffff00000000, kOne = 0x100000000;
    alignas(64) std::atomic<std::uint64_t> head_{kNone};
};

class HalfLockFree {
  public:
    void push(std::uint32_t entry) {
        std::uint32_t head = head_.load(std::memory_order_relaxed);
        do
            entries[entry].next.store(head, std::memory_order_relaxed);
        while (!head_.compare_exchange_weak(head, entry, std::memory_order_release));
    }
    std::uint32_t pop() {
        lock_.lock();
        std::uint32_t entry = head_.load(std::memory_order_acquire);
        while (entry != kNone &&
               !head_.compare_exchange_weak(entry, entries[entry].next.load(std::memory_order_relaxed),
                                            std::memory_order_acquire)) {
        }
        lock_.unlock();
        return entry;
    }

  private:
    alignas(64) std::atomic<std::uint32_t> head_{kNone};
    alignas(64) FutexLock lock_;
};

void compute(unsigned steps) {
    for (volatile unsigned i = 0; i < steps; i = i + 1) {
    }
}

template <class List>
std::uint64_t take_and_put(unsigned threads, unsigned steps, double seconds) {
    auto list = std::make_unique<List>();
    for (std::uint32_t i = 0; i < kEntries; i++)
        list->push(i);
    std::atomic<bool> stop{false};
    std::vector<std::uint64_t> counts(threads * std::size_t{16});
    std::vector<std::thread> team;
    for (unsigned t = 0; t < threads; t++)
        team.emplace_back([&, t] {
            std::uint64_t done = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                const std::uint32_t entry = list->pop();
                compute(steps);
                if (entry == kNone)
                    continue;
                list->push(entry);
                done++;
            }
            counts[t * std::size_t{16}] = done;
        });
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    std::uint64_t sum = 0;
    for (unsigned t = 0; t < threads; t++) {
        team[t].join();
        sum += counts[t * std::size_t{16}];
    }
    for (std::uint32_t left = 0; left < kEntries; left++)
        if (list->pop() == kNone)
            throw bench::Failure("entries were lost");
    return sum;
}

// Words: form, threads, steps, seconds.
void work(const std::vector<std::string> &words) {
    const auto number = [&](int i) {
        return std::strtod(words.at(static_cast<std::size_t>(i)).c_str(), nullptr);
    };
    const auto threads = static_cast<unsigned>(number(1)), steps = static_cast<unsigned>(number(2));
    bench::report_work([&] {
        if (words.at(0) == "lock")
            return take_and_put<Locked>(threads, steps, number(3));
        if (words.at(0) == "lock-free")
            return take_and_put<LockFree>(threads, steps, number(3));
        return take_and_put<HalfLockFree>(threads, steps, number(3));
    });
}

void body(const bench::Options &options) {
    constexpr unsigned kThreads[] = {1, 2, 8, 32};
    constexpr unsigned kSteps[] = {0, 400};
    const char *const forms[] = {"lock", "lock-free", "half lock-free"};
    bench::Report report(options);
    bench::Table table{"idle_list",
                       "Taking an entry of the idle list and putting it back",
                       {{"form", "form", "", 0},
                        {"threads", "threads", "", 0},
                        {"between", "work between", "", 0},
                        {"wall_ns", "wall", "ns", 1},
                        {"cpu_ns", "CPU", "ns", 1}},
                       {}};
    for (const unsigned steps : kSteps)
        for (const unsigned threads : kThreads) {
            bench::Turns turns{options.numbers[0], {}};
            for (const char *form : forms)
                turns.variants.push_back(std::to_string(threads) + " threads, " + form);
            const bench::Rounds<bench::Sample> rounds(turns, [&](std::size_t form, std::size_t) {
                return bench::measure({forms[form], std::to_string(threads), std::to_string(steps),
                                       std::to_string(options.numbers[1])},
                                      bench::Environment(), false);
            });
            for (std::size_t form = 0; form < std::size(forms); form++)
                table.rows.push_back({forms[form], static_cast<double>(threads), steps == 0 ? "none" : "some",
                                      rounds.of(form, &bench::Sample::wall_ns_each),
                                      rounds.of(form, &bench::Sample::cpu_ns_each)});
        }
    report.add(std::move(table));
    report.note("Without the library: the forms by themselves, " + std::to_string(kEntries) + " entries.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"idle_list",
         "What it costs to take an entry off the idle list and put it back, in three forms of the list.",
         {{"--rounds", "turns for each form", 1, 9, 15, 1, 1000},
          {"--seconds", "how long a turn lasts", 0.02, 0.2, 1, 0.001, 100}},
         {},
         false},
        body, work);
}
