// SPDX-License-Identifier: Apache-2.0
//
// The Python functions that threads of a process are in, each stack kept once. Used by sampler.cpp for threads that wait,
// by profile.cpp and timer_profile.cpp for those that have just been seen running.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "maps.hpp"
#include "stat/layers.hpp"
#include "stat/observed.hpp"
#include "stat/python.hpp"

namespace thrum::stat {

class PythonKeeper {
  public:
    explicit PythonKeeper(Observed &observed) : observed_(observed) {}

    // Is there an interpreter by now? `why_not`: its functions cannot be read, a sentence.
    void look(pid_t pid, const std::vector<Mapping> &mappings, Python::Read read, std::string &why_not);
    // Another program was executed.
    void forget() { python_.reset(); }
    bool is_there() const { return python_.has_value(); }

    // An index into Observed::python; SIZE_MAX where it runs no Python code, or none that could be read.
    std::size_t keep(pid_t thread);

  private:
    Observed &observed_;
    std::optional<Python> python_;
    std::map<std::string, std::size_t> known_; // frames as text to index
};

// For CPU samples. The interpreter's memory has moved on when a sample is seen here, a hundredth of a second later at most;
// so a sample is given the function that its thread is in by then, which over many samples comes to the same shares.
class PythonOfSamples {
  public:
    explicit PythonOfSamples(CpuProfile &profile) : profile_(profile), keeper_(profile.observed) {}
    void begin(pid_t child) { child_ = child; }
    void another_program();
    // The samples from `first` on have just come.
    void add(std::size_t first);
    void finish();

  private:
    void look();

    CpuProfile &profile_;
    PythonKeeper keeper_;
    pid_t child_ = 0;
    std::string maps_; // in which there was no interpreter
};

} // namespace thrum::stat
