// SPDX-License-Identifier: Apache-2.0
#include "trace_watch.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "elf.hpp"
#include "process.hpp"
#include "tools/failure.hpp"

namespace thrum {

namespace {

constexpr std::uint64_t kMapsLater = 1000000000; // ns between two looks at the map: a library may be loaded
constexpr std::uint64_t kSizeMost = 1000000000;  // of a ring; what has more is none any more
constexpr std::size_t kAtOnce = 1 << 16;         // events

thrum_trace_timestamp now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return {inspect_ticks(),
            static_cast<std::uint64_t>(time.tv_sec) * 1000000000 + static_cast<std::uint64_t>(time.tv_nsec)};
}

bool is_moment(const thrum_trace_event &event) {
    return (event.what & THRUM_TRACE_KIND_MASK) != THRUM_TRACE_NAME;
}

// The rings are copied one after the other. What happened since the first was begun is in some of them only: a thread would
// run on two workers at a time.
std::vector<thrum_trace_event>::const_iterator until(const std::vector<thrum_trace_event> &events,
                                                     std::uint64_t ticks) {
    return std::find_if(events.begin(), events.end(), [ticks](const thrum_trace_event &event) {
        return is_moment(event) && event.ticks > ticks;
    });
}

// An event may be older than the process that reads it: its moment is found by the rate that was seen since.
thrum_trace_timestamp begin_of(const std::map<std::uint32_t, TraceWatch::Ring> &rings,
                               const thrum_trace_timestamp &begin, const thrum_trace_timestamp &end) {
    std::uint64_t first = begin.ticks;
    for (const auto &[worker, ring] : rings)
        for (const thrum_trace_event &event : ring.events)
            if (is_moment(event))
                first = std::min(first, event.ticks);
    if (first >= begin.ticks || end.ticks <= begin.ticks)
        return begin;
    const double rate = static_cast<double>(end.ns - begin.ns) / static_cast<double>(end.ticks - begin.ticks);
    const double before = rate * static_cast<double>(begin.ticks - first);
    return {first,
            before < static_cast<double>(begin.ns) ? begin.ns - static_cast<std::uint64_t>(before) : 0};
}

} // namespace

TraceWatch::TraceWatch(pid_t pid)
    : pid_(pid), source_{read, this, 0, nullptr, 0}, begin_(now()), end_(begin_) {}

bool TraceWatch::read(void *watch, std::uint64_t address, void *to, std::size_t size) {
    return elf::read_process(static_cast<TraceWatch *>(watch)->pid_, address, to, size);
}

bool TraceWatch::find_image() {
    source_.context = this;
    const bool is_known = source_.image != 0;
    try {
        if (!is_known)
            source_.image = process::find_in_libthrum(pid_, INSPECT_IMAGE).value_or(0);
    } catch (const Failure &) { // it may not be read, or is about to become another program
        return false;
    }
    const char *wrong = source_.image != 0 ? inspect_check(&source_) : nullptr;
    trouble_ = wrong != nullptr ? wrong : "";
    if (source_.image == 0 || wrong != nullptr) {
        source_.image = 0; // to be found again: it may have executed another program
        return false;
    }
    if (!is_known && image_before_ != source_.image)
        rings_.clear();
    image_before_ = source_.image;
    return true;
}

bool TraceWatch::list(std::vector<struct inspect_ring> &rings) const {
    rings.clear();
    return inspect_rings(
        &source_,
        [](void *list, const struct inspect_ring *ring) {
            if (ring->events != 0 && ring->size > 1 && ring->size <= kSizeMost)
                static_cast<std::vector<struct inspect_ring> *>(list)->push_back(*ring);
            return true;
        },
        &rings);
}

