// SPDX-License-Identifier: Apache-2.0
//
// Whether a measured ratio keeps what is asked of it, as far as the interval of its median can tell; and --check, with
// which a benchmark ends with a status of its own where something is missed. Used by those that scripts/bench-check.sh lists, and by cholesky.
#ifndef THRUM_BENCH_VERDICT_HPP
#define THRUM_BENCH_VERDICT_HPP

#include <cstddef>
#include <string>
#include <vector>

#include "common.hpp"

namespace bench {

constexpr int kMissed = 3; // exit status

inline constexpr Flag kCheck = {"--check", "End with status 3 if a target is missed, undecided ones aside"};

// Of all that were asked for.
class Verdicts {
  public:
    // Kept if all of the interval is on the right side, missed if all of it is on the wrong one. Of fewer than six
    // measurements there is no interval that could say so.
    const char *at_most(const Estimate &ratio, double limit, double rounds) {
        return decide(ratio.high <= limit, ratio.low > limit, are_enough(static_cast<std::size_t>(rounds)));
    }
    const char *at_least(const Estimate &ratio, double target, double rounds) {
        return decide(ratio.low >= target, ratio.high < target, are_enough(static_cast<std::size_t>(rounds)));
    }
    // One of many verdicts, of which by intervals of their own some would be wrong where the measurements scatter.
    const char *at_most_of_many(const std::vector<double> &ratios, double limit, std::size_t cases) {
        const Estimate ratio = estimate(ratios, cases);
        return decide(ratio.high <= limit, ratio.low > limit, are_enough(ratios.size(), cases));
    }

    std::string text() const {
        return std::to_string(kept_) + " kept, " + std::to_string(missed_) + " missed, " +
               std::to_string(undecided_) + " undecided";
    }
    // After the report.
    void check(bool asked) const {
        if (asked && missed_ > 0)
            throw Failure("targets: " + text(), kMissed);
    }

  private:
    const char *decide(bool kept, bool missed, bool enough) {
        if (!enough || kept == missed)
            return ++undecided_, "undecided";
        return kept ? (++kept_, "kept") : (++missed_, "MISSED");
    }

    unsigned kept_ = 0, missed_ = 0, undecided_ = 0;
};

} // namespace bench

#endif
