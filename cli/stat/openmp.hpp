// SPDX-License-Identifier: Apache-2.0
//
// What the runtime libraries of OpenMP are called for (gcc's libgomp, LLVM's libomp): a waiting thread shows the name of a
// function that no program's source has; this is the way back to the directive. Used by facts.cpp, rules/ and
// report_text.cpp.
#pragma once

#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

struct OpenmpConstruct {
    enum Kind {
        kLock,  // one thread at a time: the program asked for it
        kTasks, // likewise, in the queue of tasks: its lock is the runtime's, and is not held while its threads wait for tasks
        kBarrier, // all wait for the last one
    };
    const char *functions; // what their names begin with, without underscores in front; separated by blanks
    const char *name;
    const char *fix;
    Kind kind;
};

// What the program's code asked for in whose call a thread waits; what has no name there stands for the runtime itself.
// Nothing where that is another library's call.
const OpenmpConstruct *openmp_construct(const std::vector<Frame> &stack);

// The runtime's function that puts a task into its queue.
bool queues_task(const Frame &frame);

// With the section's name, where the lock has it: "... (#pragma omp critical(queue))".
std::string openmp_name(const OpenmpConstruct &construct, const Lock *lock);

} // namespace thrum::stat
