// SPDX-License-Identifier: Apache-2.0
//
// libthrum itself: what the others are compared with.
#include <thrum/pool.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>

#include <cstdlib>
#include <string>

#include "grains.hpp"

namespace {

void check(int error) {
    if (error != 0) {
        std::fprintf(stderr, "thrum: %s\n", std::strerror(error));
        std::exit(1);
    }
}

thrum_attr_t with_flags(unsigned flags) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    check(thrum_attr_set_flags(&attr, flags));
    return attr;
}

struct Thrum {
    static constexpr bool kYields = true, kDetaches = true, kWaits = true, kLocks = true, kLives = true;
    static constexpr long kFib = 30, kSkynet = 1000000, kMost = 1000000;

    static void *call(void *body) {
        reinterpret_cast<void (*)()>(body)();
        return nullptr;
    }
    static void run(unsigned workers, void (*body)()) {
        const thrum_config config{workers, 0, {}, {}};
        check(thrum_init(&config));
        thrum_t thread;
        check(thrum_spawn(&thread, nullptr, call, reinterpret_cast<void *>(body)));
        check(thrum_join(thread, nullptr));
    }
    static void life(unsigned workers) {
        const thrum_config config{workers, 0, {}, {}};
        check(thrum_init(&config));
        check(thrum_fini());
    }
    static void yield() { thrum_yield(); }
    static void detach(workloads::Function fn, void *arg) { check(thrum_spawn(nullptr, nullptr, fn, arg)); }

    template <int N>
    class Group {
      public:
        void spawn(workloads::Function fn, void *arg) { spawn_as(nullptr, fn, arg); }
        void queue(workloads::Function fn, void *arg) {
            const thrum_attr_t attr = with_flags(THRUM_SPAWN_QUEUED);
            spawn_as(&attr, fn, arg);
        }
        void spawn_as(const thrum_attr_t *attr, workloads::Function fn, void *arg) {
            check(thrum_spawn(&threads_[count_++], attr, fn, arg));
        }
        void join() {
            for (int i = 0; i < count_; i++)
                check(thrum_join(threads_[i], nullptr));
            count_ = 0;
        }

      private:
        int count_ = 0;
        thrum_t threads_[N];
    };

    struct Mutex {
        thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
        void lock() { thrum_mutex_lock(&mutex); }
        void unlock() { thrum_mutex_unlock(&mutex); }
    };
    struct Condition {
        thrum_cond_t cond = THRUM_COND_INITIALIZER;
        void wait(Mutex &mutex) { thrum_cond_wait(&cond, &mutex.mutex); }
        void signal() { thrum_cond_signal(&cond); }
        void broadcast() { thrum_cond_broadcast(&cond); }
    };
};

// --- rows that no other runtime has: "tasklet", "tasklet-one", "stack BYTES", "stack-one BYTES", "levels",
// --- "main-one", "main-batched", "outside-one", "klt-one" ---

// As workloads::batch and one_at_a_time, with attributes.
thrum_attr_t attributes;

template <int N>
double batch_with_attributes() {
    constexpr int kMany = 1000;
    static Thrum::Group<N> group;
    for (int made = 0; made < kMany; made += N) {
        for (int i = 0; i < N; i++)
            group.spawn_as(&attributes, workloads::nothing, nullptr);
        group.join();
    }
    return kMany;
}

// Whether `row` is one of them.
bool set_attributes(const char *row) {
    if (std::strncmp(row, "tasklet", 7) == 0) {
        attributes = with_flags(THRUM_SPAWN_TASKLET);
        return true;
    }
    if (std::strncmp(row, "stack", 5) != 0)
        return false;
    attributes = with_flags(0);
    const char *bytes = std::strpbrk(row, "0123456789");
    if (bytes != nullptr) // without: what has no size of its own
        check(thrum_attr_set_stack_size(&attributes, std::strtoul(bytes, nullptr, 10)));
    return true;
}

