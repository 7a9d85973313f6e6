// SPDX-License-Identifier: Apache-2.0
//
// Threads that wait for work by turns: one holds a lock while it waits for the next piece, the others wait for the lock.
// It looks like contention, and nothing is lost: while one of them waits, no work is queued.
#include "stat/rules/findings.hpp"

#include <algorithm>

#include "stat/waits.hpp"

namespace thrum::stat {

namespace {

// Of the time, in which one of them waited for work. Where work is queued, none does; a busy machine makes it less.
constexpr double kOften = 0.2;

bool is_condition(const std::vector<Frame> &stack) {
    const ListedLock *listed = lock_table().find(stack);
    return is_in_condition_call(stack) || (listed != nullptr && listed->name == "a condition");
}

} // namespace

// Wrong if the lock is not held at that wait: in a function that waits for work without it, and takes it elsewhere. A wait on
// a condition, which gives the lock back, is therefore left out. That of OpenMP's queue is not held
// where its threads wait for tasks.
bool is_by_turns(const Facts &facts, const Culprit &culprit) {
    double waited = 0;
    for (const Site &site : facts.report.others) {
        const bool is_for_work = site.doing == Doing::kIdleWait || site.is_message;
        if (is_for_work && culprit.place.is_known() && !is_condition(site.stack) &&
            place_of(site.stack).function == culprit.place.function)
            waited += site.seconds;
    }
    return culprit.kind == Culprit::kOwn && !culprit.is_of_tasks && facts.report.sampled_wall > 0 &&
           waited >= kOften * facts.report.sampled_wall;
}

} // namespace thrum::stat
