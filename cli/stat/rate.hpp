// SPDX-License-Identifier: Apache-2.0
//
// What a program prints of its own speed, for one that runs for a fixed time whatever number of threads it has (--rate). Used by
// stat.cpp and examination.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stat/run.hpp"

namespace thrum::stat {

class Rate {
  public:
    // As of ECMAScript. Throws Failure (2) where it is none.
    explicit Rate(const std::string &regex);
    ~Rate();

    const std::string &regex() const { return regex_; }
    // The number in the last match, more exactly in its first group if it has one: "1234.5", "1,234". Nothing where no match
    // has a number above 0.
    std::optional<double> find(const std::string &output) const;

  private:
    struct Compiled;
    std::string regex_;
    std::unique_ptr<Compiled> compiled_;
};

// The times and counts of a run as they would be for the work of another, which is its rate times its wall time.
void scale_to_work(Measured &run, double rate, double work);

} // namespace thrum::stat
