// SPDX-License-Identifier: Apache-2.0
#include "footprint.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "process.hpp"
#include "tools/clock.hpp"

namespace thrum {

namespace {

constexpr double kFirst = 0.002,
                 kLongest = 0.1; // seconds between two looks: each is twice as long as the one before
constexpr int kDeepest = 8;      // generations of processes

struct Size {
    double memory = 0, tasks = 0, largest = 0;
};

// A process that has just ended, or whose image is being replaced, has nothing.
void add(pid_t pid, Size &size, int depth) {
    const auto stat = process::stat(pid);
    if (!stat)
        return;
    size.memory += stat->memory;
    size.tasks += stat->threads;
    size.largest = std::max(size.largest, stat->memory);
    const std::string id = std::to_string(pid);
    std::ifstream children("/proc/" + id + "/task/" + id + "/children");
    for (pid_t child = 0; depth < kDeepest && children >> child;)
        add(child, size, depth + 1);
}

} // namespace

double Footprint::seconds_to_next() const {
    return std::max(next_ - seconds_now(), 0.0);
}

void Footprint::look() {
    const double now = seconds_now();
    if (now < next_)
        return;
    Size size;
    add(pid_, size, 0);
    interval_ = interval_ == 0 ? kFirst : std::min(2 * interval_, kLongest);
    next_ = now + interval_;
    if (size.memory <= 0)
        return;
    if (last_ > 0) { // the mean of both ends, for as long as it was
        const double passed = now - last_;
        seconds_ += passed;
        memory_ += passed * (size.memory + now_memory_) / 2;
        tasks_ += passed * (size.tasks + now_tasks_) / 2;
    }
    last_ = now;
    now_memory_ = size.memory;
    now_tasks_ = size.tasks;
    peak_memory_ = std::max(peak_memory_, size.largest);
    peak_tasks_ = std::max(peak_tasks_, size.tasks);
}

// The kernel's maximum is exact, but begins with what this process had when it started the program.
void Footprint::store(Run &run, double largest) const {
    rusage own;
    getrusage(RUSAGE_SELF, &own);
    run.peak_memory = largest > 1024.0 * static_cast<double>(own.ru_maxrss) ? largest : peak_memory_;
    run.peak_tasks = peak_tasks_;
    if (seconds_ > 0) {
        run.mean_memory = memory_ / seconds_;
        run.mean_tasks = tasks_ / seconds_;
    }
}

} // namespace thrum
