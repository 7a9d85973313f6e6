// SPDX-License-Identifier: Apache-2.0
//
// What <thrum/thrum.hpp> costs above the functions that it is made of: each row is written once in C's manner and
// once in C++'s, and does the same. Nanoseconds an operation, of CPU with one worker and of wall time with two; the
// ratio is taken within a turn, in which both are measured one after the other. And what one of many costs that wait for the
// same channel: a thread, a task on a thread's stack, and a task that awaits without one.
#include <thrum/thrum.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rounds.hpp"

namespace {

void check(int error) {
    if (error != 0)
        throw bench::Failure("libthrum: error " + std::to_string(error));
}

void *nothing(void *) {
    return nullptr;
}

// --- a thread -----------------------------------------------------------------------------------------------

constexpr std::uint64_t kThreads = 1000;

std::uint64_t spawn_c() {
    for (std::uint64_t i = 0; i < kThreads; i++) {
        thrum_t thread;
        check(thrum_spawn(&thread, nullptr, nothing, nullptr));
        check(thrum_join(thread, nullptr));
    }
    return kThreads;
}

std::uint64_t thread_cpp() {
    for (std::uint64_t i = 0; i < kThreads; i++)
        thrum::thread([] {}).join();
    return kThreads;
}

std::uint64_t branch_cpp() {
    for (std::uint64_t i = 0; i < kThreads; i++)
        thrum::branch([] {}).join();
    return kThreads;
}

// Three words go to the thread: in C in the maker's frame, which waits.
struct Words {
    std::uint64_t *sum, a, b;
};

void *add_words(void *arg) {
    const auto *words = static_cast<const Words *>(arg);
    *words->sum += words->a + words->b;
    return nullptr;
}

std::uint64_t words_c() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++) {
        Words words{&sum, i, i};
        thrum_t thread;
        check(thrum_spawn(&thread, nullptr, add_words, &words));
        check(thrum_join(thread, nullptr));
    }
    return sum != 0 ? kThreads : 0;
}

std::uint64_t words_thread_cpp() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++)
        thrum::thread([&sum, i, j = i] { sum += i + j; }).join();
    return sum != 0 ? kThreads : 0;
}

std::uint64_t words_branch_cpp() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++)
        thrum::branch([&sum, i, j = i] { sum += i + j; }).join();
    return sum != 0 ? kThreads : 0;
}

std::uint64_t async_cpp() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++)
        sum += thrum::async([i] { return i; }).get();
    return sum != 0 ? kThreads : 0;
}

constexpr std::size_t kGroup = 100;

std::uint64_t group_c() {
    std::uint64_t sum = 0;
    std::array<Words, kGroup> words;
    std::array<thrum_t, kGroup> threads;
    for (std::size_t i = 0; i < kGroup; i++) {
        words[i] = {&sum, i, i};
        check(thrum_spawn(&threads[i], nullptr, nothing, &words[i]));
    }
    for (const thrum_t thread : threads)
        check(thrum_join(thread, nullptr));
    return kGroup;
}

std::uint64_t group_cpp() {
    thrum::task_group group;
    for (std::size_t i = 0; i < kGroup; i++)
        group.run([] {});
    group.wait();
    return kGroup;
}

// --- the same work in C: arguments and results on the heap -----------------------------------------------------

Words *new_words(std::uint64_t *sum, std::uint64_t i) {
    auto *words = static_cast<Words *>(std::malloc(sizeof(Words)));
    if (words == nullptr)
        throw bench::Failure("no memory");
    *words = {sum, i, i};
    return words;
}

void *add_words_and_free(void *arg) {
    add_words(arg);
    std::free(arg);
    return nullptr;
}

std::uint64_t words_heap_c() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++) {
        thrum_t thread;
        check(thrum_spawn(&thread, nullptr, add_words_and_free, new_words(&sum, i)));
        check(thrum_join(thread, nullptr));
    }
    return sum != 0 ? kThreads : 0;
}

// A result that its last user frees, the detached thread or the waiter.
struct Result {
    thrum_eventual_t value;
    std::atomic<int> holders;
    std::uint64_t number;
};

void leave(Result *result) {
    if (result->holders.fetch_sub(1, std::memory_order_acq_rel) == 1)
        std::free(result);
}

