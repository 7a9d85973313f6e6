// SPDX-License-Identifier: Apache-2.0
//
// See ults.hpp.
#include "ults.hpp"

#include <thrum/worker.h>

#include "../must.hpp"
#include "../preempt.hpp"

namespace cholesky {

using bench::must;

Ults::Ults(const Sizes &sizes) : sizes_(sizes) {
    for (thrum_attr_t *attr : {&of_tasks_, &of_members_}) {
        thrum_attr_init(attr);
        must(thrum_attr_set_flags(attr, THRUM_SPAWN_QUEUED), "thrum_attr_set_flags");
    }
    must(thrum_sem_init(&outer_, sizes.outer), "thrum_sem_init");
}

void Ults::stop() {
    if (running_)
        must(thrum_fini(), "thrum_fini");
    running_ = false;
}

double Ults::preemptions() const {
    double sum = 0;
    for (unsigned worker = 0; worker < sizes_.workers; worker++) {
        thrum_worker_counters counters;
        must(thrum_worker_get_counters(worker, &counters), "thrum_worker_get_counters");
        sum += static_cast<double>(counters.preemptions);
    }
    return sum;
}

// --- outer ------------------------------------------------------------------------------------------------

void Ults::run(Graph *graph, const std::function<void(const Task &)> &act) {
    graph_ = graph;
    act_ = &act;
    left_ = graph->tasks();
    thrum_event_reset(&over_);
    spawn(Graph::first());
    thrum_event_wait(&over_);
}

void Ults::spawn(const Task &task) {
    must(thrum_spawn(nullptr, &of_tasks_, run_task, new Spawned{this, task}), "thrum_spawn");
}

void *Ults::run_task(void *spawned) {
    const std::unique_ptr<Spawned> self(static_cast<Spawned *>(spawned));
    Ults &crew = *self->crew;
    thrum_sem_wait(&crew.outer_);
    (*crew.act_)(self->task);
    must(thrum_sem_post(&crew.outer_), "thrum_sem_post");
    crew.graph_->finish(self->task, [&crew](const Task &next) { crew.spawn(next); });
    if (crew.left_.fetch_sub(1) == 1) // the graph may go now, the crew stays
        thrum_event_set(&crew.over_);
    return nullptr;
}

// --- inner ------------------------------------------------------------------------------------------------

void *Ults::run_member(void *member) {
    const auto *self = static_cast<const Member *>(member);
    (*self->part)(self->number);
    return nullptr;
}

void Ults::join(const std::vector<thrum_t> &threads) {
    for (const thrum_t thread : threads)
        must(thrum_join(thread, nullptr), "thrum_join");
}

void Ults::team(const Part &part) {
    std::vector<Member> helpers;
    std::vector<thrum_t> threads(sizes_.members - 1);
    for (unsigned number = 1; number < sizes_.members; number++)
        helpers.push_back({&part, number});
    for (std::size_t i = 0; i < threads.size(); i++)
        must(thrum_spawn(&threads[i], &of_members_, run_member, &helpers[i]), "thrum_spawn");
    part(0);
    join(threads);
}

std::unique_ptr<Crew> ults(const Sizes &sizes) {
    return preempt::init(sizes.workers) ? std::make_unique<Ults>(sizes) : nullptr;
}

} // namespace cholesky
