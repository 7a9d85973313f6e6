// SPDX-License-Identifier: Apache-2.0
/* What a promise and its future share.
 *
 * `word_` says how far it is:
 *
 *   null       nothing yet
 *   waited()   a thread is about to wait for the event
 *   else       the continuation of the coroutine that awaits it
 *   ready()    the outcome is there, and the future's alone to read
 *
 *   null -> waited() (who waits); null, waited() -> a coroutine (the future); all -> ready() (who has written the
 *   outcome). The last releases the outcome to who sees it, and sets the event unless it found null: then nobody waits
 *   for that. So a result that nobody had to wait for costs one locked instruction.
 *
 * The state is freed by whoever leaves it last. */
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

/* Coroutines that await each other run in turn, in the loop of run_in_turn(), and do not call each other: compilers that
 * do not optimise would let such calls pile up on the stack. Each of them has a place: the variable of its loop that
 * says what that resumes next. It is valid while the coroutine runs. */
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

/* A coroutine that is to be resumed. Null place: one that has none, of another library. */
struct continuation {
    std::coroutine_handle<> coroutine;
    loop_place *place = nullptr;
};

/* By one that is suspended, and was in the loop that `place` is of: `other` is resumed next. */
inline void leave_loop_to(const loop_place &place, const continuation &other) noexcept {
    if (other.place != nullptr)
        other.place->next = place.next;
    *place.next = other.coroutine;
}

/* Until none is left; or, true, it is the turn of the coroutine at `home`, which has called this and goes on when it
 * returns. One that waits for something else may be resumed elsewhere, in another loop, before it has returned to this
 * one: so only what is ours is looked at. */
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

/* As a thread's function. The continuation stands in the coroutine's own frame. */
inline void *resume(void *address) {
    run_in_turn(*static_cast<const continuation *>(address));
    return nullptr;
}

/* On a thread of its own, behind those that are ready: the thread that sets a value does not wait. Without memory for
 * one, here. */
inline void resume_on_thread(void *address) {
    if (thrum_spawn(nullptr, attributes().queued().native(), resume, address) != 0)
        resume(address);
}

class state_base : public made_in_block {
  public:
    explicit state_base(std::size_t holders) noexcept : holders_(holders) {}
    state_base(const state_base &) = delete;

    void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
    void leave() noexcept { /* the only one left has nobody to be told apart from */
        if (holders_.load(std::memory_order_acquire) == 1 ||
            holders_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            delete this;
    }

    /* True for the one that may write the outcome. */
    bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_relaxed); }
    void publish() {
        void *before = word_.exchange(ready(), std::memory_order_acq_rel);
        if (before == nullptr)
            return;
        event_.set();
        if (before != waited())
            resume_on_thread(before);
    }

    bool is_ready() const noexcept { return word_.load(std::memory_order_acquire) == ready(); }
    /* False: it is ready, and the coroutine need not wait. */
    bool await(continuation *waiting) noexcept {
        void *before = word_.load(std::memory_order_acquire);
        while (before != ready())
            if (word_.compare_exchange_weak(before, waiting, std::memory_order_acq_rel))
                return true;
        return false;
    }
    void wait() {
        if (need_event())
            event_.wait();
    }
    /* `wait` waits for an event as long as it likes, and returns whether it has come. */
    template <class Wait>
    bool wait_by(Wait wait) {
        return !need_event() || wait(event_) || is_ready();
    }
    thrum_wait_t waiting() noexcept {
        if (!need_event())
            event_.set();
        return event_.waiting();
    }

    /* Its thread belonged to a runtime that has ended, and never runs again. */
    bool is_lost() const noexcept { return runtime != 0 && runtime != thrum_runtime_id() && !is_ready(); }

    /* Of the thread that async() has made for it, and for which the future waits at its end, since it may use what stands
     * in the caller's frame; 0: none. The future's own. */
    std::uint64_t runtime = 0;

  protected:
    virtual ~state_base() = default;

  private:
    /* Addresses that no coroutine has. */
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

/* One holder. */
template <class State>
class state_ref {
  public:
    state_ref() noexcept = default;
    /* Takes over what the caller held. */
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
