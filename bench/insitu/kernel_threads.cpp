// SPDX-License-Identifier: Apache-2.0
//
// See kernel_threads.hpp.
#include "kernel_threads.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <cerrno>

#include "preempt.hpp"

namespace insitu {

namespace {

// Of the calling thread alone: in Linux 0 is a thread.
void stand(Standing standing) {
    const sched_param none{};
    if (standing == Standing::kNice19)
        preempt::check(setpriority(PRIO_PROCESS, 0, 19) != 0 ? errno : 0, "setpriority");
    else if (standing == Standing::kIdle)
        preempt::check(sched_setscheduler(0, SCHED_IDLE, &none) != 0 ? errno : 0, "sched_setscheduler");
}

} // namespace

KernelThreads::KernelThreads(unsigned size, Standing standing) : size_(size), standing_(standing) {
    preempt::check(pthread_barrier_init(&begin_, nullptr, size), "pthread_barrier_init");
    preempt::check(pthread_barrier_init(&end_, nullptr, size), "pthread_barrier_init");
    for (unsigned i = 1; i < size; i++)
        helpers_.emplace_back([this, i] { help(i); });
}

KernelThreads::~KernelThreads() {
    part_ = nullptr;
    pthread_barrier_wait(&begin_);
    for (std::thread &helper : helpers_)
        helper.join();
    pthread_barrier_destroy(&begin_);
    pthread_barrier_destroy(&end_);
}

void KernelThreads::run(const Part &part) {
    part_ = &part;
    pthread_barrier_wait(&begin_);
    part(0);
    pthread_barrier_wait(&end_);
}

void KernelThreads::help(unsigned which) {
    for (;;) {
        pthread_barrier_wait(&begin_);
        if (part_ == nullptr)
            return;
        (*part_)(which);
        pthread_barrier_wait(&end_);
    }
}

void KernelThreads::look(void *(*fn)(void *), void *arg) {
    const Standing standing = standing_;
    std::thread([=] {
        stand(standing);
        fn(arg);
    }).detach();
}

} // namespace insitu
