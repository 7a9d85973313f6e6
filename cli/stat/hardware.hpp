// SPDX-License-Identifier: Apache-2.0
//
// The layer that reads the processor's counters, where there are any: virtual machines and containers mostly have none.
// Nothing is sampled; the kernel adds up what each thread of the program has counted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stat/layers.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

class HardwareCounters : public Layer {
  public:
    struct Event {
        std::uint32_t type; // as perf_event_open(2) takes them
        std::uint64_t config;
        double HardwareCounts::*into;
    };
    static std::vector<Event> of_processor();

    explicit HardwareCounters(std::vector<Event> events = of_processor()) : events_(std::move(events)) {}
    void forked(pid_t child) override;
    void poll(double) override {}
    void finish();

    std::optional<HardwareCounts> counters; // nothing where there are none, or they may not be read

  private:
    struct Open {
        Descriptor event;
        double HardwareCounts::*into;
    };

    std::vector<Event> events_;
    std::vector<Open> open_;
    int refusal_ = 0;
    bool with_kernel_ = true;
};

} // namespace thrum::stat
