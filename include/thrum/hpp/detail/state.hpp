// SPDX-License-Identifier: Apache-2.0
/* The state that a promise and its future share.
 *
 * Values of `word_`:
 *
 *   null       nothing yet
 *   waited()   a thread is about to wait for the event
 *   other      the continuation that was added last, as of a coroutine that awaits it; the others, and waited(), behind it
 *   ready()    the outcome is written, and only the future reads it
 *
 * Transitions: null -> waited() by a waiter; all but ready() -> a continuation by the future; all -> ready() by the writer of
 * the outcome. The last one releases the outcome to the thread that sees ready(). It sets the event unless it found null,
 * when no thread waits for the event. So a result that no thread had to wait for costs one locked instruction.
 *
 * The last holder to leave frees the state. */
#ifndef THRUM_HPP_DETAIL_STATE_HPP
#define THRUM_HPP_DETAIL_STATE_HPP

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/event.hpp"

namespace thrum::detail {

/* Coroutines that await each other run in turn, in the loop of run_in_turn(), and do not call each other: in unoptimised
 * builds such calls would pile up on the stack. The place of a coroutine is the variable of its loop that says what to
 * resume next. It is valid while the coroutine runs. */
struct loop_place {
    std::coroutine_handle<> *next = nullptr;
};

template <class Promise>
loop_place *loop_place_of(std::coroutine_handle<Promise> coroutine) noexcept {
    if constexpr (std::is_base_of_v<loop_place, Promise>)
        return &coroutine.promise();
    else
        return nullptr;
}

/* A coroutine to resume. `place` is null for a coroutine of another library. */
struct continuation {
    std::coroutine_handle<> coroutine;
    loop_place *place = nullptr;
    void (*instead)(continuation *self) = nullptr; /* this is called, if it is set */
    void *next = nullptr;                          /* of those that wait for the same state */
};

/* For a coroutine that was suspended in the loop of `place`: that loop resumes `other` next. */
inline void leave_loop_to(const loop_place &place, const continuation &other) noexcept {
    if (other.place != nullptr)
        other.place->next = place.next;
    *place.next = other.coroutine;
}

/* Runs coroutines until none is left. Or returns true when the next is the coroutine at `home`, which has called this and
 * resumes by the return. A coroutine that waits for something else may be resumed in another loop before it has returned to
 * this one: so only the local variable is read. */
#if defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                                               \
    "-Wdangling-pointer" /* `place->next` is read only while a loop runs, which has set it */
#endif
[[gnu::noinline]] inline bool run_in_turn(const continuation first, const void *home = nullptr) {
    std::coroutine_handle<> next = first.coroutine;
    if (first.place != nullptr)
        first.place->next = &next;
    while (next) {
        if (next.address() == home)
            return true;
        std::exchange(next, nullptr).resume();
    }
    return false;
}
#if defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12
#pragma GCC diagnostic pop
#endif

/* A thread's function. The continuation is in the coroutine's own frame. */
inline void *resume(void *address) {
    auto *const waiting = static_cast<continuation *>(address);
    if (waiting->instead != nullptr)
        waiting->instead(waiting);
    else
        run_in_turn(*waiting);
    return nullptr;
}

/* What thrum_spawn_when calls. */
inline void resume_when_ready(void *address) {
    resume(address);
}

/* Resumes it on a new thread, enqueued behind the runnable ones: the thread that sets a value does not wait. If no thread
 * can be created, resumes it here. */
inline void resume_on_thread(void *address) {
    if (thrum_spawn(nullptr, attributes().queued().native(), resume, address) != 0)
        resume(address);
}

class state_base : public made_in_block {
  public:
    explicit state_base(std::size_t holders) noexcept : holders_(holders) {}
    state_base(const state_base &) = delete;

    void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
    void leave() noexcept { /* the last holder needs no locked decrement */
        if (holders_.load(std::memory_order_acquire) == 1 ||
            holders_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }

    /* True for the one caller that may write the outcome. */
    bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_relaxed); }
    void publish() {
        void *before = word_.exchange(ready(), std::memory_order_acq_rel);
        if (before == nullptr)
            return;
        event_.set();
        while (before != nullptr && before != waited())
            resume_on_thread(std::exchange(before, static_cast<continuation *>(before)->next));
    }

    bool is_ready() const noexcept { return word_.load(std::memory_order_acquire) == ready(); }
    /* False: it is ready; the coroutine need not wait. */
    bool await(continuation *waiting) noexcept {
        void *before = word_.load(std::memory_order_acquire);
        while (before != ready()) {
            waiting->next = before;
            if (word_.compare_exchange_weak(before, waiting, std::memory_order_acq_rel))
                return true;
        }
        return false;
    }
    void wait() {
        if (need_event())
            event_.wait();
    }
    /* `wait` waits for an event, with or without a deadline, and returns whether the event was set. */
    template <class Wait>
    bool wait_by(Wait wait) {
        return !need_event() || wait(event_) || is_ready();
    }
    thrum_wait_t waiting() noexcept {
        if (!need_event())
            event_.set();
        return event_.waiting();
    }

    /* Its thread belonged to a runtime that has ended: it never runs again. */
    bool is_lost() const noexcept { return runtime != 0 && runtime != thrum_runtime_id() && !is_ready(); }

    /* The runtime of the thread that async() created. The future's destructor waits for that thread, since it may use the
     * caller's frame. 0: no such thread. Used by the future only. */
    std::uint64_t runtime = 0;

  protected:
    virtual ~state_base() = default;

  private:
    /* Addresses that no coroutine can have. */
    void *ready() const noexcept { return const_cast<std::atomic<void *> *>(&word_); }
    void *waited() const noexcept { return const_cast<std::uint64_t *>(&runtime); }

    /* False: it is ready, and the event may never be set. */
    bool need_event() noexcept {
        void *before = nullptr;
        if (is_ready())
            return false;
        return word_.compare_exchange_strong(before, waited(), std::memory_order_acq_rel) ||
               before != ready();
    }

    std::atomic<std::size_t> holders_;
    std::atomic<void *> word_{nullptr};
    event event_;
    std::atomic<bool> claimed_{false};
};

template <class T>
class state : public state_base {
  public:
    explicit state(std::size_t holders = 1) noexcept : state_base(holders) {}

    outcome<T> result;
};

/* A reference held to a state. */
template <class State>
class state_ref {
  public:
    state_ref() noexcept = default;
    /* Takes over the caller's reference. */
    explicit state_ref(State *state) noexcept : state_(state) {}
    state_ref(const state_ref &other) noexcept : state_(other.state_) {
        if (state_ != nullptr)
            state_->hold();
    }
    state_ref(state_ref &&other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    state_ref &operator=(state_ref other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~state_ref() {
        if (state_ != nullptr)
            state_->leave();
    }

    explicit operator bool() const noexcept { return state_ != nullptr; }
    State *operator->() const noexcept { return state_; }
    State *get() const noexcept { return state_; }
    State *release() noexcept { return std::exchange(state_, nullptr); }

  private:
    State *state_ = nullptr;
};

} // namespace thrum::detail

#endif
