// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: recursion down to where there is hardly room for a signal's frame, or just room for a preemption
// (<thrum/preempt.h>), and ticks come. Every function's variables are unchanged on the way back. Whether ticks came
// while a thread was down there is checked where others can run.
#include <array>

#include "preempt_pcs.h"

#include "preempt_stress.h"

namespace {

// A signal's frame, and what this function and the handler add.
std::size_t left_over() {
#if defined(__x86_64__)
    std::uint32_t eax = 7, ebx = 0, ecx = 0, edx = 0;
    __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    const bool has_amx = (edx & UINT32_C(1) << 24) != 0;
    return (has_amx ? 12 : 4) * std::size_t{1024};
#else
    return std::size_t{4} * 1024;
#endif
}

constexpr unsigned kAbout = 12 * 1024;               // more or less room than a preemption takes
constexpr std::uint64_t kMany = 100, kSeldomHit = 8; // visits, and of how many of them one is hit at least
constexpr unsigned kThreadsAWorker = 4;              // that some can always run

void be_down_there(Actor &actor) {
    const In in(actor, kDeep);
    work_for(2 * options.slice_ns());
}

__attribute__((noinline)) std::uint64_t go_down(Actor &actor, std::uintptr_t lowest, std::uint64_t seed) {
    std::array<std::uint64_t, 24> mine;
    for (std::uint64_t &value : mine)
        value = seed = mixed(seed);
    __asm__ volatile("" : : "r"(&mine) : "memory");
    if (reinterpret_cast<std::uintptr_t>(&mine) - lowest > sizeof mine + 256)
        seed = go_down(actor, lowest, seed);
    else
        be_down_there(actor);
    std::uint64_t value = seed;
    for (std::size_t i = mine.size(); i-- > 1;)
        CHECK(mixed(mine[i - 1]) == mine[i]);
    value = mine[0];
    __asm__ volatile("" : "+r"(value));
    return value;
}

class Deep : public Torture {
  public:
    const char *name() const override { return "deep"; }
    bool fits() const override { return options.has_ults(); }

    void step(Actor &actor) override {
        if (!actor.random.one_in(8)) { // not so often: it takes slices
            safepoint();
            return;
        }
        std::size_t used = 0, size = 0;
        CHECK_EQ(thrum_stack_used(thrum_self(), &used, &size), 0);
        (void)thrum_now(); // bound now: to bind it takes more of the stack than is left down there
        // This function is less than 1 KiB below the top.
        char here = 0;
        const std::uintptr_t lowest = reinterpret_cast<std::uintptr_t>(&here) + 1024 - size + left_over_ +
                                      (actor.random.one_in(2) ? actor.random.below(kAbout) : 0);
        const std::uint64_t seed = actor.random.next();
        CHECK(go_down(actor, lowest, seed) == mixed(seed));
        visits_++;
        safepoint();
    }

    // Of all rounds so far. Where the monitor sends ticks they may come later than any thread stays down there.
    void end() override {
        const std::uint64_t hits = pcs_counts()[kHitDeep], visits = visits_;
        if (!options.monitored() && options.threads >= kThreadsAWorker * options.workers && visits >= kMany &&
            hits * kSeldomHit < visits)
            fail(__FILE__, __LINE__, "of %llu that were deep in their stacks %llu were hit there",
                 static_cast<unsigned long long>(visits), static_cast<unsigned long long>(hits));
    }

  private:
    std::atomic<std::uint64_t> visits_{0};
    const std::size_t left_over_ = left_over();
};

} // namespace

void add_deep(Tortures &all) {
    all.push_back(std::make_unique<Deep>());
}