// Those with the numbers from `first` to the latest.
bool TraceWatch::copy(const struct inspect_ring &from, std::uint64_t first,
                      std::vector<thrum_trace_event> &to) const {
    for (std::uint64_t at = first; at < from.count;) {
        const std::uint64_t place = at % from.size;
        const std::uint64_t part =
            std::min({from.count - at, from.size - place, static_cast<std::uint64_t>(kAtOnce)});
        const std::size_t before = to.size();
        to.resize(before + part);
        if (!elf::read_process(pid_, from.events + place * sizeof(thrum_trace_event), to.data() + before,
                               part * sizeof(thrum_trace_event))) {
            to.resize(before);
            return false;
        }
        at += part;
    }
    return true;
}

void TraceWatch::take(const struct inspect_ring &before) {
    Ring &ring = rings_[before.worker];
    if (before.count < ring.seen || before.size != ring.size) // of another runtime
        ring = Ring();
    ring.size = before.size;
    ring.is_relief = before.is_relief;
    const std::uint64_t oldest = before.count > before.size ? before.count - before.size : 0;
    const std::uint64_t first = std::max(ring.seen, oldest);
    if (first > ring.seen) { // there is a hole
        ring.lost += ring.events.size() + (first - ring.seen);
        ring.events.clear();
    }
    std::vector<thrum_trace_event> fresh;
    if (!copy(before, first, fresh))
        return;
    ring.seen = before.count;
    ring.events.insert(ring.events.end(), fresh.begin(), fresh.end());
}

// The worker may have gone round meanwhile: what it wrote to since the events were read is something else. Nor are more kept
// than a ring has.
void TraceWatch::drop_overwritten(const struct inspect_ring &after) {
    Ring &ring = rings_[after.worker];
    const std::uint64_t oldest = ring.seen - ring.events.size();
    const std::uint64_t sound = after.count + 1 > ring.size ? after.count + 1 - ring.size : 0;
    const std::uint64_t fresh = std::min(sound, ring.seen);
    if (fresh <= oldest)
        return;
    ring.events.erase(ring.events.begin(), ring.events.begin() + static_cast<std::ptrdiff_t>(fresh - oldest));
    ring.lost += fresh - oldest;
}

void TraceWatch::look_at_maps() {
    if (!maps_.empty() && end_.ns - maps_at_ < kMapsLater)
        return;
    if (auto text = process::read_maps(pid_); text && !text->empty())
        maps_ = std::move(*text);
    maps_at_ = end_.ns;
}

bool TraceWatch::look() {
    std::vector<struct inspect_ring> rings;
    if (!find_image())
        return false;
    const thrum_trace_timestamp begun = now();
    if (!list(rings))
        return false;
    end_ = begun; // of the rings that are read later there is more, which section() leaves out
    for (const struct inspect_ring &ring : rings)
        take(ring);
    std::atomic_thread_fence(std::memory_order_acquire); // the counts are read behind the events
    if (list(rings))
        for (const struct inspect_ring &ring : rings)
            drop_overwritten(ring);
    look_at_maps();
    return true;
}

void TraceWatch::forget_what_was() {
    for (auto &[worker, ring] : rings_) {
        ring.events.clear();
        ring.lost = 0;
    }
}

bool TraceWatch::has_any() const {
    return std::any_of(rings_.begin(), rings_.end(),
                       [](const auto &ring) { return !ring.second.events.empty(); });
}

TraceSection TraceWatch::section() const {
    TraceSection section{};
    std::memcpy(section.header.magic, THRUM_TRACE_MAGIC, sizeof section.header.magic);
    section.header.version = THRUM_TRACE_VERSION;
    section.header.header_bytes = sizeof section.header;
    section.header.event_bytes = sizeof(thrum_trace_event);
    section.header.rings = static_cast<std::uint32_t>(rings_.size());
    section.header.pid = static_cast<std::uint64_t>(pid_);
    section.header.begin = begin_of(rings_, begin_, end_);
    section.header.end = end_;
    section.header.maps_bytes = maps_.size();
    section.maps = maps_;
    for (const auto &[worker, ring] : rings_) {
        std::vector<thrum_trace_event> events(ring.events.begin(), until(ring.events, end_.ticks));
        section.rings.push_back(
            {{worker, ring.is_relief ? 1U : 0U, events.size(), ring.lost}, std::move(events)});
    }
    return section;
}

} // namespace thrum
