// SPDX-License-Identifier: Apache-2.0
//
// stress-ult: threads are made in all ways, in queues and pools, joined, joined in time or not, let go, passed on to
// strangers, suspended and resumed, and live twice; workers come and go.
#include <errno.h>
#include <fenv.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "ult_stress.h"
#include "user_pool.hpp"

namespace {

constexpr int kMailboxes = 16, kPools = 6, kScheds = 2, kStackSize = 65536;

std::array<std::atomic<Task *>, kMailboxes> mailboxes;

// None of them: there are no pools in this round.
unsigned pools_used = 0;
std::array<thrum_pool_t, kPools> pools; // the last is the user's own
std::optional<UserFifo> users_own;
std::array<thrum_sched_t, kScheds> scheds;
std::array<unsigned, kScheds> sched_workers;
unsigned scheds_used = 0;
thrum_sched_t stacked = nullptr;
thrum_t stacked_thread = nullptr;

unsigned lasting_workers;              // the others come and go
std::atomic<bool> workers_are_changed; // by one at a time

std::uint64_t number(const void *result) {
    return reinterpret_cast<std::uintptr_t>(result);
}

void *as_result(std::uint64_t number) {
    return reinterpret_cast<void *>(number); // NOLINT(performance-no-int-to-ptr)
}

// Waits for ever, unless it is cancelled; or it has ended before that.
struct Waiting {
    unsigned how;
    std::atomic<int> unwound{0};
};

struct Unwinding {
    Waiting *waiting;
    explicit Unwinding(Waiting *which) : waiting(which) {}
    ~Unwinding() { waiting->unwound++; }
    Unwinding(const Unwinding &) = delete;
};

void *wait_for_the_end(void *arg) {
    auto *waiting = static_cast<Waiting *>(arg);
    const Unwinding unwinding(waiting);
    count.ran++;
    switch (waiting->how) {
    case 0: thrum_suspend(); break;
    case 1: thrum_sleep(1000 * THRUM_S); break;
    case 2: {
        thrum_event_t event = THRUM_EVENT_INITIALIZER;
        thrum_event_wait(&event);
        break;
    }
    case 3: return nullptr;
    default:
        for (int i = 0; i < 20; i++) { // not for ever: a pool may run the newest first
            thrum_testcancel();
            thrum_yield();
        }
        thrum_sleep(1000 * THRUM_S);
        break;
    }
    return nullptr;
}

// Ends in favour of a thread that is suspended.
struct Leaving {
    thrum_t successor;
    std::uint64_t seed;
};

void *leave_to_successor(void *arg) {
    const Leaving leaving = *static_cast<Leaving *>(arg);
    count.ran++;
    thrum_exit_to(as_result(result_of(leaving.seed)), leaving.successor);
}

void *call_that_blocks(void *arg) {
    CHECK(thrum_self() == nullptr);
    usleep(50);
    return as_result(number(arg) + 1);
}

__attribute__((noinline)) void end_from_within(std::uint64_t seed) {
    thrum_exit(as_result(result_of(seed)));
}

void *run_tasklet(void *arg) {
    count.ran++;
    return as_result(number(arg) + 1);
}

} // namespace

void *run_task(void *arg) {
    auto *task = static_cast<Task *>(arg);
    const std::uint64_t seed = task->seed;
    const bool unowned = task->unowned, exits = task->exits;
    CHECK(task->runs.fetch_add(1) == 0);
    count.ran++;
    if (task->suspends)
        CHECK(thrum_suspend() == 0);
    {
        Program program(seed, task->depth);
        program.run(task->depth > 0 ? 4 : 2);
    }
    count.live--;
    if (unowned) {
        delete task;
        count.unowned--;
    }
    if (exits)
        end_from_within(seed);
    return as_result(result_of(seed));
}

// --- making -----------------------------------------------------------------------------------------------

void Program::attributes(thrum_attr_t *attr) {
    thrum_attr_init(attr);
    CHECK(thrum_attr_set_flags(attr, random_.one_in(3) ? THRUM_SPAWN_QUEUED : 0) == 0);
    CHECK(thrum_attr_set_stack_size(attr, std::size_t{1} << (random_.one_in(8) ? 18 : 16)) == 0);
    CHECK(thrum_attr_set_priority(attr, random_.below(THRUM_PRIORITY_MAX + 1)) == 0);
    thrum_attr_set_deadline(attr, random_.below(1000));
    if (pools_used > 0 && random_.one_in(2)) {
        thrum_attr_set_pool(attr, pools[random_.below(pools_used)]);
        count.pooled++;
    } else if (random_.one_in(6)) {
        CHECK(thrum_attr_set_worker(attr, random_.below(lasting_workers)) == 0);
    }
}

