// SPDX-License-Identifier: Apache-2.0
//
// The table of rules, and how it is searched. They are tried from top to bottom. A rule that explains what was lost ends
// the search for the weaker ones below it: a program that waits for a hidden lock also has threads without a CPU now and
// then, and reporting both helps no user.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include "stat/facts.hpp"
#include "stat/nameless.hpp"
#include "stat/rules/findings.hpp"
#include "stat/rules/grain.hpp"
#include "stat/verdict_text.hpp"

namespace thrum::stat {

namespace {

enum Weight { kEnds, kExplains, kHints, kRest }; // what is found ends the search for those behind

struct Rule {
    const char *name;
    Findings (*find)(const Facts &);
    Weight weight;
};

const Rule kRules[] = {
    {"deadlock", deadlock, kEnds},
    {"nested", nested, kEnds},
    {"children", children, kEnds},
    {"affinity", affinity, kExplains},
    {"quota", quota, kExplains},
    {"grain", grain, kExplains},
    {"hidden-lock", hidden_locks, kExplains},
    {"allocator", allocator, kExplains},
    {"held-asleep", held_asleep, kExplains},
    {"priority", priority, kExplains},
    {"one-lock", one_lock, kExplains},
    {"convoy", convoy, kExplains},
    {"hot-mutex", hot_mutex, kExplains},
    {"true-sharing", true_sharing, kExplains},
    {"fork-copies", fork_copies, kExplains},
    {"one-file", one_file, kExplains},
    {"address-space", address_space, kExplains},
    {"herd", herd, kExplains},
    {"thread-churn", thread_churn, kExplains},
    {"busy-wait", busy_wait, kExplains},
    {"polling", polling, kExplains},
    {"fixed-time", fixed_time, kHints},
    {"io-bound", io_bound, kHints},
    {"unequal", unequal, kHints},
    {"sequential", sequential, kHints},
    {"coherency", coherency, kHints},
    {"false-sharing", false_sharing, kHints},
    {"oversubscribed", oversubscribed, kHints},
    {"scales", scales, kRest},
    {"inconclusive", inconclusive, kRest},
};

// Much, a part, or little of what is lost; finer differences are a matter of chance.
int rank_of(double explains) {
    return explains >= kHighLockShare ? 2 : explains >= kBurned ? 1 : 0;
}

// What explains more first, then the surest, and of equals the one that the table has first.
void order(Findings &findings) {
    const auto rank = [](const Finding &one) {
        return std::pair(rank_of(one.explains), static_cast<int>(one.confidence));
    };
    std::stable_sort(findings.begin(), findings.end(),
                     [rank](const Finding &a, const Finding &b) { return rank(a) > rank(b); });
}

constexpr double kWorthTelling = 1.0 / 3; // of what the first explains

// Of two with one sentence, as of locks in one array, the first; and those that explain little beside it are left out.
Findings without_small(Findings findings) {
    Findings kept;
    for (Finding &one : findings) {
        const bool is_known = std::any_of(kept.begin(), kept.end(), [&one](const Finding &other) {
            return other.rule == one.rule && other.cause == one.cause;
        });
        if (!is_known && (kept.empty() || one.explains >= kWorthTelling * kept.front().explains))
            kept.push_back(std::move(one));
    }
    return kept;
}

// Where speedup shows no loss.
Findings of_innocent(const Facts &facts) {
    Findings found = is_dear_churn(facts) ? thread_churn(facts) : Findings{};
    if (found.empty() && is_dear_handing(facts))
        found = grain(facts);
    return found.empty() ? scales(facts) : found;
}

// Spinning at a lock, or at what all threads write, is contention for that.
void drop_doubles(Findings &findings) {
    const auto explains_spinning = [&findings](const Finding &spinning) {
        return std::any_of(findings.begin(), findings.end(), [&spinning](const Finding &other) {
            return other.rule != spinning.rule && !other.function.empty() &&
                   other.function == spinning.function;
        });
    };
    std::vector<bool> drop;
    for (const Finding &one : findings)
        drop.push_back(one.rule == "busy-wait" && explains_spinning(one));
    for (std::size_t i = findings.size(); i-- > 0;)
        if (drop[i])
            findings.erase(findings.begin() + static_cast<std::ptrdiff_t>(i));
}

Findings search(const Facts &facts) {
    Findings found;
    for (const Weight weight : {kEnds, kExplains, kHints, kRest}) {
        Findings here;
        for (const Rule &rule : kRules)
            if (rule.weight == weight && (weight != kRest || here.empty()))
                for (Finding &one : rule.find(facts))
                    here.push_back(std::move(one));
        drop_doubles(here);
        order(here);
        here = without_small(std::move(here));
        std::move(here.begin(), here.end(), std::back_inserter(found));
        if (!found.empty())
            break;
    }
    return found;
}

std::string capitalised(std::string sentence) {
    if (!sentence.empty())
        sentence.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    return sentence;
}

} // namespace

std::vector<std::string> rule_names() {
    std::vector<std::string> names;
    for (const Rule &rule : kRules)
        names.emplace_back(rule.name);
    return names;
}

void conclude(Report &report, const std::string &failure) {
    const Facts facts(report);
    report.outcome = outcome_of(facts, failure);
    if (report.has_failed &&
        report.deadlock.threads.empty()) { // whatever its threads did before, this is what to mend
        report.findings = {finding("inconclusive", capitalised(failure),
                                   "Find out why first: its times and waits mean nothing.",
                                   Confidence::kLow)};
        report.verdict = verdict_text(facts, failure);
        return;
    }
    const bool innocent = report.outcome == Outcome::kScales;
    report.findings = innocent && report.deadlock.threads.empty() ? of_innocent(facts) : search(facts);
    const bool is_stuck = !report.findings.empty() && report.findings.front().rule == "deadlock";
    if (is_stuck && !report.deadlock.threads.empty()) // not one of its children
        report.outcome = Outcome::kStuck;
    const bool unsure = report.outcome == Outcome::kInconclusive;
    const bool said = !report.findings.empty() && report.findings.back().rule == "inconclusive";
    if (unsure && !said)
        for (Finding &one : inconclusive(facts))
            report.findings.push_back(std::move(one));
    for (Finding &one : report.findings)
        if (!failure.empty() && one.rule == "inconclusive")
            one = report.timed_out
                      ? finding("inconclusive", "A run took longer than --timeout allows",
                                "Allow more seconds, or give the program less work.", Confidence::kLow)
                      : finding("inconclusive", "The program failed",
                                "Find out why first: its times mean nothing.", Confidence::kLow);
    report.verdict = verdict_text(facts, failure);
    for (std::string &sentence : nameless_code(report))
        report.warnings.push_back(std::move(sentence));
}

} // namespace thrum::stat