void *set_result(void *arg) {
    auto *result = static_cast<Result *>(arg);
    check(thrum_eventual_set(&result->value, &result->number));
    leave(result);
    return nullptr;
}

std::uint64_t eventual_c() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++) {
        auto *result = static_cast<Result *>(std::malloc(sizeof(Result)));
        if (result == nullptr)
            throw bench::Failure("no memory");
        thrum_eventual_init(&result->value);
        new (&result->holders) std::atomic<int>(2);
        result->number = i;
        check(thrum_spawn(nullptr, nullptr, set_result, result));
        sum += *static_cast<const std::uint64_t *>(thrum_eventual_get(&result->value));
        leave(result);
    }
    return sum != 0 ? kThreads : 0;
}

struct Task {
    thrum_latch_t *done;
    std::uint64_t *sums, i;
};

void *do_task(void *arg) {
    const auto *task = static_cast<const Task *>(arg);
    task->sums[task->i] = task->i;
    thrum_latch_t *done = task->done;
    std::free(arg);
    check(thrum_latch_count_down(done, 1));
    return nullptr;
}

std::uint64_t group_heap_c() {
    std::array<std::uint64_t, kGroup> sums;
    thrum_latch_t done;
    thrum_latch_init(&done, kGroup);
    for (std::size_t i = 0; i < kGroup; i++) {
        auto *task = static_cast<Task *>(std::malloc(sizeof(Task)));
        if (task == nullptr)
            throw bench::Failure("no memory");
        *task = {&done, sums.data(), i};
        check(thrum_spawn(nullptr, nullptr, do_task, task));
    }
    thrum_latch_wait(&done);
    return sums[kGroup - 1] != 0 ? kGroup : 0;
}

std::uint64_t group_words_cpp() {
    std::array<std::uint64_t, kGroup> sums;
    thrum::task_group group;
    for (std::size_t i = 0; i < kGroup; i++)
        group.run([&sums, i] { sums[i] = i; });
    group.wait();
    return sums[kGroup - 1] != 0 ? kGroup : 0;
}

std::uint64_t executor_cpp() {
    std::array<std::uint64_t, kGroup> sums;
    thrum::latch done(kGroup);
    const thrum::executor executor;
    for (std::size_t i = 0; i < kGroup; i++)
        executor.execute([&done, &sums, i] {
            sums[i] = i;
            done.count_down();
        });
    done.wait();
    return sums[kGroup - 1] != 0 ? kGroup : 0;
}

thrum::task<std::uint64_t> await_all() {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kThreads; i++)
        sum += co_await thrum::async([i] { return i; });
    co_return sum;
}

std::uint64_t await_cpp() {
    return thrum::async(await_all()).get() != 0 ? kThreads : 0;
}

// --- loops ----------------------------------------------------------------------------------------------------

constexpr std::size_t kElements = 16384, kGrain = 64;

std::vector<std::uint64_t> &elements() {
    static std::vector<std::uint64_t> all(kElements, 1);
    return all;
}

struct Part {
    std::size_t begin, end;
    std::uint64_t sum;
};

void *add_one_to_each(void *arg) {
    const Part *part = static_cast<const Part *>(arg);
    Part rest = *part;
    if (rest.end - rest.begin <= kGrain) {
        std::uint64_t *const all = elements().data();
        for (std::size_t i = rest.begin; i < rest.end; i++)
            all[i]++;
        return nullptr;
    }
    const std::size_t half = rest.begin + (rest.end - rest.begin) / 2;
    Part one{rest.begin, half, 0};
    thrum_t thread;
    check(thrum_spawn(&thread, nullptr, add_one_to_each, &one));
    rest.begin = half;
    add_one_to_each(&rest);
    check(thrum_join(thread, nullptr));
    return nullptr;
}

std::uint64_t for_each_c() {
    Part all{0, kElements, 0};
    add_one_to_each(&all);
    return kElements / kGrain;
}

std::uint64_t for_each_cpp() {
    thrum::for_each(
        elements(), [](std::uint64_t &element) { element++; }, kGrain);
    return kElements / kGrain;
}

