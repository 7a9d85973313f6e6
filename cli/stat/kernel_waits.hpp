// SPDX-License-Identifier: Apache-2.0
//
// Sleeps in the kernel, by the call, the file and whether it is a device that is waited for. Used by analyse.cpp.
#pragma once

#include <functional>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

// Those whose place in the kernel is known, the most frequent first. `stack_of`: where this sample, an index, was seen asleep;
// null: it was not.
std::vector<KernelWait> kernel_waits(const Sampler &sampler,
                                     const std::function<const std::vector<Frame> *(std::size_t)> &stack_of);

} // namespace thrum::stat
