// SPDX-License-Identifier: Apache-2.0
//
// Tasks and teams on user-level threads: one for each task that may begin, and one for each member of a team but the first,
// which is the task itself. What gang.cpp changes is virtual.
#ifndef THRUM_BENCH_CHOLESKY_ULTS_HPP
#define THRUM_BENCH_CHOLESKY_ULTS_HPP

#include <thrum/thrum.h>

#include <atomic>
#include <vector>

#include "crew.hpp"

namespace cholesky {

class Ults : public Crew {
  public:
    explicit Ults(const Sizes &sizes); // the runtime has been started
    ~Ults() override { stop(); }
    void run(Graph *graph, const std::function<void(const Task &)> &act) override;
    void team(const Part &part) override;
    double preemptions() const override;

  protected:
    void stop(); // ends the runtime

    struct Member {
        const Part *part;
        unsigned number;
    };
    static void *run_member(void *member);
    static void join(const std::vector<thrum_t> &threads);

    const Sizes sizes_;
    thrum_attr_t of_tasks_, of_members_;

  private:
    struct Spawned {
        Ults *crew;
        Task task;
    };
    void spawn(const Task &task);
    static void *run_task(void *spawned);

    Graph *graph_ = nullptr;
    const std::function<void(const Task &)> *act_ = nullptr;
    std::atomic<unsigned> left_{0}; // tasks that have not ended
    thrum_sem_t outer_{};
    thrum_event_t over_ = THRUM_EVENT_INITIALIZER;
    bool running_ = true;
};

} // namespace cholesky

#endif
