// SPDX-License-Identifier: Apache-2.0
//
// A trace in the Trace Event Format (JSON), which Perfetto (https://ui.perfetto.dev), Chrome's about:tracing and
// speedscope read: a track for each worker, with a slice for each run of a thread.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trace_file.hpp"

namespace thrum {

struct TraceSummary {
    std::size_t threads = 0, tasklets = 0, runs = 0, workers = 0; // a worker counts once for each runtime
    std::uint64_t lost = 0;                                       // events
};

// Whether all of it could be written is for the caller to see (ferror).
TraceSummary write_trace_json(const std::vector<TraceSection> &sections, std::FILE *to);

} // namespace thrum
