// SPDX-License-Identifier: Apache-2.0
#include "stat/hardware.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "stat/perf_events.hpp"

namespace thrum::stat {

namespace {

constexpr std::uint64_t kL1Misses =
    PERF_COUNT_HW_CACHE_L1D | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;

// More events than the processor has counters for take turns; what was counted stands for the rest of the time.
double read_scaled(int fd) {
    std::uint64_t value[3] = {}; // count, time enabled, time counted
    if (read(fd, value, sizeof value) != sizeof value || value[2] == 0)
        return 0;
    return static_cast<double>(value[0]) * static_cast<double>(value[1]) / static_cast<double>(value[2]);
}

} // namespace

std::vector<HardwareCounters::Event> HardwareCounters::of_processor() {
    return {{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, &HardwareCounts::instructions},
            {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, &HardwareCounts::cycles},
            {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, &HardwareCounts::cache_misses},
            {PERF_TYPE_HW_CACHE, kL1Misses, &HardwareCounts::l1_misses}};
}

// With the kernel's part where that is allowed, all of them alike.
void HardwareCounters::forked(pid_t child) {
    for (const Event &event : events_) {
        perf_event_attr attributes = event_of_program(event.type, event.config);
        attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        attributes.exclude_hv = 1;
        attributes.exclude_kernel = with_kernel_ ? 0 : 1;
        int fd = open_event(attributes, child, -1);
        if (fd < 0 && with_kernel_ && (errno == EACCES || errno == EPERM) && open_.empty()) {
            with_kernel_ = false;
            attributes.exclude_kernel = 1;
            fd = open_event(attributes, child, -1);
        }
        if (fd >= 0)
            open_.push_back({Descriptor(fd), event.into});
        else if (refusal_ == 0)
            refusal_ = errno;
    }
}

void HardwareCounters::finish() {
    if (!open_.empty())
        counters.emplace();
    for (const Open &one : open_)
        *counters.*one.into = read_scaled(one.event.get());
    open_.clear();
    if (!counters)
        how_known.push_back(std::string("There are no hardware counters here (") + std::strerror(refusal_) +
                            "): instructions per cycle and cache misses are unknown.");
    else
        how_known.push_back(std::string("Instructions, cycles and cache misses are the processor's counts ") +
                            (with_kernel_ ? "of the program, and of the kernel on its behalf."
                                          : "of the program, without the kernel on its behalf."));
}

} // namespace thrum::stat
