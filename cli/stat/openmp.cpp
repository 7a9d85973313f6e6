// SPDX-License-Identifier: Apache-2.0
#include "stat/openmp.hpp"

#include <sstream>

#include "stat/rules.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr const char *kCollect =
    "Use a reduction clause or `#pragma omp atomic`, or collect per thread and merge once.";
constexpr const char *kShareEvenly = "Balance the work (schedule(dynamic, N)); add nowait where no thread "
                                     "needs the barrier; with OMP_WAIT_POLICY=passive threads sleep there.";
constexpr const char *kLargerTasks = "Create fewer and larger tasks: all go through one queue.";

// The first whose functions fit counts.
const OpenmpConstruct kConstructs[] = {
    {"GOMP_critical_ kmpc_critical kmpc_end_critical", "OpenMP critical section (#pragma omp critical)",
     kCollect, OpenmpConstruct::kLock},
    {"GOMP_atomic_ kmpc_atomic_", "OpenMP atomic that takes a lock (#pragma omp atomic)",
     "Use a type with atomic operations of the processor, or collect per thread.", OpenmpConstruct::kLock},
    {"GOMP_ordered_ GOMP_doacross_ kmpc_ordered kmpc_doacross_",
     "OpenMP ordered section (#pragma omp ordered)",
     "Make the ordered part smaller, or put results in order afterwards.", OpenmpConstruct::kLock},
    {"omp_set_lock omp_set_nest_lock omp_unset_lock omp_unset_nest_lock kmpc_set_lock kmpc_set_nest_lock",
     "OpenMP lock (omp_set_lock)", kCollect, OpenmpConstruct::kLock},
    {"GOMP_loop_end GOMP_sections_end GOMP_barrier kmpc_barrier kmpc_cancel_barrier",
     "OpenMP barrier (#pragma omp barrier, or the end of a loop)", kShareEvenly, OpenmpConstruct::kBarrier},
    {"GOMP_single_ kmpc_single", "OpenMP single section (#pragma omp single)", kShareEvenly,
     OpenmpConstruct::kBarrier},
    {"GOMP_loop_ GOMP_sections_ kmpc_dispatch_", "OpenMP's loop scheduling (schedule clause)",
     "Use larger chunks of iterations: schedule(dynamic, N), or schedule(static).", OpenmpConstruct::kLock},
    {"GOMP_taskwait GOMP_taskgroup_end kmpc_omp_taskwait kmpc_end_taskgroup",
     "OpenMP wait for tasks (#pragma omp taskwait)", kLargerTasks, OpenmpConstruct::kBarrier},
    {"GOMP_task kmpc_omp_task", "OpenMP's queue of tasks (#pragma omp task)", kLargerTasks,
     OpenmpConstruct::kTasks},
    {"GOMP_parallel GOMP_teams kmpc_fork_call kmpc_fork_teams", "end of an OpenMP parallel region",
     kShareEvenly, OpenmpConstruct::kBarrier},
};
// What threads without work of the program's do there, and what is asked for by a name that is not in the list.
const OpenmpConstruct kRuntime = {"", "OpenMP's runtime, between parallel regions", kShareEvenly,
                                  OpenmpConstruct::kBarrier};

bool begins_with_one(const std::string &name, const char *beginnings) {
    std::istringstream words(beginnings);
    for (std::string word; words >> word;)
        if (begins_with(name, word.c_str()))
            return true;
    return false;
}

const OpenmpConstruct *construct_of(const Frame &frame) {
    const std::string name = plain_name(frame.function);
    for (const OpenmpConstruct &construct : kConstructs)
        if (begins_with_one(name, construct.functions))
            return &construct;
    return nullptr;
}

bool is_of_openmp(const Frame &frame) {
    return begins_with(frame.module, "libgomp") || begins_with(frame.module, "libomp") ||
           begins_with(frame.module, "libiomp");
}

} // namespace

bool queues_task(const Frame &frame) {
    const OpenmpConstruct *construct = is_of_openmp(frame) ? construct_of(frame) : nullptr;
    return construct != nullptr && construct->kind == OpenmpConstruct::kTasks;
}

const OpenmpConstruct *openmp_construct(const std::vector<Frame> &stack) {
    const OpenmpConstruct *found = nullptr;
    for (const Frame &frame : stack) {
        if (frame.is_user)
            break;
        if (!is_of_openmp(frame))
            continue;
        const OpenmpConstruct *named = construct_of(frame);
        found = named != nullptr ? named : found != nullptr ? found : &kRuntime;
    }
    return found;
}

std::string openmp_name(const OpenmpConstruct &construct, const Lock *lock) {
    constexpr const char *kNamed = ".gomp_critical_user_";
    const std::string symbol = lock != nullptr ? lock->symbol : "";
    if (!begins_with(symbol, kNamed))
        return construct.name;
    return "OpenMP critical section (#pragma omp critical(" + symbol.substr(std::string(kNamed).size()) +
           "))";
}

} // namespace thrum::stat
