// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: threads of libthrum's own that come and go, in each mode of preemption beside each other, end from
// within, are cancelled while they compute, sleep, and move; between the ticks of all others.
#include <errno.h>

#include <array>
#include <cstdlib>

#include "preempt_stress.h"

namespace {

constexpr int kLive = 64;

struct Child {
    std::uint64_t value;
    unsigned how;
    std::atomic<unsigned> unwound{0};
};

struct Unwinding {
    Child &child;
    explicit Unwinding(Child &of) : child(of) {}
    ~Unwinding() { child.unwound++; }
    Unwinding(const Unwinding &) = delete;
};

void *as_result(std::uint64_t value) {
    return reinterpret_cast<void *>(value); // NOLINT(performance-no-int-to-ptr)
}

void *child_runs(void *arg) {
    auto *child = static_cast<Child *>(arg);
    const std::uint64_t value = child->value;
    const Unwinding unwinding(*child);
    void *block = std::malloc(1 + value % 1000);
    work_for(value % (2 * options.slice_ns()));
    std::free(block);
    switch (child->how) {
    case 0: thrum_exit(as_result(value));
    case 1: thrum_yield(); break;
    case 2: thrum_sleep(options.slice_ns()); break;
    default: break;
    }
    return as_result(value);
}

void *child_computes(void *arg) {
    auto *child = static_cast<Child *>(arg);
    const Unwinding unwinding(*child);
    for (;;) {
        spin(1000);
        safepoint();
        thrum_testcancel();
    }
    return nullptr;
}

class Threads : public Torture {
  public:
    const char *name() const override { return "threads"; }
    bool fits() const override { return options.has_ults(); }

    void step(Actor &actor) override {
        if (live_.fetch_add(1) < kLive) {
            switch (actor.random.below(4)) {
            case 0: cancel(actor); break;
            case 1: move(actor); break;
            default: spawn_and_join(actor); break;
            }
        }
        live_--;
        safepoint();
    }

  private:
    // Beside threads of the runtime's mode some that are not preempted: they yield or are short.
    static void attributes(Actor &actor, thrum_attr_t &attr, unsigned flags) {
        thrum_attr_init(&attr);
        CHECK_EQ(thrum_attr_set_flags(&attr, flags | (actor.random.one_in(2) ? THRUM_SPAWN_QUEUED : 0)), 0);
        if (actor.random.one_in(4))
            CHECK_EQ(thrum_attr_set_preempt(&attr, THRUM_PREEMPT_NONE), 0);
        if (actor.random.one_in(4))
            CHECK_EQ(thrum_attr_set_slice(&attr, THRUM_SLICE_MIN + actor.random.below(1000)), 0);
    }

    static void spawn_and_join(Actor &actor) {
        std::array<Child, 3> children;
        std::array<thrum_t, 3> handles{};
        for (std::size_t i = 0; i < children.size(); i++) {
            children[i].value = actor.random.next() >> 1;
            children[i].how = actor.random.below(5);
            thrum_attr_t attr;
            attributes(actor, attr, 0);
            const int error = thrum_spawn(&handles[i], &attr, child_runs, &children[i]);
            CHECK(error == 0 || error == EAGAIN);
            if (error != 0)
                handles[i] = nullptr;
        }
        for (std::size_t i = 0; i < children.size(); i++) {
            if (handles[i] == nullptr)
                continue;
            void *result = nullptr;
            CHECK_EQ(thrum_join(handles[i], &result), 0);
            CHECK(result == as_result(children[i].value));
            CHECK_EQ(children[i].unwound, 1);
        }
    }

    static void cancel(Actor &actor) {
        Child child{0, 0};
        thrum_attr_t attr;
        attributes(actor, attr, THRUM_SPAWN_CANCELLABLE);
        CHECK_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_CANCELLABLE | THRUM_SPAWN_QUEUED), 0);
        // It computes until it is cancelled. The runtime's slice may be a second, and others would hardly run beside it.
        CHECK_EQ(thrum_attr_set_slice(&attr, options.slice), 0);
        thrum_t thread = nullptr;
        const int error = thrum_spawn(&thread, &attr, child_computes, &child);
        if (error != 0) {
            CHECK_EQ(error, EAGAIN);
            return;
        }
        thrum_yield();
        CHECK_EQ(thrum_cancel(thread), 0);
        void *result = nullptr;
        CHECK_EQ(thrum_join(thread, &result), 0);
        CHECK(result == THRUM_CANCELED);
        CHECK_EQ(child.unwound, 1);
    }

    static void move(Actor &actor) {
        if (thrum_migrate(thrum_self(), actor.random.below(thrum_workers())) != 0)
            return;
        hold(actor);
        CHECK_EQ(thrum_migrate(thrum_self(), THRUM_ANY_WORKER), 0);
    }

    std::atomic<int> live_{0};
};

} // namespace

void add_threads(Tortures &all) {
    all.push_back(std::make_unique<Threads>());
}
