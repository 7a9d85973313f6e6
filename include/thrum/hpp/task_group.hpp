// SPDX-License-Identifier: Apache-2.0
/* A group of threads to wait for together.
 *
 *     std::vector<int> sizes(100);
 *     thrum::task_group group;
 *     for (int &size : sizes)
 *         group.run([&size] { size = 1; });
 *     group.wait();
 *
 * wait() rethrows the first exception that left one of them. The others still run to completion; they can poll stopping()
 * to end early. A group can be used again after wait(). The destructor waits, and drops exceptions. The group's threads may
 * call run() too; only its owner may call wait().
 *
 * Threads that have not ended when the runtime ends (runtime.hpp) never end. Then wait() throws std::system_error (ESRCH),
 * and the destructor does not wait. */
#ifndef THRUM_HPP_TASK_GROUP_HPP
#define THRUM_HPP_TASK_GROUP_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/launch.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/hpp/event.hpp"

namespace thrum {

class task_group {
  public:
    task_group() = default;
    explicit task_group(const attributes &how) : how_(how), native_(how_.native()) {}
    task_group(const task_group &) = delete;
    ~task_group() {
        const detail::uncancelled waiting;
        wait_for_all();
    }

    /* Throws std::system_error with thrum_spawn's errors. */
    template <class F>
    void run(F &&f) {
        forget_lost();
        detail::check(
            detail::launch(nullptr, native_, task<std::decay_t<F>>{member(this), std::forward<F>(f)}),
            "thrum::task_group::run", detail::spawn_reasons);
        if (runtime_.load(std::memory_order_relaxed) == 0)
            runtime_.store(thrum_runtime_id(), std::memory_order_relaxed);
    }

    void wait() {
        if (!wait_for_all())
            detail::fail(ESRCH, "thrum::task_group::wait", detail::runtime_has_ended);
        failed_.store(false, std::memory_order_relaxed);
        if (thrown_ != nullptr)
            std::rethrow_exception(std::exchange(thrown_, nullptr));
    }

    /* A thread of the group has thrown. */
    bool stopping() const noexcept { return failed_.load(std::memory_order_relaxed); }

  private:
    /* Counts as one of the group's threads until it is destroyed. */
    class member {
      public:
        explicit member(task_group *group) noexcept : group_(group) {
            group->left_.fetch_add(1, std::memory_order_relaxed);
        }
        member(member &&other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
        ~member() {
            if (group_ != nullptr)
                group_->leave();
        }
        task_group *operator->() const noexcept { return group_; }

      private:
        task_group *group_;
    };

    template <class Work>
    struct task {
        member group; /* destroyed last */
        Work work;

        void operator()() && {
            detail::outcome<void> outcome;
            outcome.run([this] { static_cast<void>(std::invoke(std::move(work))); });
            std::exception_ptr thrown = outcome.thrown();
            if (thrown != nullptr && !group->failed_.exchange(true, std::memory_order_relaxed))
                group->thrown_ = std::move(thrown);
        }
    };

    /* The group must not be touched afterwards: the owner may have destroyed it. */
    void leave() noexcept {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            all_left_.set();
    }
    /* Counts the owner again, also if it is cancelled while it waits: the destructor then waits again. If no thread is left
     * here, the last has set the event or is about to. It must have, before the owner may destroy the group. */
    struct owner_is_back {
        task_group *self;
        ~owner_is_back() {
            if (self->left_.fetch_add(1, std::memory_order_acq_rel) != 0)
                return;
            const detail::uncancelled waiting;
            self->all_left_.wait();
            self->all_left_.reset();
        }
    };
    /* False: some threads never end. */
    bool wait_for_all() {
        if (forget_lost())
            return false;
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            left_.store(1, std::memory_order_relaxed);
            return true;
        }
        const owner_is_back back{this};
        all_left_.wait();
        return true;
    }

    /* Threads of a runtime that has ended do not leave. Only the owner uses the group then, as all other users were its
     * threads. True: there were such threads. */
    bool forget_lost() noexcept {
        const std::uint64_t runtime = runtime_.load(std::memory_order_relaxed);
        if (runtime == 0 || runtime == thrum_runtime_id()) [[likely]]
            return false;
        runtime_.store(0, std::memory_order_relaxed);
        return left_.exchange(1, std::memory_order_acq_rel) != 1;
    }

    attributes how_;
    const thrum_attr_t *native_ = nullptr;
    std::atomic<std::size_t> left_{1}; /* threads, and the owner until it waits */
    event all_left_;
    std::atomic<std::uint64_t> runtime_{0}; /* that the threads belong to; 0: there were none */
    std::atomic<bool> failed_{false};
    std::exception_ptr thrown_; /* written by the thread that has set failed_ */
};

} // namespace thrum

#endif
