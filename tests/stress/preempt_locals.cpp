// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: what belongs to a thread: errno, thread-local variables of all kinds, values of keys, the locale,
// pthread_self, and in klt the kernel thread itself. Between two calls that may wait no other thread may touch them.
// In own-tls, and where there are kernel threads, they are a thread's from its begin, when they are new, to its end,
// when they are destroyed; elsewhere those of a kernel thread, and destroyed at the end of that, which the runtime's
// is.
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "preempt_stress.h"

namespace {

std::atomic<long> made{0}, gone{0};

struct Counted {
    std::uint64_t value = 0;
    Counted() { made++; }
    ~Counted() { gone++; }
};

constexpr std::uint64_t kInitially = 0x1234567;

thread_local std::uint64_t zeroed, initialised = kInitially;
thread_local Counted counted;

// Nothing that is known of these before a call is taken for granted after it.
__attribute__((noinline)) int &errno_now() {
    __asm__ volatile("" ::: "memory");
    return errno;
}
__attribute__((noinline)) std::uint64_t &zeroed_now() {
    __asm__ volatile("" ::: "memory");
    return zeroed;
}
__attribute__((noinline)) std::uint64_t &initialised_now() {
    __asm__ volatile("" ::: "memory");
    return initialised;
}
__attribute__((noinline)) Counted &counted_now() {
    __asm__ volatile("" ::: "memory");
    return counted;
}
__attribute__((noinline)) pthread_t self_now() {
    __asm__ volatile("" ::: "memory");
    return pthread_self();
}

// Whose the thread-locals are for life.
bool for_life() {
    return options.mode == Mode::kPthread || options.mode == Mode::kOwnTls;
}

// A thread that resumes after a preemption on the kernel thread that it was on.
bool keeps_kernel_thread() {
    return options.mode == Mode::kPthread || options.mode == Mode::kKlt;
}

class Locals : public Torture {
  public:
    const char *name() const override { return "locals"; }

    void begin(unsigned actors) override {
        lives_.assign(actors, {});
        CHECK_EQ(pthread_key_create(&key_, nullptr), 0);
        CHECK_EQ(pthread_key_create(&counted_key_, value_gone), 0);
        CHECK((c_locale_ = newlocale(LC_ALL_MASK, "C", nullptr)) != nullptr);
        made_before_ = made - gone;
        values_ = 0;
    }

    void step(Actor &actor) override {
        if (for_life())
            be_the_same(actor);
        else
            leave_a_value();
        stretch(actor);
        if (for_life())
            be_the_same(actor);
        if (actor.random.one_in(4) && options.has_ults())
            thrum_yield();
        safepoint();
    }

    void last_step(Actor &actor) override {
        if (for_life() && lives_[actor.number].self != 0)
            be_the_same(actor);
    }

    void end() override {
        CHECK_EQ(made - gone, made_before_);
        CHECK_EQ(values_, 0);
        CHECK_EQ(pthread_key_delete(key_), 0);
        CHECK_EQ(pthread_key_delete(counted_key_), 0);
        freelocale(c_locale_);
    }

  private:
    struct Life {
        pthread_t self = 0;
        const int *error = nullptr;
        const std::uint64_t *zeroed = nullptr, *initialised = nullptr;
        const Counted *counted = nullptr;
        std::uint64_t first = 0, sum = kInitially, value = 0; // what they held last
    };

    static void value_gone(void *value) {
        CHECK(value != nullptr);
        values_--;
    }

    // From here to the end there is no call that may wait: a preemption has to give back all that it finds.
    void stretch(Actor &actor) {
        const std::uint64_t value = actor.random.next() | 1;
        const auto number = static_cast<int>(value >> 40 & 0xffff);
        const pthread_t self = self_now();
        const long kernel_thread = syscall(SYS_gettid);
        // Those of a life are not for a stretch.
        const std::uint64_t life = zeroed_now();
        errno_now() = number;
        zeroed_now() = value;
        initialised_now() += value;
        const std::uint64_t sum = initialised_now();
        counted_now().value = value;
        CHECK_EQ(pthread_setspecific(key_, &lives_[actor.number]), 0);
        const locale_t locale = uselocale(c_locale_);
        hold(actor);
        CHECK_EQ(errno_now(), number);
        CHECK_EQ(zeroed_now(), value);
        CHECK_EQ(initialised_now(), sum);
        CHECK_EQ(counted_now().value, value);
        CHECK(pthread_getspecific(key_) == &lives_[actor.number]);
        CHECK(uselocale(locale) == c_locale_);
        CHECK(pthread_equal(self_now(), self));
        if (keeps_kernel_thread())
            CHECK_EQ(syscall(SYS_gettid), kernel_thread);
        zeroed_now() = life;
        errno_now() = number;
        CHECK_EQ(pthread_setspecific(key_, nullptr), 0);
        CHECK_EQ(errno_now(), number);
        lives_[actor.number].sum = sum;
        lives_[actor.number].value = value;
    }

    // And these hold from the first step to the last.
    void be_the_same(Actor &actor) {
        Life &life = lives_[actor.number];
        if (life.self == 0) {
            begin_life(actor, life);
            values_++;
            CHECK_EQ(pthread_setspecific(counted_key_, &life), 0);
        }
        CHECK(pthread_equal(self_now(), life.self));
        CHECK(&errno_now() == life.error);
        CHECK(&zeroed_now() == life.zeroed && &initialised_now() == life.initialised);
        CHECK(&counted_now() == life.counted);
        CHECK_EQ(zeroed_now(), life.first);
        CHECK_EQ(initialised_now(), life.sum);
        CHECK_EQ(counted_now().value, life.value);
        CHECK(pthread_getspecific(counted_key_) == &life);
    }

    // As a new thread finds them.
    void begin_life(Actor &actor, Life &life) const {
        CHECK_EQ(zeroed_now(), 0);
        CHECK_EQ(initialised_now(), kInitially);
        CHECK_EQ(counted_now().value, 0);
        CHECK(pthread_getspecific(counted_key_) == nullptr);
        life.self = self_now();
        life.error = &errno_now();
        life.zeroed = &zeroed_now();
        life.initialised = &initialised_now();
        life.counted = &counted_now();
        life.first = zeroed_now() = actor.random.next() | 1;
    }

    // Of a kernel thread's, that ends when it does.
    void leave_a_value() {
        if (pthread_getspecific(counted_key_) != nullptr)
            return;
        values_++;
        CHECK_EQ(pthread_setspecific(counted_key_, this), 0);
    }

    std::vector<Life> lives_;
    pthread_key_t key_ = 0, counted_key_ = 0;
    locale_t c_locale_ = nullptr;
    long made_before_ = 0;
    static inline std::atomic<long> values_{0};
};

} // namespace

void add_locals(Tortures &all) {
    all.push_back(std::make_unique<Locals>());
}
