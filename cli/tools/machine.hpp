// SPDX-License-Identifier: Apache-2.0
//
// The machine that was measured on, and what others did on it meanwhile. Used by `thrum compare`, `thrum stat` and the benchmarks.
#pragma once

#include <optional>
#include <string>

namespace thrum {

// A moment; two of them make a Load.
struct Moment {
    double seconds = 0;           // since some beginning
    double own = 0;               // CPU time of this process and of its children that were waited for
    std::optional<double> busy;   // of all CPUs, from /proc/stat, in seconds; nothing where it cannot be read
    double stolen = 0;            // by the hypervisor, of all CPUs
    std::optional<double> waited; // PSI: how long something was runnable without a CPU, our own included
    double load = 0;              // /proc/loadavg, the last minute
};
Moment moment_now();

struct Load {
    double seconds = 0;
    std::optional<double> others; // CPUs that others used, on average: 0.9 of two, say
    double stolen = 0;            // likewise, what the hypervisor gave to others
    std::optional<double> waited; // PSI's share of the time, 0 to 1; the program's own threads wait as well
    double load_before = 0, load_after = 0;
    double taken() const { return others.value_or(0) + stolen; } // CPUs that this process could not have
};
Load load_between(const Moment &before, const Moment &after);

struct Machine {
    std::string processor, kernel, libc;
    unsigned processors = 1; // that this process may use
};
Machine this_machine();

} // namespace thrum