void *add_up(void *arg) {
    auto *part = static_cast<Part *>(arg);
    if (part->end - part->begin <= kGrain) {
        const auto from = elements().begin();
        part->sum = std::accumulate(from + static_cast<std::ptrdiff_t>(part->begin),
                                    from + static_cast<std::ptrdiff_t>(part->end), std::uint64_t{0});
        return nullptr;
    }
    const std::size_t half = part->begin + (part->end - part->begin) / 2;
    Part one{part->begin, half, 0}, two{half, part->end, 0};
    thrum_t thread;
    check(thrum_spawn(&thread, nullptr, add_up, &one));
    add_up(&two);
    check(thrum_join(thread, nullptr));
    part->sum = one.sum + two.sum;
    return nullptr;
}

std::uint64_t reduce_c() {
    Part all{0, kElements, 0};
    add_up(&all);
    return all.sum != 0 ? kElements / kGrain : 0;
}

std::uint64_t reduce_cpp() {
    const std::uint64_t sum = thrum::reduce(elements().begin(), elements().end(), std::uint64_t{0},
                                            std::plus(), std::identity(), kGrain);
    return sum != 0 ? kElements / kGrain : 0;
}

// --- fib ------------------------------------------------------------------------------------------------------

constexpr int kFib = 20;
constexpr std::uint64_t kFibSpawns = 10945; // fib(21) - 1
constexpr long kFibResult = 6765;

struct Fib {
    long n, result;
};

void *fib_c(void *arg) {
    auto *self = static_cast<Fib *>(arg);
    if (self->n < 2) {
        self->result = self->n;
        return nullptr;
    }
    Fib one{self->n - 1, 0}, two{self->n - 2, 0};
    thrum_t thread;
    check(thrum_spawn(&thread, nullptr, fib_c, &one));
    fib_c(&two);
    check(thrum_join(thread, nullptr));
    self->result = one.result + two.result;
    return nullptr;
}

long fib_cpp(long n) {
    if (n < 2)
        return n;
    thrum::branch one([n] { return fib_cpp(n - 1); });
    const long two = fib_cpp(n - 2);
    return one.join() + two;
}

std::uint64_t all_fib_c() {
    Fib all{kFib, 0};
    fib_c(&all);
    return all.result == kFibResult ? kFibSpawns : 0;
}

std::uint64_t all_fib_cpp() {
    return fib_cpp(kFib) == kFibResult ? kFibSpawns : 0;
}

// --- waiting --------------------------------------------------------------------------------------------------

constexpr std::uint64_t kTrips = 2000;

struct Pair {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    std::array<thrum_cond_t, 2> turned = {{THRUM_COND_INITIALIZER, THRUM_COND_INITIALIZER}};
    std::size_t turn = 0;
};

template <std::size_t Me>
void *play_c(void *arg) {
    auto *pair = static_cast<Pair *>(arg);
    for (std::uint64_t i = 0; i < kTrips; i++) {
        thrum_mutex_lock(&pair->mutex);
        while (pair->turn != Me)
            thrum_cond_wait(&pair->turned[Me], &pair->mutex);
        pair->turn = 1 - Me;
        thrum_cond_signal(&pair->turned[1 - Me]);
        thrum_mutex_unlock(&pair->mutex);
    }
    return nullptr;
}

std::uint64_t ping_pong_c() {
    Pair pair;
    thrum_t threads[2];
    check(thrum_spawn(&threads[0], nullptr, play_c<0>, &pair));
    check(thrum_spawn(&threads[1], nullptr, play_c<1>, &pair));
    for (const thrum_t thread : threads)
        check(thrum_join(thread, nullptr));
    return kTrips;
}

std::uint64_t ping_pong_cpp() {
    thrum::mutex mutex;
    std::array<thrum::condition_variable, 2> turned;
    std::size_t turn = 0;
    const auto play = [&](std::size_t me) {
        for (std::uint64_t i = 0; i < kTrips; i++) {
            std::unique_lock lock(mutex);
            turned[me].wait(lock, [&] { return turn == me; });
            turn = 1 - me;
            turned[1 - me].notify_one();
        }
    };
    const thrum::thread one(play, std::size_t{0}), two(play, std::size_t{1});
    return kTrips;
}

constexpr std::uint64_t kLocks = 10000;

std::uint64_t lock_c() {
    static thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    for (std::uint64_t i = 0; i < kLocks; i++) {
        thrum_mutex_lock(&mutex);
        __asm__ volatile("" : : : "memory");
        thrum_mutex_unlock(&mutex);
    }
    return kLocks;
}

