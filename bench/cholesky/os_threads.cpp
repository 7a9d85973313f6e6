// SPDX-License-Identifier: Apache-2.0
//
// Tasks and teams on threads of the operating system, as nested OpenMP regions have them: each of the threads that run
// tasks has a team of its own, whose threads are made once and sleep between calls. Which of them runs is the kernel's
// affair: it takes the CPU from those that spin in a barrier.
#include <pthread.h>
#include <semaphore.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <vector>

#include "../must.hpp"
#include "crew.hpp"

namespace cholesky {

using bench::must;

namespace {

class Semaphore {
  public:
    Semaphore() { must(sem_init(&semaphore_, 0, 0) != 0 ? errno : 0, "sem_init"); }
    ~Semaphore() { sem_destroy(&semaphore_); }
    Semaphore(const Semaphore &) = delete;
    Semaphore &operator=(const Semaphore &) = delete;
    void post() { must(sem_post(&semaphore_) != 0 ? errno : 0, "sem_post"); }
    void wait() {
        while (sem_wait(&semaphore_) != 0) {
        }
    }

  private:
    sem_t semaphore_;
};

// Joined when it goes.
class Thread {
  public:
    explicit Thread(std::function<void()> act) : act_(std::move(act)) {
        must(pthread_create(&thread_, nullptr, run, this), "pthread_create");
    }
    ~Thread() { pthread_join(thread_, nullptr); }
    Thread(const Thread &) = delete;
    Thread &operator=(const Thread &) = delete;

  private:
    static void *run(void *self) {
        static_cast<Thread *>(self)->act_();
        return nullptr;
    }

    std::function<void()> act_;
    pthread_t thread_{};
};

// --- inner: the team of one thread that runs tasks ----------------------------------------------------------

class Team {
  public:
    explicit Team(unsigned members) : go_(members - 1) {
        for (unsigned helper = 0; helper + 1 < members; helper++)
            helpers_.emplace_back([this, helper] { help(helper); });
    }
    ~Team() {
        part_ = nullptr;
        for (Semaphore &go : go_)
            go.post();
    }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    void run(const Part &part) {
        part_ = &part;
        for (Semaphore &go : go_)
            go.post();
        part(0);
        for (std::size_t i = 0; i < go_.size(); i++)
            done_.wait();
    }

  private:
    void help(unsigned helper) {
        for (go_[helper].wait(); part_ != nullptr; go_[helper].wait()) {
            (*part_)(helper + 1);
            done_.post();
        }
    }

    std::vector<Semaphore> go_; // one a helper
    Semaphore done_;
    const Part *part_ = nullptr;
    std::list<Thread> helpers_; // last: they are joined before the rest goes
};

thread_local Team *own_team;

// --- outer: the threads that run tasks ----------------------------------------------------------------------

class OsThreads : public Crew {
  public:
    explicit OsThreads(const Sizes &sizes) {
        for (unsigned i = 0; i < sizes.outer; i++)
            threads_.emplace_back([this, members = sizes.members] { serve(members); });
    }
    ~OsThreads() override {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
        changed_.notify_all();
    }

    void run(Graph *graph, const std::function<void(const Task &)> &act) override {
        std::unique_lock<std::mutex> lock(mutex_);
        graph_ = graph;
        act_ = &act;
        ready_.push_back(Graph::first());
        changed_.notify_all();
        changed_.wait(lock, [this] { return graph_ == nullptr; });
    }
    void team(const Part &part) override { own_team->run(part); }

  private:
    void serve(unsigned members);
    void finish(const Task &task);

    std::mutex mutex_;
    std::condition_variable changed_; // any of these
    std::deque<Task> ready_;
    Graph *graph_ = nullptr; // null: all have ended
    const std::function<void(const Task &)> *act_ = nullptr;
    bool over_ = false;
    std::list<Thread> threads_; // last: they are joined before the rest goes
};

void OsThreads::serve(unsigned members) {
    Team team(members);
    own_team = &team;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return over_ || !ready_.empty(); });
        if (over_)
            return;
        const Task task = ready_.front();
        ready_.pop_front();
        lock.unlock();
        (*act_)(task);
        lock.lock();
        finish(task);
    }
}

// Under the mutex.
void OsThreads::finish(const Task &task) {
    graph_->finish(task, [this](const Task &next) { ready_.push_back(next); });
    if (graph_->is_last(task))
        graph_ = nullptr;
    changed_.notify_all();
}

} // namespace

std::unique_ptr<Crew> os_threads(const Sizes &sizes) {
    return std::make_unique<OsThreads>(sizes);
}

} // namespace cholesky
