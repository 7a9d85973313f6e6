// SPDX-License-Identifier: Apache-2.0
//
// Where the program allocates memory: recorded at each call by libthrum-stat.so in it (stat/allocations.c). For programs whose
// threads share a cache line that is in no variable with a name: the call that allocated it stands for that. One more run, as
// addresses hold for one run only, with a CPU profile of its own.
#include <algorithm>
#include <map>

#include "base/atomic.h"
#include "stat/collect.hpp"
#include "stat/sites.hpp"
#include "tools/clock.hpp"
#include "tools/failure.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

class Allocations : public AllocationsLayer {
  public:
    std::vector<std::string> environment() const override { return probe_.environment(); }
    void forked(pid_t child) override { maps_.begin(child); }
    void poll(double now) override {
        began_ = seconds_now() - now;
        maps_.is_another();
        maps_.poll(now);
    }
    void finish() override;
    std::vector<Frame> site(std::uint64_t address, double at) override;

  private:
    struct Block {
        std::uint64_t end = 0;
        double at = 0;
        std::uint32_t site = 0;
    };

    ProbeFile probe_{PROBE_ALLOCATIONS};
    std::vector<Maps> observed_;
    ProbedMaps maps_{probe_, observed_};
    double began_ = 0;                      // on CLOCK_MONOTONIC
    std::map<std::uint64_t, Block> blocks_; // by their beginning
};

void Allocations::finish() {
    maps_.finish();
    for (struct probe_block &block : probe_->in.heap.blocks)
        if (load_acquire(&block.busy) == 0 && block.address != 0 && block.site < PROBE_SITES &&
            load_acquire(&probe_->in.heap.sites[block.site].ready) != 0)
            blocks_[block.address] = {block.address + block.size,
                                      static_cast<double>(block.at) * 1e-9 - began_, block.site};
    if (const std::string trouble = probe_.trouble(); !trouble.empty())
        warnings.push_back("where memory is allocated is unknown: " + trouble);
    else
        how_known.push_back(
            "Threads share memory without a name: in a separate run a preloaded library recorded "
            "where memory is allocated, and samples were taken again.");
}

// Blocks do not overlap, but those that were freed are not known to be: of several that had the address, the latest up to then.
// At most so many smaller blocks that begin before the address are passed over.
std::vector<Frame> Allocations::site(std::uint64_t address, double at) {
    constexpr std::size_t kNeighboursMost = 1000;
    const Block *found = nullptr;
    auto next = blocks_.upper_bound(address);
    for (std::size_t i = 0; next != blocks_.begin() && i < kNeighboursMost; i++) {
        --next;
        const Block &block = next->second;
        if (address < block.end && block.at <= at && (found == nullptr || found->at < block.at))
            found = &block;
    }
    if (found == nullptr)
        return {};
    Places places(observed_);
    std::vector<Frame> stack = places.frames(raw_stack(probe_->in.heap.sites[found->site].stack), 0);
    const auto is_own = [](const Frame &frame) { return begins_with(frame.module, "libthrum-stat"); };
    stack.erase(stack.begin(), std::find_if_not(stack.begin(), stack.end(), is_own));
    return stack;
}

} // namespace

std::unique_ptr<AllocationsLayer> make_allocations(const std::string &program, std::string &why_not) {
    why_not = preload_refusal(program);
    try {
        if (why_not.empty())
            return std::make_unique<Allocations>();
    } catch (const Failure &failure) {
        why_not = failure.what();
    }
    return nullptr;
}

} // namespace thrum::stat
