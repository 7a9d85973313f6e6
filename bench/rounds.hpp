// SPDX-License-Identifier: Apache-2.0
//
// Rounds: each measures every variant once, beginning with another one each time, so that what else the machine does meets
// all of them. What is compared is compared within a round. A benchmark says which variants there are, how one is measured,
// and which numbers of a sample it reports; this keeps the samples, and has the medians. Used by nearly all benchmarks.
#ifndef THRUM_BENCH_ROUNDS_HPP
#define THRUM_BENCH_ROUNDS_HPP

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common.hpp"

namespace bench {

// What takes turns.
struct Turns {
    double rounds;
    std::vector<std::string> variants; // for people: what is measured now
    // Of many rows with some variants each: so many variants that follow each other are a row, and take turns among
    // themselves, one directly after another. 0: all do.
    std::size_t row = 0;
};

// Calls `measure(variant, round)` for each variant once a round. One for which it returned false has no more turns.
void take_turns(const Turns &turns, const std::function<bool(std::size_t, std::size_t)> &measure);

// A sample of each variant a round. `Of`, below, is what is looked at in a sample: a member, a function without arguments, or
// a function of the sample.
template <typename Sample>
class Rounds {
  public:
    // Measures them all. No sample: the variant is not available here, and has no more turns.
    using Measure = std::function<std::optional<Sample>(std::size_t variant, std::size_t round)>;
    Rounds(const Turns &turns, const Measure &measure)
        : samples_(turns.variants.size()), available_(turns.variants.size(), true) {
        take_turns(turns, [&](std::size_t variant, std::size_t round) {
            std::optional<Sample> sample = measure(variant, round);
            available_[variant] = sample.has_value();
            if (sample)
                samples_[variant].push_back(std::move(*sample));
            return sample.has_value();
        });
    }

    bool has(std::size_t variant) const { return available_[variant]; }
    const std::vector<Sample> &samples(std::size_t variant) const { return samples_[variant]; }

    template <typename Of>
    std::vector<double> values(std::size_t variant, const Of &of) const {
        std::vector<double> values;
        values.reserve(samples_[variant].size());
        for (const Sample &sample : samples_[variant])
            values.push_back(std::invoke(of, sample));
        return values;
    }
    template <typename Of>
    Estimate of(std::size_t variant, const Of &of) const {
        return estimate(values(variant, of));
    }
    // For a table in which some variants have no number.
    template <typename Of>
    Cell cell(std::size_t variant, const Of &of) const {
        return has(variant) ? Cell(this->of(variant, of)) : Cell("-");
    }

    // `compare(one, other)` of the samples that two variants have in the same round.
    template <typename Compare>
    std::vector<double> compared(std::size_t one, std::size_t other, const Compare &compare) const {
        std::vector<double> values;
        for (std::size_t i = 0; i < samples_[one].size() && i < samples_[other].size(); i++)
            values.push_back(compare(samples_[one][i], samples_[other][i]));
        return values;
    }
    template <typename Of>
    std::vector<double> ratios(std::size_t variant, std::size_t to, const Of &of) const {
        return compared(variant, to, [&](const Sample &one, const Sample &other) {
            return std::invoke(of, one) / std::invoke(of, other);
        });
    }
    template <typename Of>
    Estimate ratio(std::size_t variant, std::size_t to, const Of &of) const {
        return estimate(ratios(variant, to, of));
    }

  private:
    std::vector<std::vector<Sample>> samples_; // by variant
    std::vector<bool> available_;
};

// A sample that is just numbers, as a child process prints them; and one of these.
using Numbers = std::vector<double>;
Numbers numbers_in(const std::string &text, std::size_t count); // no fewer, or it is a Failure
inline auto nth(std::size_t which, double factor = 1) {
    return [which, factor](const Numbers &numbers) { return numbers.at(which) * factor; };
}

} // namespace bench

#endif
