// SPDX-License-Identifier: Apache-2.0
//
// A pool of the user's own, for the tests of pools and for stress-ult: oldest first, linked through thrum_link. Its
// lock is the pool's alone and held for a few stores; a thread that finds it taken gives its CPU away, since an
// external kernel thread may hold it and be interrupted. Counts what is called.
#pragma once

#include <sched.h>
#include <thrum/pool.h>

#include <atomic>
#include <cstddef>

class UserFifo {
  public:
    // Without pop_many the library pops one after another.
    explicit UserFifo(bool has_pop_many = true) {
        const thrum_pool_ops ops{push, pop, size, destroy, has_pop_many ? pop_many : nullptr, nullptr};
        error_ = thrum_pool_create_user(&pool_, &ops, this);
    }
    UserFifo(const UserFifo &) = delete;
    UserFifo &operator=(const UserFifo &) = delete;

    int error() const { return error_; }
    thrum_pool_t pool() const { return pool_; }

    std::atomic<long> pushed{0}, popped{0}, popped_many{0}, destroyed{0};

  private:
    // The queue is the holder's.
    class Held {
      public:
        explicit Held(void *data) : fifo(static_cast<UserFifo *>(data)) {
            while (fifo->locked_.test_and_set(std::memory_order_acquire))
                sched_yield();
        }
        ~Held() { fifo->locked_.clear(std::memory_order_release); }
        Held(const Held &) = delete;
        Held &operator=(const Held &) = delete;

        thrum_t take() const {
            const thrum_t thread = fifo->first_;
            if (thread != nullptr) {
                fifo->first_ = *thrum_link(thread);
                fifo->size_--;
            }
            return thread;
        }

        UserFifo *fifo;
    };

    static void push(void *data, thrum_t thread) {
        *thrum_link(thread) = nullptr;
        const Held held(data);
        UserFifo *fifo = held.fifo;
        (fifo->first_ == nullptr ? fifo->first_ : *thrum_link(fifo->last_)) = thread;
        fifo->last_ = thread;
        fifo->size_++;
        fifo->pushed++;
    }

    static thrum_t pop(void *data) {
        const Held held(data);
        held.fifo->popped++;
        return held.take();
    }

    static std::size_t pop_many(void *data, thrum_t *threads, std::size_t most) {
        const Held held(data);
        held.fifo->popped_many++;
        std::size_t taken = 0;
        while (taken < most && (threads[taken] = held.take()) != nullptr)
            taken++;
        return taken;
    }

    static std::size_t size(void *data) { return static_cast<UserFifo *>(data)->size_; }
    static void destroy(void *data) { static_cast<UserFifo *>(data)->destroyed++; }

    std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
    thrum_t first_ = nullptr, last_ = nullptr; // while locked, as the next is changed
    std::atomic<std::size_t> size_{0};
    int error_ = 0;
    thrum_pool_t pool_ = nullptr;
};