std::uint64_t lock_cpp() {
    static thrum::mutex mutex;
    for (std::uint64_t i = 0; i < kLocks; i++) {
        const std::lock_guard lock(mutex);
        __asm__ volatile("" : : : "memory");
    }
    return kLocks;
}

constexpr std::uint64_t kSent = 10000;

void *send_c(void *arg) {
    auto *channel = static_cast<thrum_channel_t *>(arg);
    for (std::uint64_t i = 0; i < kSent; i++)
        check(thrum_channel_send(channel, &i));
    check(thrum_channel_close(channel));
    return nullptr;
}

std::uint64_t channel_c() {
    std::uint64_t storage[64], received, sum = 0;
    thrum_channel_t channel = THRUM_CHANNEL_INITIALIZER(storage);
    thrum_t thread;
    check(thrum_spawn(&thread, nullptr, send_c, &channel));
    while (thrum_channel_receive(&channel, &received) == 0)
        sum += received;
    check(thrum_join(thread, nullptr));
    check(thrum_channel_destroy(&channel));
    return sum != 0 ? kSent : 0;
}

std::uint64_t channel_cpp() {
    thrum::channel<std::uint64_t> channel(64);
    std::uint64_t sum = 0;
    const thrum::thread sender([&] {
        for (std::uint64_t i = 0; i < kSent; i++)
            channel.send(i);
        channel.close();
    });
    for (const std::uint64_t received : channel)
        sum += received;
    return sum != 0 ? kSent : 0;
}

constexpr std::uint64_t kChoices = 1000;

// Of an event that does not come and a semaphore that another thread posts in turns.
struct Choice {
    thrum_sem_t asked, given;
};

void *give_c(void *arg) {
    auto *choice = static_cast<Choice *>(arg);
    for (std::uint64_t i = 0; i < kChoices; i++) {
        thrum_sem_wait(&choice->asked);
        check(thrum_sem_post(&choice->given));
    }
    return nullptr;
}

std::uint64_t when_any_c() {
    Choice choice;
    thrum_event_t never = THRUM_EVENT_INITIALIZER;
    thrum_sem_init(&choice.asked, 0);
    thrum_sem_init(&choice.given, 0);
    thrum_t giver;
    check(thrum_spawn(&giver, nullptr, give_c, &choice));
    std::size_t which = 1;
    for (std::uint64_t i = 0; i < kChoices && which == 1; i++) {
        check(thrum_sem_post(&choice.asked));
        thrum_wait_t waits[] = {{THRUM_WAIT_EVENT, 0, &never, nullptr, {}},
                                {THRUM_WAIT_SEM, 0, &choice.given, nullptr, {}}};
        check(thrum_wait_any(waits, 2, UINT64_MAX, &which));
    }
    check(thrum_join(giver, nullptr));
    return which == 1 ? kChoices : 0;
}

std::uint64_t when_any_cpp() {
    thrum::counting_semaphore<> asked(0), given(0);
    thrum::event never;
    const thrum::thread giver([&] {
        for (std::uint64_t i = 0; i < kChoices; i++) {
            asked.acquire();
            given.release();
        }
    });
    std::size_t which = 1;
    for (std::uint64_t i = 0; i < kChoices && which == 1; i++) {
        asked.release();
        which = thrum::when_any(never, given);
    }
    return which == 1 ? kChoices : 0;
}

// --- many that wait ---------------------------------------------------------------------------------------------

using Channel = thrum::channel<std::uint64_t>;

struct Receivers {
    Channel channel;
    std::atomic<std::uint64_t> begun{0}; // waits
    std::uint64_t sum = 0;
    thrum::mutex mutex;
    thrum::condition_variable changed, taken;
    std::uint64_t things = 0, takes = 0; // these and the next under the mutex
    bool is_over = false;
    std::optional<thrum::barrier<>> step;
    std::uint64_t phases = 0;
    std::atomic<std::uint64_t> passed{0};
};

// To co_await, a mutex of another library: so a thread waits, and keeps its stack.
struct Turn {
    Channel *channel;
    std::optional<std::uint64_t> *value;
    bool try_lock() const { return (*value = channel->try_receive()).has_value(); }
    void lock() const { *value = channel->receive(); }
    void unlock() const {}
};