Task *Program::make(int depth) {
    auto *task = new Task;
    task->seed = random_.next();
    task->depth = depth;
    task->exits = exceptions && random_.one_in(8);
    count.spawned++;
    count.live++;
    return task;
}

void Program::start(Task *task, thrum_t *handle) {
    thrum_attr_t attr;
    attributes(&attr);
    if (task->stack != nullptr)
        CHECK(thrum_attr_set_stack(&attr, task->stack.get(), kStackSize) == 0);
    fesetround(FE_TONEAREST); // what a new one begins with is not what is asked here
    CHECK(thrum_spawn(handle, random_.one_in(2) ? nullptr : &attr, run_task, task) == 0);
    fesetround(mode_);
}

// Its deleter joins it first: it may have a stack that goes with it.
Task *Program::spawn(int depth) {
    Task *task = make(depth);
    if (random_.one_in(16))
        task->stack = std::make_unique<char[]>(kStackSize);
    start(task, &task->handle);
    return task;
}

void Program::finish(Task *task) {
    void *result = nullptr;
    CHECK(thrum_join(task->handle, &result) == 0);
    CHECK(number(result) == result_of(task->seed));
    CHECK(task->runs == 1);
    count.joined++;
    delete task;
}

// With deadlines that may be too early, and tries; a plain join at last.
void Program::finish_in_time(Task *task) {
    for (unsigned tries = random_.below(4); tries > 0; tries--) {
        void *result = nullptr;
        const int error = random_.one_in(4) ? thrum_try_join(task->handle, &result)
                                            : thrum_join_until(task->handle, &result, soon(random_));
        if (error == 0) {
            CHECK(number(result) == result_of(task->seed) && task->runs == 1);
            count.joined++;
            delete task;
            return;
        }
        CHECK(error == ETIMEDOUT || error == EBUSY);
        count.timeouts++;
    }
    finish(task);
}

void Program::spawn_and_join() {
    if (!may_spawn())
        return;
    std::vector<Task *> tasks(1 + random_.below(5));
    for (Task *&task : tasks)
        task = spawn(depth_ - 1);
    while (!tasks.empty()) { // in any order
        const unsigned i = random_.below(static_cast<unsigned>(tasks.size()));
        std::swap(tasks[i], tasks.back());
        if (random_.one_in(2))
            finish(tasks.back());
        else
            finish_in_time(tasks.back());
        tasks.pop_back();
    }
}

// --- letting go -------------------------------------------------------------------------------------------

void Program::spawn_detached() {
    if (!may_spawn())
        return;
    Task *task = make(depth_ - 1);
    task->unowned = true;
    count.unowned++;
    start(task, nullptr);
}

// It may end before, while or after it is detached.
void Program::spawn_and_detach() {
    if (!may_spawn())
        return;
    Task *task = make(depth_ - 1);
    task->unowned = true;
    count.unowned++;
    thrum_t handle = nullptr;
    start(task, &handle);
    if (random_.one_in(2))
        thrum_yield();
    CHECK(thrum_detach(handle) == 0);
}

// Joined in time, or else detached.
void Program::join_or_let_go() {
    if (!may_spawn())
        return;
    Task *task = make(depth_ - 1);
    const std::uint64_t seed = task->seed;
    task->unowned = true;
    count.unowned++;
    thrum_t handle = nullptr;
    start(task, &handle);
    void *result = nullptr;
    const int error = thrum_join_until(handle, &result, soon(random_));
    if (error == 0) {
        CHECK(number(result) == result_of(seed));
        count.joined++;
    } else {
        CHECK(error == ETIMEDOUT);
        count.timeouts++;
        CHECK(thrum_detach(handle) == 0);
    }
}

// A child goes into a mailbox; what was there before is another thread's child, and ours to join. Those in mailboxes
// join no thread themselves, so that no two wait for each other.
void Program::pass_on() {
    if (depth_ == 0)
        return;
    Task *mine = count.live <= kLiveLimit && !round_over ? spawn(0) : nullptr;
    Task *theirs = mailboxes[random_.below(kMailboxes)].exchange(mine);
    if (theirs == nullptr)
        return;
    if (random_.one_in(2))
        finish(theirs);
    else
        finish_in_time(theirs);
}

// --- many at once -----------------------------------------------------------------------------------------

