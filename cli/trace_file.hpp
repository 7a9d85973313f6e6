// SPDX-License-Identifier: Apache-2.0
//
// The file that libthrum writes for THRUM_TRACE (<thrum/trace.h>), read back and checked: it may be cut short, or be
// something else altogether.
#pragma once

#include <string>
#include <vector>

#include "thrum/trace.h"

namespace thrum {

struct TraceRing {
    thrum_trace_ring head;
    std::vector<thrum_trace_event> events;
};

// What one runtime of a process left.
struct TraceSection {
    thrum_trace_header header;
    std::vector<TraceRing> rings;
    std::string maps;
};

// Throws Failure (1) where it is not whole.
std::vector<TraceSection> read_trace(const std::string &path);

} // namespace thrum
