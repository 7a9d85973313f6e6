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
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/event.hpp"

namespace thrum::detail {

/* What the promise of a coroutine has that goes on with others, and they with it, in the loop of resume(): compilers that
 * do not optimise would let the calls of one another pile up on the stack. Only who runs has a place in a loop, and
 * hands it on; null: it runs otherwise. */
struct loop_place {
    std::coroutine_handle<> *next = nullptr;

    /* By its coroutine, which is suspended: what await_suspend returns for `other` to go on. */
    std::coroutine_handle<> leave_to(std::coroutine_handle<> other,
                                     loop_place *place_of_other) const noexcept {
        if (place_of_other != nullptr)
            place_of_other->next = next;
        if (next == nullptr)
            return other;
        *next = other;
        return std::noop_coroutine();
    }
};

template <class Promise>
loop_place *loop_place_of(std::coroutine_handle<Promise> coroutine) noexcept {
    if constexpr (std::is_base_of_v<loop_place, Promise>)
        return &coroutine.promise();
    else
        return nullptr;
}

/* A coroutine that is to go on. Stands in its own frame. */
struct continuation {
    std::coroutine_handle<> coroutine;
    loop_place *place = nullptr;
};

/* One that waits for something else may go on elsewhere, in another loop, before it has returned to this one: so only
 * what is ours is looked at. */
inline void *resume(void *address) {
    const continuation first = *static_cast<const continuation *>(address);
    std::coroutine_handle<> next = first.coroutine;
    if (first.place != nullptr)
        first.place->next = &next;
    while (next)
        std::exchange(next, nullptr).resume();
    return nullptr;
}

/* On a thread of its own, behind what there is: who sets a value goes on. Without memory for one, here. */
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

    /* Its thread belonged to a runtime that has ended, and never runs again. (Where there is another one by now nobody can
     * tell.) */
    bool is_lost() const noexcept { return is_async && thrum_workers() == 0 && !is_ready(); }

    /* It waits for the outcome at its end, since its thread may use what stands in the caller's frame. The future's
     * own */
    bool is_async = false;

  protected:
    virtual ~state_base() = default;

  private:
    /* Addresses that no coroutine has. */
    void *ready() const noexcept { return const_cast<std::atomic<void *> *>(&word_); }
    void *waited() const noexcept { return const_cast<bool *>(&is_async); }

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
