// SPDX-License-Identifier: Apache-2.0
//
// What the rules make their findings of.
#include "stat/rules/findings.hpp"

#include <cstring>

#include "tools/text.hpp"

namespace thrum::stat {

std::string percent(double share) {
    return fixed(100 * share, share > 0 && share < 0.0095 ? 1 : 0) + " %";
}

Finding finding(const char *rule, const std::string &cause, const std::string &fix, Confidence confidence,
                const Place &place) {
    return {rule, cause, fix, confidence, place.function, place.file, place.line, {}};
}

std::string at_place(const Place &place) {
    if (place.function.empty())
        return place.code.empty() ? "" : " at " + place.code;
    return " in " + place.function + "()";
}

std::string library_name(const std::string &module) {
    const std::string name = module.substr(0, module.find(".so"));
    return name.compare(0, 8, "ld-linux") == 0 ? "the dynamic linker" : name.empty() ? "a library" : name;
}

bool has_lock_in_its_name(const std::string &function) {
    static constexpr const char *kParts[] = {"lock", "Lock", "spin", "acquire", "mutex", "Mutex"};
    for (const char *part : kParts)
        for (std::size_t at = function.find(part); at != std::string::npos; at = function.find(part, at + 1))
            if (*part != 'l' || at == 0 || std::strchr("bBcC", function[at - 1]) == nullptr)
                return true;
    return false;
}

std::string source_of(const Place &place) {
    return place.file.empty() ? "" : " (" + place.file + ":" + std::to_string(place.line) + ")";
}

void add_place_evidence(const std::string &what, const Place &place, Finding &found) {
    if (!place.function.empty())
        found.evidence.push_back(what + " in " + place.function + "()" + source_of(place));
    else if (!place.code.empty())
        found.evidence.push_back(what + " at " + place.code);
}

bool has_lost(const Facts &facts) {
    const Outcome outcome = facts.report.outcome;
    return outcome == Outcome::kSlower || outcome == Outcome::kNoFaster || facts.inflation >= kInflated;
}

double share_without_cpu(const Report &report) {
    const double runnable = report.doing[static_cast<int>(Doing::kRunnable)];
    const double wanted = report.doing[static_cast<int>(Doing::kRunning)] + runnable;
    return wanted > 0 ? runnable / wanted : 0;
}

std::string without_cpu_evidence(const Report &report) {
    return percent(share_without_cpu(report)) + " of the time that threads were runnable they had no CPU";
}

std::string cpu_evidence(const Facts &facts) {
    return "CPU time " + fixed(facts.inflation, 1) + "x that of " + counted(facts.few->threads, "thread") +
           (facts.kernel_share ? ", " + percent(*facts.kernel_share) + " of it in the kernel" : "");
}

} // namespace thrum::stat
