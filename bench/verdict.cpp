// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include "tools/statistics.hpp"

namespace bench {

namespace {

bool are_enough(double rounds, std::size_t cases = 1) {
    return thrum::has_median_interval(static_cast<std::size_t>(rounds), cases);
}

std::string text_of(const std::vector<Judged> &all) {
    std::string text;
    for (const Judged &one : all)
        if (one.verdicts.are_any())
            text += (text.empty() ? "" : "; ") + one.of + (one.of.empty() ? "" : " ") + one.verdicts.text();
    return text;
}

} // namespace

const char *Verdicts::at_most(const Estimate &ratio, double limit, double rounds) {
    return decide(ratio.high <= limit, ratio.low > limit, are_enough(rounds));
}

const char *Verdicts::at_least(const Estimate &ratio, double target, double rounds) {
    return decide(ratio.low >= target, ratio.high < target, are_enough(rounds));
}

const char *Verdicts::at_most_of_many(const std::vector<double> &ratios, double limit, std::size_t cases) {
    const Estimate ratio = estimate(ratios, cases);
    return decide(ratio.high <= limit, ratio.low > limit,
                  are_enough(static_cast<double>(ratios.size()), cases));
}

std::string Verdicts::text() const {
    return std::to_string(kept_) + " kept, " + std::to_string(missed_) + " missed, " +
           std::to_string(undecided_) + " undecided";
}

const char *Verdicts::decide(bool kept, bool missed, bool enough) {
    if (!enough || kept == missed)
        return ++undecided_, "undecided";
    return kept ? (++kept_, "kept") : (++missed_, "MISSED");
}

void conclude(Report *report, const Options &options, const std::vector<Judged> &all) {
    const std::string text = text_of(all);
    if (!text.empty())
        report->note("By the limits: " + text + ".");
    report->print();
    for (const Judged &one : all)
        if (options.check && one.is_asked && one.verdicts.has_missed())
            throw Failure("targets: " + text, kMissed);
}

void conclude(Report *report, const Options &options, const Verdicts &verdicts) {
    conclude(report, options, {{verdicts, ""}});
}

} // namespace bench
