// SPDX-License-Identifier: Apache-2.0
//
// What the tests of <thrum/thrum.hpp> share.
#pragma once

#include <thrum/thrum.hpp>

#include <exception>
#include <stdexcept>

#include "ult.hpp"

using namespace std::chrono_literals;

// Runs it as the thread that called thrum_init, which is bound; as a ULT; and as a kernel thread that is no worker.
template <class Body>
void everywhere(const Body &body) {
    body();
    in_ult(body);
    External outside(body);
}

// Move-only, on no heap of its own, and counted: none may be left.
class Counted {
  public:
    explicit Counted(int value = 0) : value_(value) { alive++; }
    Counted(Counted &&other) noexcept : value_(other.value_) { alive++; }
    Counted &operator=(Counted &&other) noexcept = default;
    ~Counted() { alive--; }
    int value() const { return value_; }

    static inline std::atomic<int> alive{0};

  private:
    int value_;
};

// The usual fixture, with what is counted.
class Hpp : public Ult {
  protected:
    void TearDown() override {
        // A detached thread destroys what it has after it has told that it is over.
        EXPECT_TRUE(eventually([] { return Counted::alive == 0; })) << Counted::alive;
        Counted::alive = 0;
        Ult::TearDown();
    }
};

struct Thrown : std::runtime_error {
    explicit Thrown(const std::string &what = "thrown") : std::runtime_error(what) {}
};

#ifdef __cpp_impl_coroutine
// A coroutine of another library's, that no thread waits for.
struct Fire {
    struct promise_type {
        Fire get_return_object() const { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const {}
        void unhandled_exception() const { std::terminate(); }
    };
};
#endif
