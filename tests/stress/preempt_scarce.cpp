// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: the system gives the library no more kernel threads, and so no more thread control blocks to lend,
// once 0, 1, 2 or as many as there are threads have been given since it was started. What is left has to do: nobody is
// starved, and nothing hangs.
//
// pthread_create stands in the program before libc's, and answers EAGAIN to libthrum, which is told by the address that
// calls.
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

class Scarce : public Torture {
  public:
    const char *name() const override { return "scarce"; }
    bool alone() const override { return true; }
    // In mode own-tls each thread needs one from the start.
    bool fits() const override { return options.preempts() && options.mode != Mode::kOwnTls; }

    void begin(unsigned actors) override { done_ = std::vector<Done>(actors); }

    // Round after round another number.
    void started() override {
        const std::array<long, 4> numbers = {0, 1, 2, static_cast<long>(done_.size())};
        given_ = numbers[round_++ % numbers.size()];
        refused = 0;
        allowed = given_;
    }

    void step(Actor &actor) override {
        void *block = std::malloc(1 + actor.random.below(2000));
        const int error = errno = static_cast<int>(actor.number) + 1;
        work_for(actor.random.below(static_cast<unsigned>(3 * options.slice_ns())));
        CHECK_EQ(errno, error);
        std::free(block);
        if (actor.random.one_in(4))
            thrum_yield();
        done_[actor.number].steps++;
    }

    void end() override {
        allowed = -1;
        unsigned long most = 0, least = ~0UL;
        for (const Done &done : done_) {
            most = std::max(most, done.steps);
            least = std::min(least, done.steps);
        }
        std::printf("  scarce: %ld more kernel threads, %ld were refused; each thread did %lu to %lu steps\n",
                    given_, refused.load(), least, most);
        if (most > 1000 && least == 0)
            fail(__FILE__, __LINE__, "with %ld kernel threads more, somebody never ran", given_);
    }

  private:
    struct alignas(64) Done {
        unsigned long steps = 0;
    };
    std::vector<Done> done_;
    unsigned round_ = 0;
    long given_ = 0;
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
