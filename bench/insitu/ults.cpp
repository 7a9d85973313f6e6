// SPDX-License-Identifier: Apache-2.0
//
// See ults.hpp.
#include "ults.hpp"

#include <exception>

#include "preempt.hpp"

namespace insitu {

using preempt::check;

Ults::Ults(unsigned workers, unsigned levels) : workers_(workers), levels_(levels) {
    pools_.resize(static_cast<std::size_t>(workers) * levels);
    for (std::size_t i = 0; i < pools_.size(); i++)
        check(thrum_pool_create(&pools_[i], i % levels == 1 ? THRUM_POOL_DEADLINE : THRUM_POOL_DEQUE),
              "thrum_pool_create");
    schedulers_.resize(workers);
    for (unsigned i = 0; i < workers; i++) {
        check(thrum_sched_create_stealing(&schedulers_[i], pools_.data(), workers, levels, i),
              "thrum_sched_create_stealing");
        check(thrum_worker_set_sched(i, schedulers_[i]), "thrum_worker_set_sched");
    }
}

// A thread of the analysis may have given back its snapshot and not be quite at its end: its pool says EBUSY then, and is
// left to the end of the process.
Ults::~Ults() {
    check(thrum_fini(), "thrum_fini");
    for (const thrum_sched_t scheduler : schedulers_)
        thrum_sched_destroy(scheduler);
    for (const thrum_pool_t pool : pools_)
        thrum_pool_destroy(pool);
}

// A large stack, since some simulations are old programs; only what they touch of it is memory.
thrum_attr_t Ults::queued(thrum_pool_t pool) {
    constexpr std::size_t kStack = 8U << 20;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    check(thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED), "thrum_attr_set_flags");
    check(thrum_attr_set_stack_size(&attr, kStack), "thrum_attr_set_stack_size");
    thrum_attr_set_pool(&attr, pool);
    return attr;
}

namespace {

struct Call {
    const Team::Part *part;
    unsigned which;
};

void *do_part(void *arg) {
    const auto *call = static_cast<const Call *>(arg);
    (*call->part)(call->which);
    return nullptr;
}

struct Drive {
    const std::function<void()> *fn;
    std::exception_ptr failure;
};

void *do_drive(void *arg) {
    auto *drive = static_cast<Drive *>(arg);
    try {
        (*drive->fn)();
    } catch (const std::exception &) {
        drive->failure = std::current_exception();
    }
    return nullptr;
}

} // namespace

void Ults::run(const Part &part) {
    std::vector<Call> calls(workers_);
    std::vector<thrum_t> threads(workers_);
    for (unsigned i = 0; i < workers_; i++) {
        calls[i] = {&part, i};
        const thrum_attr_t attr = simulation(i);
        check(thrum_spawn(&threads[i], &attr, do_part, &calls[i]), "thrum_spawn");
    }
    for (const thrum_t thread : threads)
        check(thrum_join(thread, nullptr), "thrum_join");
}

void Ults::drive(const std::function<void()> &fn) {
    Drive drive{&fn, nullptr};
    const thrum_attr_t attr = simulation(0);
    thrum_t driver;
    check(thrum_spawn(&driver, &attr, do_drive, &drive), "thrum_spawn");
    check(thrum_join(driver, nullptr), "thrum_join");
    if (drive.failure)
        std::rethrow_exception(drive.failure);
}

void Ults::look(void *(*fn)(void *), void *arg) {
    thrum_attr_t attr = analysis(next_ % workers_);
    thrum_attr_set_deadline(&attr, next_++);
    check(thrum_spawn(nullptr, &attr, fn, arg), "thrum_spawn");
}

} // namespace insitu
