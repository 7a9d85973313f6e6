// SPDX-License-Identifier: Apache-2.0
//
// A model of KLT-switching for bench/preempt_forms: a timer interrupts a unit, which stays in the handler on its
// kernel thread, and the unit's worker continues with another kernel thread. It has nothing else of a runtime, so
// that each of the ways to do that can be changed by itself. (The first three are what S. Shiina et al., PPoPP 2021,
// compare.)
#ifndef THRUM_BENCH_KLT_MODEL_HPP
#define THRUM_BENCH_KLT_MODEL_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace klt_model {

struct Form {
    bool by_signal = false; // suspended by sigsuspend, resumed by pthread_kill; else by a futex
    bool one_pool = false;  // of kernel threads, for all workers; else each has its own
    bool always_places =
        false; // the CPU affinity is set at each resumption; else where the worker is on another CPU
    // The next unit is chosen on a kernel thread from the pool, which takes over first; else in the handler, and the worker
    // goes straight to that unit's kernel thread. Without it no pool is asked.
    bool by_scheduler = false;
};

// body(0), body(1)... at once, `units` of them on a worker for each of `cpus`, of which the units take turns of a slice, and
// which stays on its CPU. Returns when all have, with how often a unit was preempted. Once a process.
// From: the main thread, alone. Throws bench::Failure.
std::uint64_t run(const Form &form, const std::vector<int> &cpus, std::size_t units, double slice_us,
                  void (*body)(std::size_t unit));

} // namespace klt_model

#endif
