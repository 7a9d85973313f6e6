// SPDX-License-Identifier: Apache-2.0
//
// See klt_model.hpp. A worker is where one kernel thread at a time may run: it is *sent* from one to the next, and
// its present kernel thread may touch what is the worker's. So nothing is locked but a pool that several workers
// share.
//
// The signal of the ticks is blocked but where a unit's own code runs: in the handler, where a unit waits, and on
// kernel threads of the pools. A signal that comes meanwhile is taken when the unit resumes, and is known by the
// little time since.
#include "klt_model.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <deque>

#include "preempt.hpp"

namespace klt_model {

namespace {

constexpr int kTick = SIGUSR1, kGoOn = SIGUSR2;
constexpr std::size_t kSpare = 2; // kernel threads in the pools, for each worker
constexpr std::uint64_t kSecond = 1000000000;

struct Worker;

// A kernel thread: a unit's, or of a pool.
struct alignas(64) Thread {
    std::atomic<std::uint32_t> sent{0}; // a worker, in `worker`; a futex
    Worker *worker = nullptr;
    Thread *next = nullptr; // in a list or a pool
    int cpu = -1;           // that its affinity names
    std::size_t unit = 0;
    pthread_t handle{};
    pid_t tid = 0;
    timer_t timer{}; // of the ticks; a unit's
};

// Of units that wait for their turn, oldest first.
class List {
  public:
    bool is_empty() const { return first_ == nullptr; }
    void push(Thread *thread) {
        thread->next = nullptr;
        *(first_ == nullptr ? &first_ : &last_->next) = thread;
        last_ = thread;
    }
    Thread *pop() {
        Thread *thread = first_;
        first_ = thread->next;
        return thread;
    }

  private:
    Thread *first_ = nullptr, *last_ = nullptr;
};

// Of suspended kernel threads, last one first. Never empty: no worker has more than one of its kSpare in use.
class Pool {
  public:
    void give(Thread *thread, bool shared) {
        lock(shared);
        thread->next = first_;
        first_ = thread;
        unlock(shared);
    }
    Thread *take(bool shared) {
        lock(shared);
        Thread *thread = first_;
        first_ = thread->next;
        unlock(shared);
        return thread;
    }

