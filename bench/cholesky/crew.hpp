// SPDX-License-Identifier: Apache-2.0
//
// A crew runs the tasks of a graph, and for each call of the library a team. There are crews of OS threads
// (os_threads.cpp), of user-level threads (ults.cpp), and of these in gang order (gang.cpp).
#ifndef THRUM_BENCH_CHOLESKY_CREW_HPP
#define THRUM_BENCH_CHOLESKY_CREW_HPP

#include <functional>
#include <memory>

#include "graph.hpp"

namespace cholesky {

// Member 0 .. members - 1 of a team does its part.
using Part = std::function<void(unsigned member)>;

class Crew {
  public:
    Crew() = default;
    virtual ~Crew() = default;
    Crew(const Crew &) = delete;
    Crew &operator=(const Crew &) = delete;

    // Runs `act` for each task of the graph after those that it needs, `outer` tasks at a time; until all have ended.
    virtual void run(Graph *graph, const std::function<void(const Task &)> &act) = 0;
    // For a task: all parts at the same time, or in turns. Returns when all have ended.
    virtual void team(const Part &part) = 0;
    // So far.
    virtual double preemptions() const { return 0; }
};

struct Sizes {
    unsigned workers; // of user-level threads
    unsigned outer;   // tasks at a time
    unsigned members; // of a team
};

std::unique_ptr<Crew> os_threads(const Sizes &sizes);
// As THRUM_PREEMPT and THRUM_SLICE say. Null: the library does not have that mode here.
std::unique_ptr<Crew> ults(const Sizes &sizes);
std::unique_ptr<Crew> gang(const Sizes &sizes);

} // namespace cholesky

#endif
