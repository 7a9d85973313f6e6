// SPDX-License-Identifier: Apache-2.0
//
// What samples have become: stacks get names, waits get kinds and locks, and the same ones become one site. Used by analyse.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "stat/layers.hpp"
#include "stat/lock_waits.hpp"
#include "stat/report.hpp"
#include "stat/semaphores.hpp"
#include "stat/sites.hpp"

namespace thrum::stat {

// `site` is an index into all sites, whatever they do.
struct Seen {
    Doing doing = Doing::kRunning;
    std::size_t site = kNone;
};

class SampleSites {
  public:
    // `posts`: of the semaphore at an address.
    SampleSites(const Sampler &sampler, const std::map<std::uint64_t, Posts> &posts, LockWaits &locks);

    const Seen &seen(std::size_t sample) const { return seen_[sample]; }
    std::vector<Site> &sites() { return sites_; }
    const std::vector<Site> &sites() const { return sites_; }
    // Of a lock that is a semaphore: the looks at its holder; none where they do not tell it.
    const PassedOn &passed_on(std::size_t lock) const;
    bool is_thread(pid_t id) const { return ids_.count(id) != 0; }
    void say_missing(std::vector<std::string> &warnings) const { places_.say_missing(warnings); }

  private:
    using Wait = std::tuple<std::size_t, std::uint64_t, std::uint64_t>; // era, futex word, operation
    Wait wait_of(const ProcSample &sample) const;
    void find_semaphore_locks(const std::map<std::uint64_t, Posts> &posts);
    void find_passed_on();
    void see_all();
    Seen see(const ProcSample &sample);
    Seen look_up(const ProcSample &sample);
    const std::vector<Frame> &frames_of(const ProcSample &sample);

    const Sampler &sampler_;
    LockWaits &locks_;
    Places places_;
    std::set<pid_t> ids_;
    std::vector<Seen> seen_;  // by sample
    std::vector<Site> sites_; // of all kinds
    std::map<std::tuple<Doing, std::string, std::size_t>, std::size_t> known_sites_;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Frame>> known_frames_; // by stack, and Python's
    std::map<std::tuple<std::size_t, std::size_t, long, std::uint64_t, std::uint64_t, std::uint64_t>, Seen>
        known_;
    std::map<std::uint64_t, PassedOn> semaphore_locks_;      // by address, or as set_semaphore() has it
    std::map<std::size_t, std::uint64_t> passed_on_by_lock_; // as semaphore_locks_ has them
};

} // namespace thrum::stat
