// SPDX-License-Identifier: Apache-2.0
//
// Which threads a program has, and their files in /proc/PID/task. The list of many threads is read in portions, as its share
// of the budget allows, and those that are known are looked at meanwhile: a first look at one costs thirty times as much as to
// list it. Used by sampler.cpp.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stat/allowance.hpp"
#include "stat/layers.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

// A thread that there is, as far as is known, and what was seen at the latest look at it.
struct Watched {
    // Seconds to the first look at its status, which a few threads have at once, and from there to the second.
    static constexpr double kStatusFirst = 0.05;

    pid_t id = 0;
    std::size_t thread = 0; // index into Sampler::threads
    Descriptor system_call, schedstat;
    std::string waits; // what `system_call` said when it slept; empty: it ran
    std::uint64_t times_run = 0;
    bool is_new = true;
    std::uint64_t run_before = 0, delay_before = 0; // before this process looked at it
    ProcSample last;
    unsigned listed = 0;
    double status_at = 0, status_after = kStatusFirst;
    bool is_gone = false;
};

class ThreadList {
  public:
    // Each thread is noted in `all`, and stays there.
    explicit ThreadList(std::vector<ProcThread> &all);

    // From now on the threads of that process, which may be the same one in another program.
    void open(pid_t process);
    bool is_open() const { return folder_.is_open(); }
    // What the first list will have was there before it.
    void are_from_before() { first_was_there_ = true; }

    // A portion, where that is worthwhile and is paid for.
    void read_on(double now, const Allowance &allowance);

    // Each number in the list until `is_it` is true of one; the list begins anew.
    void find_listed(const std::function<bool(pid_t)> &is_it);

    std::vector<Watched> &watched() { return watched_; }
    Watched *find(pid_t id); // nothing: it is not known
    bool are_few() const;    // so that more is read of each
    std::size_t count() const { return count_; }
    unsigned most() const { return most_; }
    bool are_all_known() const { return are_all_known_; } // as many as there are

    // No look at it was possible from now on: it has ended, or is about to.
    void miss(const Watched &thread, double now);
    // Nothing could be read of it, for it has ended; or there are no descriptors left. A first thread that has ended stays.
    void note_end(Watched &thread, int error, double now);

    char state_of(pid_t id) const; // 'X': there is no such thread
    int open_file(pid_t id, const char *name) const;
    // From the descriptor that is kept, where there is one. One that was opened is kept as long as there are not too many.
    bool read_file(const Watched &thread, Descriptor &kept, const char *name, char (&text)[256]);

  private:
    bool read_count();
    void read_portion(double now);
    void end(double now);
    void note(pid_t id, double now);
    Watched newcomer(pid_t id, double now);
    void forget(Watched &thread, double now);

    std::vector<ProcThread> &all_;
    bool first_was_there_ = false;
    Descriptor folder_;
    std::size_t descriptors_left_;
    std::vector<Watched> watched_;
    std::unordered_map<pid_t, std::size_t> index_; // into `watched_`
    std::vector<pid_t> ids_;                       // read at once
    std::size_t count_ = 0;                        // threads that there are
    std::size_t count_then_ = 0; // there were when the list was begun; 0: and all were known
    unsigned most_ = 0;
    unsigned listings_ = 0;
    double next_portion_at_ = 0, portion_cost_ = 0; // that of the latest
    bool is_listing_ = false, was_whole_ = false, someone_is_gone_ = false, are_all_known_ = false;
};

} // namespace thrum::stat
