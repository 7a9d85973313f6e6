// SPDX-License-Identifier: Apache-2.0
//
// Teams in gang order (Ousterhout, "Scheduling Techniques for Concurrent Systems", ICDCS 1982): the members of a team
// run at the same time, one on each worker, so that they meet in the barrier. Each worker has a pool of its own for
// members; a team takes a number, its deadline, and puts its members into the pools of as many workers, beginning
// with the next one each time. A pool gives the lowest number first: all workers come to the teams in the same order,
// and a spinning member waits for one that runs, or will be next on its worker.
//
// That needs no preemption as long as a team has no more members than there are workers. With more, some of its
// members share a worker: there they take turns, at the ends of slices, only with each other.
//
// A task is not a member of its team here: it waits for it. Tasks have one pool for all workers, which comes after
// the teams'.
#include <thrum/pool.h>
#include <thrum/preempt.h>

#include "../must.hpp"
#include "../preempt.hpp"
#include "ults.hpp"

namespace cholesky {

using bench::must;

namespace {

class Gang : public Ults {
  public:
    explicit Gang(const Sizes &sizes);
    ~Gang() override;
    void team(const Part &part) override;

  private:
    thrum_pool_t tasks_ = nullptr;
    std::vector<thrum_pool_t> members_; // one a worker
    std::vector<thrum_sched_t> scheds_;
    thrum_mutex_t order_ = THRUM_MUTEX_INITIALIZER;
    std::uint64_t teams_ = 0; // so far, under order_
    unsigned next_ = 0;       // the worker that the next team begins with, under order_
};

Gang::Gang(const Sizes &sizes) : Ults(sizes), members_(sizes.workers), scheds_(sizes.workers) {
    must(thrum_pool_create(&tasks_, THRUM_POOL_FIFO), "thrum_pool_create");
    thrum_attr_set_pool(&of_tasks_, tasks_);
    for (unsigned worker = 0; worker < sizes.workers; worker++) {
        must(thrum_pool_create(&members_[worker], THRUM_POOL_DEADLINE), "thrum_pool_create");
        const thrum_pool_t pools[] = {members_[worker], tasks_};
        must(thrum_sched_create(&scheds_[worker], THRUM_SCHED_FIRST, pools, 2), "thrum_sched_create");
        must(thrum_worker_set_sched(worker, scheds_[worker]), "thrum_worker_set_sched");
    }
}

Gang::~Gang() {
    stop(); // now no worker has a scheduler
    for (const thrum_sched_t sched : scheds_)
        must(thrum_sched_destroy(sched), "thrum_sched_destroy");
    for (const thrum_pool_t pool : members_)
        must(thrum_pool_destroy(pool), "thrum_pool_destroy");
    must(thrum_pool_destroy(tasks_), "thrum_pool_destroy");
}

// One team after the other comes into the pools, and as a whole: a team that lacked a member, because its task has
// lost its worker to a spinning member, would keep all others waiting.
void Gang::team(const Part &part) {
    std::vector<Member> members;
    std::vector<thrum_t> threads(sizes_.members);
    for (unsigned number = 0; number < sizes_.members; number++)
        members.push_back({&part, number});

    thrum_mutex_lock(&order_);
    thrum_nopreempt_begin();
    thrum_attr_set_deadline(&of_members_, teams_++);
    for (std::size_t i = 0; i < threads.size(); i++) {
        thrum_attr_set_pool(&of_members_, members_[next_]);
        must(thrum_spawn(&threads[i], &of_members_, run_member, &members[i]), "thrum_spawn");
        next_ = (next_ + 1) % sizes_.workers;
    }
    thrum_nopreempt_end();
    thrum_mutex_unlock(&order_);
    join(threads);
}

} // namespace

std::unique_ptr<Crew> gang(const Sizes &sizes) {
    return preempt::init(sizes.workers) ? std::make_unique<Gang>(sizes) : nullptr;
}

} // namespace cholesky