void Program::spawn_many() {
    if (!may_spawn())
        return;
    const unsigned many = 1 + random_.below(8);
    std::vector<Task> tasks(many);
    std::vector<thrum_t> handles(many);
    for (Task &task : tasks) {
        task.seed = random_.next();
        task.depth = 0;
    }
    count.spawned += many;
    count.live += many;
    thrum_attr_t attr;
    attributes(&attr);
    fesetround(FE_TONEAREST);
    CHECK(thrum_spawn_many(many, handles.data(), &attr, run_task, tasks.data(), sizeof(Task)) == 0);
    fesetround(mode_);
    for (unsigned i = 0; i < many; i++) {
        void *result = nullptr;
        CHECK(thrum_join(handles[i], &result) == 0);
        CHECK(number(result) == result_of(tasks[i].seed) && tasks[i].runs == 1);
        count.joined++;
    }
}

void Program::spawn_tasklets() {
    std::array<thrum_t, 4> handles;
    const std::uint64_t first = random_.next() >> 1;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    CHECK(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET) == 0);
    for (std::size_t i = 0; i < handles.size(); i++) {
        count.spawned++;
        CHECK(thrum_spawn(&handles[i], &attr, run_tasklet, as_result(first + i)) == 0);
    }
    for (std::size_t i = handles.size(); i-- > 0;) {
        void *result = nullptr;
        CHECK(thrum_join(handles[i], &result) == 0);
        CHECK(number(result) == first + i + 1);
        count.joined++;
    }
}

// --- waiting ----------------------------------------------------------------------------------------------

// Resumed once, before it suspends itself or after.
void Program::suspend_and_resume() {
    if (!may_spawn())
        return;
    Task *task = make(depth_ - 1);
    task->suspends = true;
    start(task, &task->handle);
    for (unsigned i = random_.below(3); i > 0; i--)
        thrum_yield();
    if (random_.one_in(2))
        thrum_resume(task->handle);
    else
        thrum_switch_to(task->handle);
    count.resumed++;
    finish(task);
}

void Program::spawn_and_cancel() {
    if (!may_spawn())
        return;
    Waiting waiting{random_.below(5)};
    thrum_attr_t attr;
    attributes(&attr);
    CHECK(thrum_attr_set_flags(&attr,
                               THRUM_SPAWN_CANCELLABLE | (random_.one_in(2) ? THRUM_SPAWN_QUEUED : 0)) == 0);
    thrum_t thread = nullptr;
    count.spawned++;
    fesetround(FE_TONEAREST);
    CHECK(thrum_spawn(&thread, &attr, wait_for_the_end, &waiting) == 0);
    fesetround(mode_);
    for (unsigned i = random_.below(3); i > 0; i--)
        thrum_yield();
    CHECK(thrum_cancel(thread) == 0);
    void *result = nullptr;
    CHECK(thrum_join(thread, &result) == 0);
    CHECK(result == (waiting.how == 3 ? nullptr : THRUM_CANCELED));
    CHECK(waiting.unwound == 1);
    count.joined++;
    count.cancelled++;
}

// With the same handle.
void Program::live_twice() {
    if (!may_spawn())
        return;
    Task *task = spawn(depth_ - 1);
    void *result = nullptr;
    CHECK(thrum_join_keep(task->handle, &result) == 0);
    CHECK(number(result) == result_of(task->seed) && task->runs == 1);
    task->runs = 0;
    task->seed = random_.next();
    count.spawned++;
    count.joined++;
    count.live++;
    count.revived++;
    fesetround(FE_TONEAREST);
    CHECK(thrum_revive(task->handle, run_task, task) == 0);
    fesetround(mode_);
    finish_in_time(task);
}

void Program::leave_to_another() {
    if (!may_spawn())
        return;
    Task *task = make(depth_ - 1);
    task->suspends = true;
    start(task, &task->handle);
    for (unsigned i = random_.below(2); i > 0; i--)
        thrum_yield();
    Leaving leaving{task->handle, random_.next()};
    thrum_attr_t attr;
    attributes(&attr);
    thrum_t thread = nullptr;
    count.spawned++;
    CHECK(thrum_spawn(&thread, &attr, leave_to_successor, &leaving) == 0);
    void *result = nullptr;
    CHECK(thrum_join(thread, &result) == 0);
    CHECK(number(result) == result_of(leaving.seed));
    count.joined++;
    count.succeeded++;
    finish(task);
}

// One more, and fewer again; threads may be bound to it by then, and it stays.
void Program::change_workers() {
    unsigned worker = 0;
    if (workers_are_changed.exchange(true))
        return;
    int error = thrum_worker_add(&worker);
    CHECK(error == 0 || error == EAGAIN);
    if (error == 0) {
        CHECK(worker >= lasting_workers);
        exclude();
        thrum_yield();
        for (int i = 0; i < 20 && (error = thrum_worker_stop(worker)) == EBUSY; i++)
            thrum_yield();
        CHECK(error == 0 || error == EBUSY);
        count.workers += error == 0;
    }
    workers_are_changed = false;
}