  private:
    void lock(bool shared) {
        while (shared && locked_.exchange(true, std::memory_order_acquire))
            sched_yield();
    }
    void unlock(bool shared) {
        if (shared)
            locked_.store(false, std::memory_order_release);
    }
    std::atomic<bool> locked_{false};
    Thread *first_ = nullptr;
};

struct alignas(64) Worker {
    int cpu = 0;
    List ready;
    Pool pool;
    Thread *left = nullptr;    // by_scheduler: the unit that was just preempted
    std::uint64_t phase = 0;   // ns: a moment of its ticks
    std::uint64_t changed = 0; // ns: when the present unit came
    std::uint64_t preemptions = 0;
};

Form form;
std::uint64_t slice;
void (*the_body)(std::size_t unit);
std::deque<Worker> workers;
std::deque<Thread> threads; // the units', then those of the pools
pthread_barrier_t begun;
std::atomic<bool> over{false};
std::atomic<int> error_in_handler{0};
sigset_t ticks, while_suspended;
thread_local Thread *self;

void expect(bool well) {
    if (!well)
        error_in_handler.store(errno, std::memory_order_relaxed);
}

std::uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * kSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

// --- suspend and resume: all of this is allowed in a signal handler ------------------------------------------

void wait_until_sent(Thread *me) {
    while (me->sent.load(std::memory_order_acquire) == 0)
        if (form.by_signal)
            sigsuspend(&while_suspended); // kGoOn is blocked elsewhere: none is lost
        else
            syscall(SYS_futex, &me->sent, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    me->sent.store(0, std::memory_order_relaxed);
}

void resume(Thread *thread) {
    thread->sent.store(1, std::memory_order_release);
    if (form.by_signal)
        expect((errno = pthread_kill(thread->handle, kGoOn)) == 0);
    else
        syscall(SYS_futex, &thread->sent, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void place(Thread *thread, int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    expect(sched_setaffinity(thread->tid, sizeof set, &set) == 0);
    thread->cpu = cpu;
}

// The caller has it no longer.
void send(Worker *worker, Thread *to) {
    if (form.always_places || to->cpu != worker->cpu)
        place(to, worker->cpu);
    to->worker = worker;
    resume(to);
}

// --- ticks ---------------------------------------------------------------------------------------------------

timespec time_of(std::uint64_t ns) {
    return {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
}

// `to` is the next unit's thread. It first, and at the same moments: so the kernel need not tell the hardware of another.
void move_ticks(Worker *worker, const Thread *from, const Thread *to) {
    const std::uint64_t present = now(), periods = (present - worker->phase) / slice + 1;
    const itimerspec from_now = {time_of(slice), time_of(worker->phase + periods * slice)}, never{};
    expect(timer_settime(to->timer, TIMER_ABSTIME, &from_now, nullptr) == 0);
    if (from != nullptr)
        expect(timer_settime(from->timer, 0, &never, nullptr) == 0);
    worker->changed = present;
}

// --- preemption ------------------------------------------------------------------------------------------------

Pool *pool_of(Worker *worker) {
    return form.one_pool ? &workers.front().pool : &worker->pool;
}

// The next unit takes its turn; `from` was preempted.
void change(Worker *worker, Thread *from, Thread *chooser) {
    Thread *next = worker->ready.pop();
    worker->ready.push(from);
    move_ticks(worker, from, next);
    if (chooser != nullptr)
        pool_of(worker)->give(chooser, form.one_pool); // may be sent one from now on
    send(worker, next);
}

void on_tick(int, siginfo_t *, void *) {
    const int error = errno;
    Thread *me = self;
    Worker *worker = me->worker;
    if (!worker->ready.is_empty() && now() - worker->changed >= slice / 2) {
        worker->preemptions++;
        if (form.by_scheduler) {
            worker->left = me;
            send(worker, pool_of(worker)->take(form.one_pool));
        } else {
            change(worker, me, nullptr);
        }
        wait_until_sent(me);
    }
    errno = error;
}

void on_continue(int, siginfo_t *, void *) {}

// --- kernel threads --------------------------------------------------------------------------------------------

void *be_in_pool(void *arg) {
    self = static_cast<Thread *>(arg);
    self->tid = gettid();
    pthread_barrier_wait(&begun);
    for (;;) {
        wait_until_sent(self);
        if (over.load(std::memory_order_acquire))
            return nullptr;
        change(self->worker, self->worker->left, self);
    }
}

void *be_unit(void *arg) {
    self = static_cast<Thread *>(arg);
    self->tid = gettid();
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kTick;
    event._sigev_un._tid = self->tid;
    expect(timer_create(CLOCK_MONOTONIC, &event, &self->timer) == 0);
    pthread_barrier_wait(&begun);
    wait_until_sent(self);
    pthread_sigmask(SIG_UNBLOCK, &ticks, nullptr);
    the_body(self->unit);
    pthread_sigmask(SIG_BLOCK, &ticks, nullptr);
    Worker *worker = self->worker;
    timer_delete(self->timer);
    if (!worker->ready.is_empty()) {
        Thread *next = worker->ready.pop();
        move_ticks(worker, nullptr, next);
        send(worker, next);
    }
    return nullptr;
}

void start(Thread *thread, void *(*function)(void *)) {
    preempt::check(pthread_create(&thread->handle, nullptr, function, thread), "pthread_create");
}

// The workers' ticks come one after another.
void make_workers(const std::vector<int> &cpus) {
    const std::uint64_t first = now();
    for (std::size_t i = 0; i < cpus.size(); i++) {
        Worker &worker = workers.emplace_back();
        worker.cpu = cpus[i];
        worker.phase = first + i * slice / cpus.size();
    }
}

void start_threads(std::size_t units) {
    const std::size_t all = workers.size() * (units + kSpare), bodies = workers.size() * units;
    preempt::check(pthread_barrier_init(&begun, nullptr, static_cast<unsigned>(all) + 1),
                   "pthread_barrier_init");
    for (std::size_t i = 0; i < all; i++) {
        Thread &thread = threads.emplace_back();
        thread.unit = i;
        start(&thread, i < bodies ? be_unit : be_in_pool);
    }
    pthread_barrier_wait(&begun);
    for (std::size_t i = 0; i < all; i++) {
        Thread &thread = threads[i];
        thread.worker = &workers[i < bodies ? i / units : (i - bodies) / kSpare];
        place(&thread, thread.worker->cpu);
        if (i < bodies)
            thread.worker->ready.push(&thread);
        else
            pool_of(thread.worker)->give(&thread, form.one_pool);
    }
}

} // namespace

std::uint64_t run(const Form &of, const std::vector<int> &cpus, std::size_t units, double slice_us,
                  void (*body)(std::size_t unit)) {
    form = of;
    slice = static_cast<std::uint64_t>(slice_us * 1e3);
    the_body = body;
    preempt::handle(kTick, on_tick);
    preempt::handle(kGoOn, on_continue);
    sigset_t both;
    sigemptyset(&ticks);
    sigaddset(&ticks, kTick);
    both = ticks;
    sigaddset(&both, kGoOn);
    sigfillset(&while_suspended);
    sigdelset(&while_suspended, kGoOn);
    pthread_sigmask(SIG_BLOCK, &both, nullptr);
    make_workers(cpus);
    start_threads(units);
    for (Worker &worker : workers) {
        Thread *first = worker.ready.pop();
        move_ticks(&worker, nullptr, first);
        send(&worker, first);
    }
    const std::size_t bodies = workers.size() * units;
    for (std::size_t i = 0; i < bodies; i++)
        pthread_join(threads[i].handle, nullptr);
    over.store(true, std::memory_order_release);
    for (std::size_t i = bodies; i < threads.size(); i++) {
        resume(&threads[i]);
        pthread_join(threads[i].handle, nullptr);
    }
    preempt::check(error_in_handler.load(), "the model of KLT-switching");
    std::uint64_t preemptions = 0;
    for (const Worker &worker : workers)
        preemptions += worker.preemptions;
    return preemptions;
}

} // namespace klt_model
