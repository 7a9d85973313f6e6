// SPDX-License-Identifier: Apache-2.0
#include "stat/lock_waits.hpp"

#include <algorithm>

#include "stat/sites.hpp"

namespace thrum::stat {

std::size_t LockWaits::add(Lock lock, std::size_t era) {
    const auto [at, is_new] =
        known_.try_emplace({era, lock.address, lock.address == 0 ? lock.text : ""}, locks_.size());
    if (is_new) {
        locks_.emplace_back();
        locks_.back().lock = std::move(lock);
    }
    return at->second;
}

void LockWaits::note(std::size_t lock, pid_t waiter, double from, double until) {
    waiters_[lock].insert(waiter);
    steps_[lock].push_back({from, 1});
    steps_[lock].push_back({until, -1});
}

void LockWaits::count_waiters(std::vector<Step> &steps, LockUse &use) {
    std::sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) {
        return a.at != b.at ? a.at < b.at : a.by < b.by; // a thread that ends makes room for a new one
    });
    double since = 0, waited = 0, waited_by_all = 0;
    int waiters = 0;
    for (const Step &step : steps) {
        waited += waiters > 0 ? step.at - since : 0;
        waited_by_all += waiters * (step.at - since);
        since = step.at;
        waiters += step.by;
        use.waiters_most = std::max(use.waiters_most, static_cast<unsigned>(std::max(waiters, 0)));
    }
    use.waiters_mean = waited > 0 ? waited_by_all / waited : 0;
}

void LockWaits::finish(std::vector<Site> &sites) {
    double all = 0;
    for (const Site &site : sites) {
        all += site.doing == Doing::kLockWait ? static_cast<double>(site.samples) : 0;
        if (site.lock == kNone)
            continue;
        locks_[site.lock].samples += site.samples;
        locks_[site.lock].seconds += site.seconds;
    }
    for (std::size_t i = 0; i < locks_.size(); i++) {
        LockUse &use = locks_[i];
        use.share = all > 0 ? static_cast<double>(use.samples) / all : 0;
        use.threads = static_cast<unsigned>(waiters_[i].size());
        count_waiters(steps_[i], use);
    }
    sort_locks(locks_, sites);
}

} // namespace thrum::stat
