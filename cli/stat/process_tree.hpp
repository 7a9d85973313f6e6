// SPDX-License-Identifier: Apache-2.0
//
// The processes that a program starts, and what those start: found in /proc while the program runs, twenty times a second
// or as often as a budget of CPU time allows. One that begins and ends between two looks is not seen; its CPU time is in what
// its parent has waited for. Used by examination.cpp.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "process.hpp"
#include "stat/allowance.hpp"
#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

class ProcessTree : public Layer {
  public:
    void forked(pid_t child) override;
    void attach(pid_t pid); // one that runs already: CPU time counts from now on
    void poll(double now) override;

    // The program's own first, then its descendants by CPU time.
    std::vector<Process> processes() const;
    // The descendants that have not ended, as far as is known.
    void each_living(const std::function<void(const Process &)> &visit) const;

  private:
    struct Seen {
        Process process;
        double before = 0; // CPU time that does not count
        bool is_gone = false;
    };

    void look(double now);
    void look_at_new(const std::set<pid_t> &present, double now);
    bool is_ours(pid_t parent) const;
    void add(pid_t pid, const process::Stat &stat, double now);
    void update(Seen &seen, double now);

    pid_t root_ = 0;
    bool is_attached_ = false;
    std::set<pid_t> others_; // that are not ours
    std::map<pid_t, Seen> ours_;
    std::vector<Process> gone_;
    double next_ = 0;
    Allowance allowance_{0.003};
};

} // namespace thrum::stat