void Program::block() {
    const std::uint64_t before = random_.next() >> 1;
    void *result = nullptr;
    const int error = thrum_blocking(call_that_blocks, as_result(before), &result);
    CHECK(error == EAGAIN || (error == 0 && number(result) == before + 1) || self_ == nullptr);
    count.blocked++;
}

// To a worker, or a pool, and, after some steps there, to any.
void Program::move() {
    if (self_ == nullptr)
        return;
    const bool to_pool = pools_used > 0 && random_.one_in(2);
    const int error = to_pool ? thrum_migrate_to_pool(self_, pools[random_.below(pools_used)])
                              : thrum_migrate(self_, random_.below(thrum_workers()));
    if (error != 0)
        return;
    count.moved++;
    thrum_yield();
    if (random_.one_in(2))
        exclude();
    CHECK(thrum_migrate(self_, THRUM_ANY_WORKER) == 0);
}

void Program::nap() {
    const std::uint64_t until = soon(random_);
    thrum_sleep_until(until);
    CHECK(thrum_now() >= until);
    count.slept++;
}

// --- a round ----------------------------------------------------------------------------------------------

static thrum_sched_t make_sched(Random &random) {
    static constexpr std::array<thrum_sched_kind, 4> kScheduling = {
        THRUM_SCHED_FIRST, THRUM_SCHED_ROUND_ROBIN, THRUM_SCHED_EXHAUST, THRUM_SCHED_RANDOM};
    thrum_sched_t sched = nullptr;
    if (const unsigned which = random.below(5); which < 4)
        CHECK(thrum_sched_create(&sched, kScheduling[which], pools.data(), kPools) == 0);
    else
        CHECK(thrum_sched_create_stealing(&sched, pools.data(), 2, kPools / 2, random.below(2)) == 0);
    return sched;
}

void threads_begin(std::uint64_t seed) {
    Random random(seed);
    pools_used = scheds_used = 0;
    lasting_workers = thrum_workers();
    if (random.one_in(3))
        return;
    static constexpr std::array<thrum_pool_kind, kPools - 1> kKinds = {
        THRUM_POOL_FIFO, THRUM_POOL_LIFO, THRUM_POOL_PRIORITY, THRUM_POOL_DEADLINE, THRUM_POOL_DEQUE};
    for (std::size_t i = 0; i < kKinds.size(); i++)
        CHECK(thrum_pool_create(&pools[i], kKinds[i]) == 0);
    users_own.emplace(random.one_in(2));
    CHECK(users_own->error() == 0);
    pools.back() = users_own->pool();
    scheds_used = thrum_workers() > 2 ? 2 : 1;
    for (unsigned i = 0; i < scheds_used; i++) {
        scheds[i] = make_sched(random);
        sched_workers[i] = thrum_workers() - 1 - i;
        CHECK(thrum_worker_set_sched(sched_workers[i], scheds[i]) == 0);
    }
    if (random.one_in(2)) {
        stacked = make_sched(random);
        CHECK(thrum_sched_spawn(&stacked_thread, nullptr, stacked) == 0);
    }
    pools_used = kPools;
}

void mailboxes_empty() {
    for (std::atomic<Task *> &mailbox : mailboxes) {
        Task *task = mailbox.exchange(nullptr);
        if (task == nullptr)
            continue;
        void *result = nullptr;
        CHECK(thrum_join(task->handle, &result) == 0);
        CHECK(number(result) == result_of(task->seed));
        count.joined++;
        delete task;
    }
}

// No thread runs any more.
void threads_end() {
    if (stacked != nullptr) {
        thrum_sched_stop(stacked);
        CHECK(thrum_join(stacked_thread, nullptr) == 0);
        CHECK(thrum_sched_destroy(stacked) == 0);
        stacked = nullptr;
    }
    for (unsigned i = 0; i < scheds_used; i++)
        CHECK(thrum_worker_set_sched(sched_workers[i], nullptr) == 0);
    for (unsigned i = 0; i < scheds_used; i++)
        while (thrum_sched_destroy(scheds[i]) == EBUSY)
            thrum_sleep(50 * THRUM_US);
    for (unsigned i = 0; i < pools_used; i++)
        CHECK(thrum_pool_destroy(pools[i]) == 0);
    pools_used = scheds_used = 0;
}