thrum::task<> receive_on_thread(Receivers *all) {
    std::optional<std::uint64_t> value;
    Turn turn{&all->channel, &value};
    all->begun++;
    while (co_await thrum::locking(turn), value)
        all->sum += *value;
}

thrum::task<> receive_without_stack(Receivers *all) {
    std::optional<std::uint64_t> value;
    all->begun++;
    while (co_await all->channel.receiving(value), value)
        all->sum += *value;
}

void receive_in_thread(Receivers *all) {
    all->begun++;
    while (const std::optional<std::uint64_t> value = all->channel.receive())
        all->sum += *value;
}

std::uint64_t send_all(Receivers *all, std::uint64_t count) {
    const std::uint64_t sends = std::max<std::uint64_t>(2 * count, 20000);
    for (std::uint64_t i = 0; i < sends; i++)
        all->channel.send(i);
    return sends;
}

// A thing is there for one of them, and the next when that is taken.
bool take_one(Receivers *all) {
    if (all->things == 0)
        return false;
    all->things--;
    all->takes++;
    all->taken.notify_one();
    return true;
}

thrum::task<> await_condition(Receivers *all) {
    std::unique_lock lock(all->mutex);
    all->begun++;
    do
        co_await all->changed.waiting(lock, [all] { return all->things != 0 || all->is_over; });
    while (take_one(all));
}

void wait_for_condition(Receivers *all) {
    std::unique_lock lock(all->mutex);
    all->begun++;
    do
        all->changed.wait(lock, [all] { return all->things != 0 || all->is_over; });
    while (take_one(all));
}

std::uint64_t signal_all(Receivers *all, std::uint64_t count) {
    const std::uint64_t signals = std::max<std::uint64_t>(2 * count, 20000);
    std::unique_lock lock(all->mutex);
    for (std::uint64_t i = 0; i < signals; i++) {
        all->things = 1;
        all->changed.notify_one();
        all->taken.wait(lock, [all] { return all->things == 0; });
    }
    return signals;
}

// The last phase is not measured: while it has not ended, all wait.
std::uint64_t phases_of(std::uint64_t count) {
    return std::max<std::uint64_t>(20000 / count, 2) + 1;
}

thrum::task<> await_barrier(Receivers *all) {
    for (std::uint64_t i = 0; i < all->phases; i++) {
        all->begun++;
        co_await all->step->arriving();
        all->passed++;
    }
}

void wait_at_barrier(Receivers *all) {
    for (std::uint64_t i = 0; i < all->phases; i++) {
        all->begun++;
        all->step->arrive_and_wait();
        all->passed++;
    }
}

// Those that are woken run one after the other, as each needs the barrier's mutex: until the last of them waits again.
std::uint64_t pass_all(Receivers *all, std::uint64_t count) {
    for (std::uint64_t i = 1; i < all->phases; i++)
        all->step->arrive_and_wait();
    while (all->begun < all->phases * count)
        thrum::this_thread::yield();
    return (all->phases - 1) * count;
}

// Do the waiters' own counts say so, when all have ended?
bool have_received(const Receivers &all, std::uint64_t woken) {
    return all.sum == woken * (woken - 1) / 2;
}

bool have_taken(const Receivers &all, std::uint64_t woken) {
    return all.takes == woken;
}

bool have_passed(const Receivers &all, std::uint64_t woken) {
    return all.passed == woken / (all.phases - 1) * all.phases;
}

// What begins one that waits, and what wakes each of so many, at least two times: how often in all.
struct Waiter {
    const char *name;
    thrum::future<void> (*start)(Receivers *);
    std::uint64_t (*wake)(Receivers *, std::uint64_t);
    bool (*is_right)(const Receivers &, std::uint64_t);
};

constexpr std::array<Waiter, 7> kWaiters = {{
    {"thread, receive()", [](Receivers *all) { return thrum::async(receive_in_thread, all); }, send_all,
     have_received},
    {"task, on the stack of a thread", [](Receivers *all) { return thrum::async(receive_on_thread(all)); },
     send_all, have_received},
    {"task, co_await", [](Receivers *all) { return thrum::async(receive_without_stack(all)); }, send_all,
     have_received},
    {"thread, wait() for a condition", [](Receivers *all) { return thrum::async(wait_for_condition, all); },
     signal_all, have_taken},
    {"task, co_await of a condition", [](Receivers *all) { return thrum::async(await_condition(all)); },
     signal_all, have_taken},
    {"thread, at a barrier", [](Receivers *all) { return thrum::async(wait_at_barrier, all); }, pass_all,
     have_passed},
    {"task, co_await of a barrier", [](Receivers *all) { return thrum::async(await_barrier(all)); }, pass_all,
     have_passed},
}};

