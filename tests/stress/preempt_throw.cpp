// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: C++ exceptions that are thrown from deep within, caught, thrown again, carried elsewhere, and in
// flight while others throw. What a thread has caught is kept in thread-locals, the unwinder's tables under a lock.
#include <exception>
#include <stdexcept>
#include <string>

#include "preempt_stress.h"

namespace {

struct Unwound {
    explicit Unwound(unsigned &count) : count_(count) {}
    ~Unwound() { count_++; }
    Unwound(const Unwound &) = delete;

  private:
    unsigned &count_;
};

std::string text_of(std::uint64_t value) {
    return "an exception with a text too long for its own memory, " + std::to_string(value);
}

__attribute__((noinline)) void fall(unsigned depth, std::uint64_t value, unsigned &unwound) {
    const Unwound here(unwound);
    if (depth == 0)
        throw std::runtime_error(text_of(value));
    fall(depth - 1, value, unwound);
    __asm__ volatile(""); // no tail call
}

__attribute__((noinline)) bool none_in_flight() {
    return std::current_exception() == nullptr && std::uncaught_exceptions() == 0;
}

void throw_again(Actor &actor) {
    const std::uint64_t value = actor.random.next();
    const unsigned depth = 1 + actor.random.below(12);
    unsigned unwound = 0, caught = 0;
    try {
        try {
            fall(depth, value, unwound);
        } catch (const std::exception &first) {
            caught++;
            hold(actor);
            try {
                throw value; // another, in this one's handler
            } catch (std::uint64_t inner) {
                CHECK(inner == value);
                caught++;
            }
            CHECK(text_of(value) == first.what());
            if (actor.random.one_in(4))
                safepoint();
            throw;
        }
    } catch (const std::runtime_error &again) {
        caught++;
        CHECK(text_of(value) == again.what());
    }
    CHECK_EQ(caught, 3);
    CHECK_EQ(unwound, depth + 1);
    CHECK(none_in_flight());
}

// Others run, and throw, while this one is in its handler.
void wait_in_handler(Actor &actor) {
    const std::uint64_t value = actor.random.next();
    bool again = false;
    try {
        throw value;
    } catch (std::uint64_t) {
        thrum_yield();
        try {
            throw;
        } catch (std::uint64_t thrown) {
            again = thrown == value;
        }
    }
    CHECK(again);
    CHECK(none_in_flight());
}

void carry(Actor &actor) {
    const std::uint64_t value = actor.random.next();
    std::exception_ptr carried;
    unsigned unwound = 0;
    try {
        fall(2, value, unwound);
    } catch (...) {
        carried = std::current_exception();
    }
    safepoint();
    try {
        std::rethrow_exception(carried);
    } catch (const std::exception &thrown) {
        CHECK(text_of(value) == thrown.what());
    }
    CHECK(none_in_flight());
}

class Throw : public Torture {
  public:
    const char *name() const override { return "throw"; }

    void step(Actor &actor) override {
        const In in(actor, kThrow);
        switch (actor.random.below(8)) {
        case 0: wait_in_handler(actor); break;
        case 1: carry(actor); break;
        default: throw_again(actor); break;
        }
    }
};

} // namespace

void add_throw(Tortures &all) {
    all.push_back(std::make_unique<Throw>());
}
