// SPDX-License-Identifier: Apache-2.0
//
// See serve.hpp. The reader of the orders is a kernel thread by itself, main's: it gets a CPU from the kernel even
// where requests occupy all workers.
#include "serve.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <thrum/pool.h>
#include <thrum/thrum.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "common.hpp"
#include "must.hpp"
#include "thrum/cache.h"
#include "wire.hpp"
#include "work.hpp"

namespace tail {

using bench::must;

namespace {

constexpr useconds_t kMoment = 1000; // us

// --- a request ----------------------------------------------------------------------------------------------

struct Request {
    Order order;
    std::uint64_t done_ns;
    std::atomic<std::uint64_t> times; // release: a thread that sees that there is an answer sees when
};

std::atomic<std::uint64_t> finished;

void *answer(void *argument) {
    auto *request = static_cast<Request *>(argument);
    compute(request->order.steps);
    request->done_ns = now_ns();
    request->times.fetch_add(1, std::memory_order_release);
    finished.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

// --- the servers --------------------------------------------------------------------------------------------

class Crew {
  public:
    virtual ~Crew() = default;
    virtual bool start() { return true; } // false: not here
    void begin(Request *request) {
        int error;
        while ((error = try_begin(request)) == EAGAIN) // too many at a time: when some have ended
            usleep(kMoment);
        must(error, "a request cannot begin");
    }

  private:
    virtual int try_begin(Request *request) = 0;
};

void *nothing(void *) {
    return nullptr;
}

class Ults : public Crew {
  public:
    // The first spawn starts the runtime.
    bool start() override {
        thrum_t first;
        if (thrum_spawn(&first, nullptr, nothing, nullptr) != 0)
            return false;
        must(thrum_join(first, nullptr), "thrum_join");
        return true;
    }

  private:
    int try_begin(Request *request) override { return thrum_spawn(nullptr, nullptr, answer, request); }
};

// All wait in one pool, the short ones before the long ones. A short one that comes in interrupts a long one at once, if
// no worker is idle.
class Priorities : public Ults {
  public:
    bool start() override {
        if (!Ults::start())
            return false;
        must(thrum_pool_create(&pool_, THRUM_POOL_PRIORITY), "thrum_pool_create");
        for (unsigned worker = 0; worker < thrum_workers(); worker++) {
            thrum_sched_t sched;
            must(thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool_, 1), "thrum_sched_create");
            must(thrum_worker_set_sched(worker, sched), "thrum_worker_set_sched");
        }
        for (unsigned priority : {0U, 1U}) {
            thrum_attr_init(&attr_[priority]);
            thrum_attr_set_pool(&attr_[priority], pool_);
            must(thrum_attr_set_priority(&attr_[priority], priority), "thrum_attr_set_priority");
        }
        return true;
    }

  private:
    int try_begin(Request *request) override {
        return thrum_spawn(nullptr, &attr_[request->order.is_short], answer, request);
    }

    thrum_pool_t pool_ = nullptr;
    thrum_attr_t attr_[2];
};

// With stacks as large as a user-level thread's: one of the usual 8 MiB costs more to make.
class Threads : public Crew {
  public:
    Threads() {
        constexpr std::size_t kStack = 65536;
        pthread_attr_init(&attr_);
        must(pthread_attr_setdetachstate(&attr_, PTHREAD_CREATE_DETACHED), "pthread_attr_setdetachstate");
        must(pthread_attr_setstacksize(&attr_, kStack), "pthread_attr_setstacksize");
    }

  private:
    int try_begin(Request *request) override {
        pthread_t thread;
        return pthread_create(&thread, &attr_, answer, request);
    }

    pthread_attr_t attr_;
};

std::unique_ptr<Crew> crew_of(const std::string &name) {
    if (name == "ults")
        return std::make_unique<Ults>();
    if (name == "priorities")
        return std::make_unique<Priorities>();
    if (name == "threads")
        return std::make_unique<Threads>();
    throw bench::Failure("there is no crew '" + name + "'", bench::Failure::kUsage);
}

// --- both ends of the pipes ---------------------------------------------------------------------------------

// The next orders; none at the end.
class Orders {
  public:
    std::vector<Order> next() {
        std::vector<Order> orders;
        while (filled_ < sizeof(Order)) {
            const ssize_t length = read(STDIN_FILENO, bytes_ + filled_, sizeof bytes_ - filled_);
            if (length == 0)
                return orders;
            must(length < 0 && errno != EINTR ? errno : 0, "read");
            filled_ += length > 0 ? static_cast<std::size_t>(length) : 0;
        }
        orders.resize(filled_ / sizeof(Order));
        const std::size_t taken = orders.size() * sizeof(Order);
        std::memcpy(orders.data(), bytes_, taken);
        std::memmove(bytes_, bytes_ + taken, filled_ - taken);
        filled_ -= taken;
        return orders;
    }

  private:
    char bytes_[128 * sizeof(Order)];
    std::size_t filled_ = 0;
};

void write_all(const void *data, std::size_t size) {
    const auto *bytes = static_cast<const char *>(data);
    for (std::size_t done = 0; done < size;) {
        const ssize_t length = write(STDOUT_FILENO, bytes + done, size - done);
        must(length < 0 && errno != EINTR ? errno : 0, "write");
        done += length > 0 ? static_cast<std::size_t>(length) : 0;
    }
}

std::uint64_t reused_threads() {
    const auto *counters =
        static_cast<const struct thrum_cache_counters *>(dlsym(RTLD_DEFAULT, "thrum_cache_counters"));
    return counters != nullptr && counters->version == THRUM_CACHE_COUNTERS_VERSION ? counters->reused : 0;
}

// How many to wait for.
std::uint64_t take_orders(Crew *crew, std::vector<Request> *requests) {
    std::uint64_t expected = 0;
    Orders orders;
    for (std::vector<Order> some = orders.next(); !some.empty(); some = orders.next())
        for (const Order &order : some) {
            Request *request = &requests->at(order.number);
            request->order = order;
            expected += order.steps != kRunaway;
            crew->begin(request);
        }
    return expected;
}

bool all_finished(std::uint64_t expected) {
    return finished.load(std::memory_order_relaxed) >= expected;
}

} // namespace

void serve(const std::vector<std::string> &words) {
    if (words.size() != 3)
        throw bench::Failure("a server wants CREW COUNT SECONDS", bench::Failure::kUsage);
    const std::size_t count = std::stoull(words[1]);
    std::vector<Request> requests(count + 1); // and one that never ends
    const std::unique_ptr<Crew> crew = crew_of(words[0]);
    const bool starts = crew->start();
    write_all(starts ? &kReady : &kUnavailable, 1);
    if (!starts)
        _exit(0);

    run_promptly();
    const std::uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const std::uint64_t expected = take_orders(crew.get(), &requests);
    const auto patience = static_cast<std::uint64_t>(std::stod(words[2]) * 1e9);
    for (const std::uint64_t end = now_ns() + patience; !all_finished(expected) && now_ns() < end;)
        usleep(kMoment);

    const Summary summary = {clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu, reused_threads()};
    write_all(&summary, sizeof summary);
    std::vector<Answer> answers;
    for (std::size_t number = 0; number < count; number++) {
        const std::uint64_t times = requests[number].times.load(std::memory_order_acquire);
        answers.push_back({requests[number].done_ns, times});
    }
    write_all(answers.data(), count * sizeof(Answer));
    _exit(0);
}

} // namespace tail
