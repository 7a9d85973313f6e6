// SPDX-License-Identifier: Apache-2.0
#include "stat/sites.hpp"

#include <algorithm>
#include <numeric>

#include "stat/facts.hpp"
#include "stat/lock_table.hpp"
#include "stat/waits.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kSitesMost = 1000; // of a kind; the rest is in the shares, and that is all

// The order of a list by something, largest first.
template <typename Item>
std::vector<std::size_t> order_of(const std::vector<Item> &items, double Item::*by) {
    std::vector<std::size_t> order(items.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return items[a].*by > items[b].*by; });
    return order;
}

// Puts a list in order, and says where each went to.
template <typename Item>
std::vector<std::size_t> sort_by(std::vector<Item> &items, double Item::*by, std::size_t most) {
    const std::vector<std::size_t> order = order_of(items, by);
    std::vector<std::size_t> moved(items.size(), kNone);
    std::vector<Item> sorted;
    for (std::size_t i = 0; i < std::min(order.size(), most); i++) {
        moved[order[i]] = i;
        sorted.push_back(std::move(items[order[i]]));
    }
    items = std::move(sorted);
    return moved;
}

} // namespace

void add_once(std::vector<std::string> &to, const std::vector<std::string> &lines) {
    for (const std::string &line : lines)
        if (std::find(to.begin(), to.end(), line) == to.end())
            to.push_back(line);
}

// --- names ---------------------------------------------------------------------------------------------------

std::size_t Places::era_of(double at) const {
    std::size_t era = 0;
    while (era + 1 < maps_.size() && maps_[era + 1].since <= at)
        era++;
    return era;
}

std::vector<Frame> Places::frames(const RawStack &stack, std::size_t era) {
    Unwinder *unwinder = get(era);
    std::vector<Frame> found;
    if (unwinder != nullptr)
        found = without_surroundings(unwinder->frames(stack));
    return found.empty() ? unknown() : found;
}

std::vector<Frame> Places::unknown() {
    std::vector<Frame> nowhere(1);
    nowhere.front().module = "(unknown)";
    return nowhere;
}

Lock Places::lock(std::uint64_t futex, std::size_t era) {
    Unwinder *unwinder = get(era);
    return unwinder != nullptr ? unwinder->lock(futex) : Lock();
}

std::optional<Operand> Places::operand(const RawStack &stack, std::size_t era) {
    const Unwinder *unwinder = get(era);
    return unwinder != nullptr ? unwinder->operand(stack) : std::nullopt;
}

void Places::say_missing(std::vector<std::string> &warnings) const {
    for (const auto &unwinder : unwinders_)
        if (unwinder != nullptr)
            add_once(warnings, unwinder->missing());
}

Unwinder *Places::get(std::size_t era) {
    if (era >= maps_.size())
        return nullptr;
    if (unwinders_[era] == nullptr)
        unwinders_[era] = std::make_unique<Unwinder>(maps_[era]);
    return unwinders_[era].get();
}

// --- sites and locks -----------------------------------------------------------------------------------------

std::string key_of(const std::vector<Frame> &stack, bool with_first_line) {
    std::string key;
    for (const Frame &frame : stack) {
        const bool with_line = with_first_line || &frame != &stack.front();
        const bool has_place =
            frame.function.empty() && frame.is_user; // a place in a library would say no more
        key += frame.module + '|' + (has_place ? std::to_string(frame.offset) : frame.function) + '|' +
               (with_line ? frame.file + ':' + std::to_string(frame.line) : "") + '\n';
    }
    return key;
}

std::vector<std::size_t> sort_sites(std::vector<Site> &sites, double Site::*by) {
    return sort_by(sites, by, kSitesMost);
}

void sort_waits(Report &report, const std::vector<std::size_t> &place) {
    const std::vector<std::size_t> moved = sort_sites(report.waits, &Site::share);
    sort_sites(report.others, &Site::seconds);
    for (Thread &thread : report.threads)
        for (Thread::Span &span : thread.spans)
            if (span.site != kNone)
                span.site = moved[place[span.site]];
    for (Stuck &stuck : report.deadlock.threads)
        if (stuck.site != kNone)
            stuck.site = moved[place[stuck.site]];
}

void sort_locks(std::vector<LockUse> &locks, std::vector<Site> &sites) {
    const std::vector<std::size_t> moved = sort_by(locks, &LockUse::share, locks.size());
    for (Site &site : sites)
        if (site.lock != kNone)
            site.lock = moved[site.lock];
}

Lock as_python_lock(Lock lock) {
    lock.address -= lock.symbol.empty() ? 0 : lock.offset;
    lock.offset = 0;
    lock.text = "Python's global interpreter lock (GIL)";
    return lock;
}

Lock as_parked(Lock lock, const std::vector<Frame> &stack) {
    const ListedLock *listed = lock_table().find(stack);
    if (listed == nullptr || !listed->parks)
        return lock;
    const Place place = place_of(stack);
    lock.text = listed->name;
    if (!place.is_known())
        return lock;
    Lock parked; // whose text is all that tells it from others
    parked.text = listed->name + " in " + (place.function.empty() ? place.body : place.function);
    return parked;
}

} // namespace thrum::stat
