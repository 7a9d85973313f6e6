// SPDX-License-Identifier: Apache-2.0
//
// See arms.hpp.
#include "arms.hpp"

#include <string>

#include "kernel_threads.hpp"
#include "preempt.hpp"
#include "ults.hpp"

namespace insitu {

// The baselines first. The mode of preemption is lend: the analysis computes and takes memory from the heap.
const std::vector<Arm> &arms() {
    constexpr Standing kUsual = Standing::kUsual;
    static const std::vector<Arm> all = {
        {"no analysis, ULTs", Runtime::kUlts, Looking::kNever, kUsual, "none", 1},
        {"no analysis, pthreads", Runtime::kKernel, Looking::kNever, kUsual, "none", 1},
        {"synchronous", Runtime::kUlts, Looking::kWithin, kUsual, "none", 1},
        {"pthreads", Runtime::kKernel, Looking::kBeside, kUsual, "none", 1},
        {"pthreads, nice 19", Runtime::kKernel, Looking::kBeside, Standing::kNice19, "none", 1},
        {"pthreads, SCHED_IDLE", Runtime::kKernel, Looking::kBeside, Standing::kIdle, "none", 1},
        {"ULTs", Runtime::kUlts, Looking::kBeside, kUsual, "none", 1},
        {"ULTs, preemption", Runtime::kUlts, Looking::kBeside, kUsual, "lend", 1},
        {"ULTs, priorities", Runtime::kUlts, Looking::kBeside, kUsual, "none", 2},
        {"ULTs, both", Runtime::kUlts, Looking::kBeside, kUsual, "lend", 2},
    };
    return all;
}

const Arm &arm_of(const std::string &name) {
    for (const Arm &arm : arms())
        if (name == arm.name)
            return arm;
    throw bench::Failure("there is no arm '" + name + "'");
}

const Arm &baseline_of(const Arm &arm) {
    return arms()[arm.runtime == Runtime::kUlts ? 0 : 1];
}

std::unique_ptr<Threads> threads_of(const Arm &arm, unsigned size) {
    if (arm.runtime == Runtime::kKernel)
        return std::make_unique<KernelThreads>(size, arm.standing);
    if (!preempt::init(size))
        return nullptr;
    return std::make_unique<Ults>(size, arm.levels);
}

} // namespace insitu
