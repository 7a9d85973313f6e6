// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

namespace bench {

namespace {

std::string text_of(const std::vector<Judged> &all) {
    std::string text;
    for (const Judged &one : all)
        if (one.verdicts.are_any())
            text += (text.empty() ? "" : "; ") + one.of + (one.of.empty() ? "" : " ") + one.verdicts.text();
    return text;
}

} // namespace

const char *Verdicts::at_most(const Estimate &ratio, double limit) {
    return decide(ratio.high <= limit, ratio.low > limit, ratio.holds);
}

const char *Verdicts::at_least(const Estimate &ratio, double target) {
    return decide(ratio.low >= target, ratio.high < target, ratio.holds);
}

std::string Verdicts::text() const {
    return std::to_string(kept_) + " kept, " + std::to_string(missed_) + " missed, " +
           std::to_string(undecided_) + " undecided";
}

const char *Verdicts::decide(bool kept, bool missed, bool holds) {
    if (!holds || kept == missed)
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
