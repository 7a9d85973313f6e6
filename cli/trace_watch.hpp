// SPDX-License-Identifier: Apache-2.0
//
// The trace of a process that still runs, read out of its memory (src/inspect): for one that a signal will end before it has
// written anything, and for `thrum trace -p`. The process is not stopped and does nothing for it. Used by trace.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inspect/inspect.h"
#include "trace_file.hpp"

namespace thrum {

class TraceWatch {
  public:
    // Nothing is read yet.
    explicit TraceWatch(pid_t pid);
    TraceWatch(const TraceWatch &) = delete;
    TraceWatch &operator=(const TraceWatch &) = delete;

    // Copies what is new. False: there is no runtime that keeps a trace, or it cannot be read; what was seen stays.
    bool look();
    // Why look() found no runtime, where libthrum is there; empty: for no such reason.
    const std::string &trouble() const { return trouble_; }
    // What is there so far is not wanted.
    void forget_what_was();
    bool has_any() const;
    // In the form in which a process writes it; the latest events of each worker, as many as its ring has.
    TraceSection section() const;

    struct Ring {
        std::uint64_t size = 0, seen = 0;      // seen: events that there were, at the last look
        std::uint64_t lost = 0;                // of these, not in `events`
        std::vector<thrum_trace_event> events; // oldest first
        bool is_relief = false;
    };

  private:
    static bool read(void *watch, std::uint64_t address, void *to, std::size_t size);
    bool find_image();
    bool list(std::vector<struct inspect_ring> &rings) const;
    bool copy(const struct inspect_ring &from, std::uint64_t first, std::vector<thrum_trace_event> &to) const;
    void take(const struct inspect_ring &before);
    void drop_overwritten(const struct inspect_ring &after);
    void look_at_maps();

    pid_t pid_;
    struct inspect_source source_;
    thrum_trace_timestamp begin_, end_;
    std::map<std::uint32_t, Ring> rings_; // by worker
    std::uint64_t image_before_ = 0;      // the latest that was found
    std::string maps_, trouble_;
    std::uint64_t maps_at_ = 0; // ns
};

} // namespace thrum
