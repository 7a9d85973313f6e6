// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: the system gives the library no more kernel threads, and so no more thread control blocks to lend,
// once 0, 1, 2 or as many as there are threads have been given since it was started; with 1, 2 and many threads. What
// is left has to do: nothing hangs, and no thread gets much less than the others of the worker. In mode own-tls no
// thread can be created any more that has one for life.
//
// pthread_create stands in the program before libc's, and answers EAGAIN to libthrum, which is told by the address
// that calls.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "preempt_stress.h"

namespace {

// Steps done on average by the threads of one worker, or of all: a thread that does so much less than that is
// starved.
constexpr unsigned long kMany = 32, kManyMixed = 128, kUnfair = 8;
constexpr unsigned kThreadsAWorker = 4;

using Create = int(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

std::atomic<long> allowed{-1}; // how many more; -1: any number
std::atomic<long> refused{0};

struct Text {
    std::uintptr_t from = 0, to = 0;
};

int find_library(dl_phdr_info *info, std::size_t, void *found) {
    if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, "/libthrum.so") == nullptr)
        return 0;
    auto *text = static_cast<Text *>(found);
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            text->from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            text->to = text->from + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

bool is_of_library(const void *address) {
    static const Text text = [] {
        Text found;
        dl_iterate_phdr(find_library, &found);
        return found;
    }();
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= text.from && at < text.to;
}

bool refuse() {
    long left = allowed;
    while (left > 0 && !allowed.compare_exchange_weak(left, left - 1))
        ;
    if (left != 0)
        return false;
    refused++;
    return true;
}

// Blocks that have been made are used again, and take no kernel thread.
bool has_donors() {
    static const bool has = [] {
        const char *blocks = std::getenv("THRUM_BLOCKS");
        return blocks != nullptr && std::strcmp(blocks, "donors") == 0;
    }();
    return has;
}

// No thread can be created any more that would have a block for life, unless one is kept.
void no_more_of_own() {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    CHECK_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_OWN_TLS), 0);
    thrum_t thread = nullptr;
    const int error = thrum_spawn(
        &thread, &attr, [](void *unused) { return unused; }, nullptr);
    CHECK(error == EAGAIN || (error == 0 && !has_donors()));
    if (error == 0)
        CHECK_EQ(thrum_join(thread, nullptr), 0);
}

class Scarce : public Torture {
  public:
    const char *name() const override { return "scarce"; }
    bool alone() const override { return true; }
    bool fits() const override { return options.preempts(); }
    unsigned actors() const override { return actors_; }
    bool bound() const override { return bound_; }

    // Twelve rounds have each number of kernel threads with each number of actors, and twelve more the other way: bound to
    // workers, or not.
    void next_round() override {
        const std::uint64_t round = options.seed + rounds_++;
        const std::array<long, 4> numbers = {0, 1, 2, static_cast<long>(options.threads)};
        const std::array<unsigned, 3> actors = {1, 2, options.threads};
        given_ = numbers[round % numbers.size()];
        actors_ = actors[round % actors.size()];
        bound_ = (round / (numbers.size() * actors.size()) + round) % 2 == 0;
    }

    void begin(unsigned actors) override {
        done_ = std::vector<Done>(actors);
        borrowers_ = 0;
        all_are_there_ = false;
    }

    void started() override {
        refused = 0;
        allowed = given_;
    }

    // In mode own-tls each takes one for life, and the threads without are lent one now and then.
    bool may_refuse() override {
        borrowers_++;
        return options.mode == Mode::kOwnTls && allowed == 0;
    }

    void spawned() override {
        if (options.mode == Mode::kOwnTls && has_donors())
            CHECK(actors_ - borrowers_ <= given_);
        all_are_there_ = true;
    }

    void step(Actor &actor) override {
        void *block = std::malloc(1 + actor.random.below(2000));
        const int error = errno = static_cast<int>(actor.number) + 1;
        work_for(actor.random.below(static_cast<unsigned>(3 * options.slice_ns())));
        CHECK_EQ(errno, error);
        std::free(block);
        if (options.mode != Mode::kKlt && allowed == 0 && actor.random.one_in(16))
            no_more_of_own();
        if (actor.random.one_in(4))
            thrum_yield();
        if (all_are_there_ && !over)
            done_[actor.number].steps++;
    }

    void end() override {
        allowed = -1;
        unsigned long most = 0, least = ~0UL;
        for (const Done &done : done_) {
            most = std::max(most, done.steps);
            least = std::min(least, done.steps);
        }
        std::printf(
            "  scarce: %ld more kernel threads for %u threads%s, %ld were refused; each thread did %lu to "
            "%lu steps\n",
            given_, actors_, bound_ ? ", bound" : "", refused.load(), least, most);
        look_whether_fair();
    }

  private:
    struct alignas(64) Done {
        unsigned long steps = 0;
    };

    // Those of each worker, or all if they run anywhere: then there must be more than workers, of which the kernel
    // may keep one, and the thread on it, from running for a while.
    void look_whether_fair() const {
        const unsigned groups = bound_ ? workers() : 1;
        const bool is_mixed = !bound_ && workers() > 1;
        if (is_mixed && actors_ < kThreadsAWorker * workers())
            return;
        for (unsigned group = 0; group < groups; group++)
            look_whether_fair(group, groups, is_mixed ? kManyMixed : kMany);
    }

    void look_whether_fair(unsigned first, unsigned each, unsigned long many) const {
        unsigned long all = 0, least = ~0UL, count = 0;
        for (std::size_t i = first; i < done_.size(); i += each, count++) {
            all += done_[i].steps;
            least = std::min(least, done_[i].steps);
        }
        if (all >= many * count && least * kUnfair * count < all)
            fail(__FILE__, __LINE__,
                 "with %ld kernel threads more, %u %sthreads and %u workers one of %lu did %lu steps, all "
                 "together %lu",
                 given_, actors_, bound_ ? "bound " : "", workers(), count, least, all);
    }

    std::vector<Done> done_;
    std::uint64_t rounds_ = 0;
    long given_ = 0;
    unsigned actors_ = 1, borrowers_ = 0;
    bool bound_ = false;
    std::atomic<bool> all_are_there_{false};
};

} // namespace

extern "C" __attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg) noexcept {
    static Create *const real = reinterpret_cast<Create *>(dlsym(RTLD_NEXT, "pthread_create"));
    if (allowed.load() >= 0 && is_of_library(__builtin_return_address(0)) && refuse())
        return EAGAIN;
    return real(thread, attr, fn, arg);
}

void add_scarce(Tortures &all) {
    is_of_library(nullptr); // looks for it now, rather than where the loader's lock may be taken
    all.push_back(std::make_unique<Scarce>());
}