// In the child: "waits" MANNER COUNT. One worker. What is resident is looked at while all wait.
void work_of_waiters(const std::vector<std::string> &words) {
    const std::size_t manner = std::stoul(words.at(1)), count = std::stoul(words.at(2));
    const Waiter &waiter = kWaiters.at(manner);
    const thrum::runtime runtime(1);
    Receivers all;
    all.step.emplace(static_cast<std::ptrdiff_t>(count) + 1);
    all.phases = phases_of(count);
    std::vector<thrum::future<void>> waiters;
    std::uint64_t woken = 0;
    const auto let_all_wait = [&] {
        for (int i = 0; i < 3; i++)
            thrum::this_thread::yield();
    };
    thrum::branch([&] {
        for (std::size_t i = 0; i < count; i++)
            waiters.push_back(waiter.start(&all));
        while (all.begun < count)
            thrum::this_thread::yield();
        let_all_wait();
    }).join();
    bench::report_work([&] {
        return thrum::branch([&] {
                   woken = waiter.wake(&all, count);
                   let_all_wait();
                   return woken;
               })
            .join();
    });
    {
        const std::lock_guard lock(all.mutex);
        all.is_over = true;
    }
    all.changed.notify_all();
    all.channel.close();
    if (waiter.wake == pass_all)
        all.step->arrive_and_wait();
    for (thrum::future<void> &one : waiters)
        one.get();
    if (!waiter.is_right(all, woken))
        throw bench::Failure("it received something else than was sent");
}

// --- measuring --------------------------------------------------------------------------------------------------

struct Row {
    const char *name;
    std::array<std::uint64_t (*)(), 2> manners; // C's and C++'s; each returns how many operations it did
};

constexpr std::array<Row, 18> kRows = {{
    {"spawn + join, thread", {spawn_c, thread_cpp}},
    {"spawn + join, branch", {spawn_c, branch_cpp}},
    {"the same with three words, thread", {words_c, words_thread_cpp}},
    {"the same with three words, branch", {words_c, words_branch_cpp}},
    {"spawn + result, async", {words_c, async_cpp}},
    {"spawn + join of 100, task_group", {group_c, group_cpp}},
    {"three words by way of the heap, thread", {words_heap_c, words_thread_cpp}},
    {"result by way of the heap, async", {eventual_c, async_cpp}},
    {"result by way of the heap, co_await of async", {eventual_c, await_cpp}},
    {"100 by way of the heap + latch, task_group", {group_heap_c, group_words_cpp}},
    {"100 by way of the heap + latch, executor", {group_heap_c, executor_cpp}},
    {"fib, branch", {all_fib_c, all_fib_cpp}},
    {"halves down to 64 elements, for_each", {for_each_c, for_each_cpp}},
    {"halves down to 64 elements, reduce", {reduce_c, reduce_cpp}},
    {"mutex + condition, there and back", {ping_pong_c, ping_pong_cpp}},
    {"lock + unlock", {lock_c, lock_cpp}},
    {"channel of 64, a value", {channel_c, channel_cpp}},
    {"the first of two, when_any", {when_any_c, when_any_cpp}},
}};

// In the child: ROW MANNER WORKERS SECONDS.
void work(const std::vector<std::string> &words) {
    if (words.at(0) == "waits")
        return work_of_waiters(words);
    const auto once = kRows.at(std::stoul(words.at(0))).manners.at(std::stoul(words.at(1)));
    const double seconds = std::stod(words.at(3));
    const thrum::runtime runtime(static_cast<unsigned>(std::stoul(words.at(2))));
    thrum::branch(once).join(); // warm
    bench::report_work([&] {
        return thrum::branch([&] {
                   std::uint64_t operations = 0;
                   const std::uint64_t end = thrum_now() + static_cast<std::uint64_t>(seconds * 1e9);
                   do {
                       const std::uint64_t done = once();
                       if (done == 0)
                           throw bench::Failure("it did something else than it should");
                       operations += done;
                   } while (thrum_now() < end);
                   return operations;
               })
            .join();
    });
}

