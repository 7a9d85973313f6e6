// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: in a region (thrum_nopreempt_begin) that lasts for slices no other thread runs on the worker; a
// tick that comes meanwhile is not lost, but takes place where the outermost region ends.
#include <algorithm>
#include <cstdio>

#include "preempt_stress.h"

namespace {

struct alignas(64) Word {
    std::atomic<unsigned> runner{~0U}, begun{0}, regions{0}, followed{0};
};

class Regions : public Torture {
  public:
    const char *name() const override { return "regions"; }
    bool alone() const override { return true; }
    bool bound() const override { return true; }
    bool fits() const override { return options.preempts(); }
    unsigned actors() const override {
        return std::clamp(options.threads / options.workers, 2U, 8U) * workers();
    }

    void begin(unsigned actors) override {
        words_ = std::vector<Word>(workers());
        all_ = (1U << actors / workers()) - 1;
    }

    void step(Actor &actor) override {
        Word &word = words_[actor.number % words_.size()];
        word.begun |= 1U << actor.number / words_.size();
        const bool has_others = word.begun == all_;
        const unsigned depth = 1 + actor.random.below(3);
        for (unsigned i = 0; i < depth; i++)
            thrum_nopreempt_begin();
        word.runner = actor.number;
        const bool is_long = actor.random.one_in(2);
        const unsigned ticks = actor.ticks;
        work_for(is_long ? 3 * options.slice_ns() : actor.random.below(2000));
        CHECK_EQ(word.runner, actor.number);
        for (unsigned i = 1; i < depth; i++) {
            thrum_nopreempt_end(); // an inner one
            CHECK_EQ(word.runner, actor.number);
        }
        thrum_nopreempt_end();
        if (is_long && has_others && !over && had_its_ticks(actor.ticks - ticks)) {
            word.regions++;
            if (word.runner != actor.number)
                word.followed++;
        }
    }

    // Of all long regions; some were interrupted by the kernel at their end, or all others had ended.
    void end() override {
        unsigned regions = 0, followed = 0;
        for (const Word &word : words_) {
            regions += word.regions;
            followed += word.followed;
        }
        std::printf("  regions: %u of three slices, after %u of them another ran at once\n", regions,
                    followed);
        if (regions > 100 && followed < regions / 2)
            fail(__FILE__, __LINE__,
                 "ticks that came in regions are lost: %u regions, %u preemptions at their ends", regions,
                 followed);
    }

  private:
    // The timers' come. The monitor's may be late, and of one alone it may be right to go on after it (has_just_begun in
    // src/preempt/tick.c).
    static bool had_its_ticks(unsigned came) { return !options.monitored() || came >= 2; }

    std::vector<Word> words_;
    unsigned all_ = 0; // bits of the threads that run on one worker
};

} // namespace

void add_regions(Tortures &all) {
    all.push_back(std::make_unique<Regions>());
}
