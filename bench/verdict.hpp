// SPDX-License-Identifier: Apache-2.0
//
// Whether a measured ratio keeps what is asked of it, as far as the interval of its median can tell; and the end of a
// benchmark with limits, which with --check has a status of its own if one is missed. Used by those that
// scripts/bench-check.sh lists, and by cholesky.
#ifndef THRUM_BENCH_VERDICT_HPP
#define THRUM_BENCH_VERDICT_HPP

#include <string>
#include <vector>

#include "common.hpp"

namespace bench {

constexpr int kMissed = 3; // exit status

// Of all that were asked for.
class Verdicts {
  public:
    // Kept if all of the interval is on the right side, missed if all of it is on the wrong one; undecided if it holds
    // nothing. One of many verdicts wants an estimate of as many cases: by intervals of their own some would be wrong where
    // the measurements scatter.
    const char *at_most(const Estimate &ratio, double limit);
    const char *at_least(const Estimate &ratio, double target);

    bool are_any() const { return kept_ + missed_ + undecided_ > 0; }
    bool has_missed() const { return missed_ > 0; }
    std::string text() const;

  private:
    const char *decide(bool kept, bool missed, bool holds);

    unsigned kept_ = 0, missed_ = 0, undecided_ = 0;
};

// Verdicts with what they are of, where a benchmark has several kinds.
struct Judged {
    const Verdicts &verdicts;
    std::string of;
    bool is_asked = true; // false: nothing is asked of these, they are told
};

// The end of a benchmark with limits: notes the verdicts, prints the report, and fails with kMissed if --check was given
// and one that is asked for is missed.
void conclude(Report *report, const Options &options, const std::vector<Judged> &all);
void conclude(Report *report, const Options &options, const Verdicts &verdicts);

} // namespace bench

#endif
