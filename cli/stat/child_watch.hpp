// SPDX-License-Identifier: Apache-2.0
//
// What the threads of processes that a program started wait for, and where they burn CPU time: the busiest few of those
// that process_tree.hpp finds are sampled as `thrum stat -p` samples a process, each with a part of the budget. Used by
// examination.cpp.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "process.hpp"
#include "stat/layers.hpp"
#include "stat/process_tree.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

class ChildWatch : public Layer {
  public:
    static constexpr std::size_t kAtOnce = 4; // processes that are sampled
    static constexpr std::size_t kKept = 16;  // and of which samples are kept

    // `rate` and `budget`: as Sampler's, the budget for all of them. `profile`: that of the program, which may see its
    // processes as well; nullptr: there is none. Both outlive this one.
    ChildWatch(const ProcessTree &tree, CpuProfile *profile, double rate, double budget);
    ~ChildWatch() override;

    void poll(double now) override; // after the tree's
    void interrupted() override;

    // A report for each, by CPU time, descending; `whole` is that of the program, `load` what else the machine did. After the
    // profile's finish().
    std::vector<Report> reports(const Report &whole, const Load &load);
    // Of how many processes there is something.
    std::size_t count() const { return watched_.size(); }

  private:
    struct Watched;
    struct Candidate {
        Process process;
        double recent = 0; // seconds of CPU time since the last choice
    };

    void look(double now);
    void choose(double now);
    void update(Watched &watched, double now);
    void close(Watched &watched);
    bool make_room(double recent);
    void begin(const Candidate &candidate, double now);
    void drop_least();
    std::size_t open_count() const;
    static Report report_of(const Watched &watched, const Report &whole, const Load &load);

    const ProcessTree &tree_;
    CpuProfile *profile_;
    double rate_, budget_;
    std::vector<std::unique_ptr<Watched>> watched_;
    std::map<pid_t, double> cpu_; // of each process at the last choice
    std::map<pid_t, double> refused_;
    double next_ = 0;
    bool is_over_ = false;
};

} // namespace thrum::stat
