// SPDX-License-Identifier: Apache-2.0
//
// The arms: what runs the threads of a simulation that is analysed while it runs. Its own threads should have a CPU
// whenever they can use one, those of the analysis should have what is left; what differs is by what means.
#ifndef THRUM_BENCH_INSITU_ARMS_HPP
#define THRUM_BENCH_INSITU_ARMS_HPP

#include <memory>
#include <string>
#include <vector>

#include "team.hpp"

namespace insitu {

enum class Runtime { kKernel, kUlts };

// What kernel threads of the analysis are made: as all others; of the lowest weight; only for a CPU that is idle.
enum class Standing { kUsual, kNice19, kIdle };

enum class Looking {
    kNever,  // the baselines
    kWithin, // the simulation's threads do it, and it waits
    kBeside, // by threads of its own, while the simulation runs
};

struct Arm {
    const char *name;
    Runtime runtime;
    Looking looking;
    Standing standing;   // of kernel threads
    const char *preempt; // of ULTs: THRUM_PREEMPT
    unsigned levels;     // of ULTs: 2 if the simulation comes first, 1 if all are alike
};

const std::vector<Arm> &arms();
const Arm &arm_of(const std::string &name);
// Its own runtime without an analysis, which is what it is compared with.
const Arm &baseline_of(const Arm &arm);

class Threads : public Team {
  public:
    // fn() in a thread of the simulation, from which the others are then called; returns when it has.
    virtual void drive(const std::function<void()> &fn) = 0;
    // fn(arg) in a new thread of the analysis, which is not joined.
    virtual void look(void *(*fn)(void *), void *arg) = 0;
};

// Null: the library does not have the arm's kind of preemption, or not here.
std::unique_ptr<Threads> threads_of(const Arm &arm, unsigned size);

} // namespace insitu

#endif