void run_own() {
    if (std::strstr(workloads::wanted, "-one") != nullptr)
        workloads::measure(batch_with_attributes<1>);
    else
        workloads::measure(batch_with_attributes<1000>);
}

// "levels": as "queued", but through pools: each worker steals by levels, of which there are two, and the maker puts every
// other thread into the higher one of the worker that it is on.
constexpr unsigned kLevels = 2;
std::vector<thrum_pool_t> pools;

double batch_in_levels() {
    constexpr int kMany = 1000;
    static Thrum::Group<kMany> group;
    thrum_attr_t attr = with_flags(0);
    for (unsigned i = 0; i < kMany; i++) {
        const auto here = static_cast<unsigned>(thrum_worker_self());
        thrum_attr_set_pool(&attr, pools[here * kLevels + i % kLevels]);
        group.spawn_as(&attr, workloads::nothing, nullptr);
    }
    group.join();
    return kMany;
}

void run_levels() {
    const unsigned workers = thrum_workers();
    pools.resize(static_cast<std::size_t>(workers) * kLevels);
    for (thrum_pool_t &pool : pools)
        check(thrum_pool_create(&pool, THRUM_POOL_DEQUE));
    for (unsigned i = 0; i < workers; i++) {
        thrum_sched_t sched;
        check(thrum_sched_create_stealing(&sched, pools.data(), workers, kLevels, i));
        check(thrum_worker_set_sched(i, sched));
    }
    workloads::measure(batch_in_levels);
}

// "grain-manyNS": as grains.hpp has it.
void spawn_many() {
    static thrum_t threads[grains::kMost];
    const auto count = static_cast<std::size_t>(grains::tasks);
    check(thrum_spawn_many(count, threads, nullptr, grains::grain, nullptr, 0));
    for (std::size_t i = 0; i < count; i++)
        check(thrum_join(threads[i], nullptr));
}

void run_grains() {
    if (std::strncmp(workloads::wanted, "grain-many", 10) == 0)
        grains::measure(spawn_many, std::atof(workloads::wanted + 10));
    else
        grains::run_wanted<Thrum>();
}

// The maker is no thread of libthrum's that was spawned: what called thrum_init, or a kernel thread that no runtime knows, which
// has workers of its own to make threads for it.
struct ByMain : Thrum {
    static void run(unsigned workers, void (*body)()) {
        const thrum_config config{workers, 0, {}, {}};
        check(thrum_init(&config));
        body();
    }
};
struct ByMainInKlt : Thrum {
    static void run(unsigned workers, void (*body)()) {
        setenv("THRUM_PREEMPT", "klt", 1);
        ByMain::run(workers, body);
    }
};
struct FromOutside : Thrum {
    static void run(unsigned workers, void (*body)()) {
        setenv("THRUM_WORKERS", std::to_string(workers).c_str(), 1);
        body();
    }
};

void run_one() {
    workloads::measure(workloads::one_at_a_time<Thrum>);
}

void run_batched() {
    workloads::measure([] { return workloads::batch<Thrum, 1000>(workloads::nothing, nullptr, false); });
}

} // namespace

int main(int argc, char **argv) {
    if (argc == 4 && std::strcmp(argv[1], "main-one") == 0)
        return workloads::main_of<ByMain>(argc, argv, run_one);
    if (argc == 4 && std::strcmp(argv[1], "main-batched") == 0)
        return workloads::main_of<ByMain>(argc, argv, run_batched);
    if (argc == 4 && std::strcmp(argv[1], "klt-one") == 0)
        return workloads::main_of<ByMainInKlt>(argc, argv, run_one);
    if (argc == 4 && std::strcmp(argv[1], "outside-one") == 0)
        return workloads::main_of<FromOutside>(argc, argv, run_one);
    if (argc == 4 && set_attributes(argv[1]))
        return workloads::main_of<Thrum>(argc, argv, run_own);
    if (argc == 4 && std::strcmp(argv[1], "levels") == 0)
        return workloads::main_of<Thrum>(argc, argv, run_levels);
    return workloads::main_of<Thrum>(argc, argv, run_grains);
}