bench::Table waiters_table(const bench::Options &options, const bench::Environment &environment) {
    const std::array<std::string, 2> counts = {"1", std::to_string(static_cast<long>(options.numbers[2]))};
    bench::Turns turns{options.numbers[0], {}, 0};
    std::vector<std::vector<std::string>> commands;
    for (std::size_t manner = 0; manner < kWaiters.size(); manner++)
        for (const std::string &count : counts) {
            turns.variants.emplace_back(kWaiters[manner].name);
            commands.push_back({"waits", std::to_string(manner), count});
        }
    const bench::Rounds<bench::Sample> rounds(turns, [&](std::size_t which, std::size_t) {
        return bench::measure(commands[which], environment, false);
    });
    bench::Table table{"waiters",
                       "Of " + counts[1] + " that wait for one object, with one worker",
                       {{"waiter", "waiter", "", 0},
                        {"bytes", "resident memory of each", "bytes", 0},
                        {"alone", "hand-over to the only one", "ns", 1},
                        {"many", "hand-over to the next of all", "ns", 1}},
                       {}};
    const auto cpu = &bench::Sample::cpu_ns_each;
    for (std::size_t manner = 0; manner < kWaiters.size(); manner++) {
        const std::size_t one = 2 * manner, many = one + 1;
        const std::vector<double> bytes =
            rounds.compared(many, one, [&](const bench::Sample &all, const bench::Sample &alone) {
                return (all.resident_kb - alone.resident_kb) * 1024 / (options.numbers[2] - 1);
            });
        table.rows.push_back(
            {kWaiters[manner].name, bench::estimate(bytes), rounds.of(one, cpu), rounds.of(many, cpu)});
    }
    return table;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    bench::Environment environment;
    environment.preload(options.library);
    const std::string seconds = std::to_string(options.numbers[1] * 0.1);
    bench::Turns turns{options.numbers[0], {}, 2}; // C and C++
    std::vector<std::vector<std::string>> commands;
    for (std::size_t row = 0; row < kRows.size(); row++)
        for (const char *workers : {"1", "2"})
            for (const char *manner : {"0", "1"}) {
                turns.variants.emplace_back(kRows[row].name);
                commands.push_back({std::to_string(row), manner, workers, seconds});
            }
    const bench::Rounds<bench::Sample> rounds(turns, [&](std::size_t which, std::size_t) {
        return bench::measure(commands[which], environment, false);
    });
    bench::Table table{"hpp",
                       "C++ beside C, ns an operation",
                       {{"operation", "operation", "", 0},
                        {"cpu_c", "1 worker, CPU: C", "ns", 1},
                        {"cpu_cpp", "C++", "ns", 1},
                        {"cpu_ratio", "ratio", "x", 2},
                        {"wall_c", "2 workers, wall: C", "ns", 1},
                        {"wall_cpp", "C++", "ns", 1},
                        {"wall_ratio", "ratio", "x", 2}},
                       {}};
    for (std::size_t row = 0; row < kRows.size(); row++) {
        const std::size_t one = 4 * row, two = one + 2; // workers: C; C++ is the next
        const auto cpu = &bench::Sample::cpu_ns_each, wall = &bench::Sample::wall_ns_each;
        table.rows.push_back({kRows[row].name, rounds.of(one, cpu).median, rounds.of(one + 1, cpu).median,
                              rounds.ratio(one + 1, one, cpu), rounds.of(two, wall).median,
                              rounds.of(two + 1, wall).median, rounds.ratio(two + 1, two, wall)});
    }
    report.add(table);
    report.note(
        "A thread with three words, async and task_group take memory from the heap. So do C's threads in the "
        "rows that say so; in the others they need not, as their makers' frames stay.");
    report.add(waiters_table(options, environment));
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(argc, argv,
                          {"hpp",
                           "What libthrum costs through <thrum/thrum.hpp>, beside its functions themselves.",
                           {{"--rounds", "Measurements of each row", 2, 7, 15, 1, 1000},
                            {"--length", "How long each is, times 0.1 s", 0.05, 1, 1, 0.01, 100},
                            {"--waiters", "How many wait for one object", 5000, 100000, 100000, 2, 1e6}},
                           {},
                           true,
                           {},
                           "libthrum.so"},
                          body, work);
}
