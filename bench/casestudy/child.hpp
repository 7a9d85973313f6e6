// SPDX-License-Identifier: Apache-2.0
//
// A process that is watched while it works: the lines that it prints, and what the kernel says of its threads. Used by
// experiment.cpp and requests.cpp.
#ifndef THRUM_BENCH_CASESTUDY_CHILD_HPP
#define THRUM_BENCH_CASESTUDY_CHILD_HPP

#include <sys/types.h>

#include <string>
#include <vector>

#include "common.hpp"

namespace casestudy {

class Child {
  public:
    Child(const std::vector<std::string> &command, const bench::Environment &environment);
    ~Child(); // ends it, unless it was waited for
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;

    pid_t pid() const { return pid_; }
    bool ready(int milliseconds); // it prints something, or ends, in that time
    std::string line();           // the next one that it prints
    void wait();                  // for its end; it is a failure if that is not with success
    double cpu_seconds() const { return cpu_seconds_; } // after wait

  private:
    std::string name_, read_;
    pid_t pid_ = 0;
    int output_ = -1;
    double cpu_seconds_ = 0;
};

// In what states threads were found, by looking again and again (/proc/PID/task/*/stat): R, which runs or could; S, which
// sleeps until something happens; D, which waits in the kernel, for a disk or a lock, and cannot be disturbed. A look
// counts for the time since the one before.
class States {
  public:
    // Looks at `pid` until `until`, which may be the same, has something to say. Takes some twentieth of a CPU.
    void watch(pid_t pid, Child &until);

    double running() const { return percent(running_); }
    double sleeping() const { return percent(sleeping_); }
    double disk() const { return percent(disk_); }
    double threads() const { return all() / looks_; } // mean
    bool seen() const { return all() > 0; }

  private:
    double all() const { return running_ + sleeping_ + disk_; }
    double percent(double part) const { return part / all() * 100; }
    void look(pid_t pid, double weight);

    double running_ = 0, sleeping_ = 0, disk_ = 0, looks_ = 0;
};

} // namespace casestudy

#endif
