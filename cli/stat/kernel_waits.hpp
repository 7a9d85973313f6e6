// SPDX-License-Identifier: Apache-2.0
//
// Sleeps in the kernel, by the call, the file and whether it is a device that is waited for. Used by analyse.cpp.
#pragma once

#include <functional>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

// What KernelPlace::file and KernelWait::file say of an epoll set with one socket alone: this, and that one's name.
inline constexpr char kSetOf[] = " of ";
// And of one socket in several of them: its name, this, their number and kEpollSets.
inline constexpr char kInSets[] = ", in ", kEpollSets[] = " epoll sets";

bool is_epoll_set(const std::string &file);

// What an epoll set has, by the text of its /proc/PID/fdinfo.
struct SetEntry {
    long descriptor;
    std::uint32_t events;
};
std::vector<SetEntry> entries_of_set(const std::string &text);

// Those whose place in the kernel is known, the most frequent first. `stack_of`: where this sample, an index, was seen asleep;
// null: it was not.
std::vector<KernelWait> kernel_waits(const Sampler &sampler,
                                     const std::function<const std::vector<Frame> *(std::size_t)> &stack_of);

} // namespace thrum::stat
