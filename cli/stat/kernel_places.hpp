// SPDX-License-Identifier: Apache-2.0
//
// Where in the kernel a sampled thread sleeps, and the file of its call's descriptor, from /proc. Used by sampler.cpp;
// kernel_waits.cpp says what became of it.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stat/layers.hpp"
#include "stat/thread_list.hpp"

namespace thrum::stat {

class KernelPlaces {
  public:
    // Each place is kept once, in `all`.
    explicit KernelPlaces(std::vector<KernelPlace> &all) : all_(all) {}

    // From now on of that process. `memory`: a descriptor of its /proc/PID/mem.
    void open(pid_t process, int memory);
    // Of a thread that nothing can interrupt, which waits for a device or for what another thread does in the kernel; and of those
    // that wait for what may come by one descriptor.
    void look(const ThreadList &threads, pid_t thread, ProcSample &sample, double now);

  private:
    const std::string &only_socket(long descriptor, double now);
    int descriptor_of(const ProcSample &sample) const;
    std::size_t index_of(KernelPlace &&place, bool is_for_peers);

    std::vector<KernelPlace> &all_;
    std::map<std::tuple<long, std::string, std::string>, std::size_t> known_; // where in `all`
    std::size_t peers_ = 0; // of these, places of threads that wait for what may come
    std::string folder_;    // of the process
    int memory_ = -1;
    // Of epoll sets, by descriptor: when it was read, and what.
    std::map<long, std::pair<double, std::string>> sockets_;
};

} // namespace thrum::stat
