// SPDX-License-Identifier: Apache-2.0
/* A group of threads to wait for together.
 *
 *     std::vector<int> sizes(100);
 *     thrum::task_group group;
 *     for (int &size : sizes)
 *         group.run([&size] { size = 1; });
 *     group.wait();
 *
 * wait() rethrows the first exception that left one of them. The first exception also asks the others to stop, and so does
 * request_stop(). They end early if they look: a function that takes a std::stop_token gets the group's, and all may poll
 * stopping(). (Members of a thrum::scope are cancelled without looking.)
 *
 *     thrum::task_group watchers;
 *     watchers.run([](const std::stop_token &stop) {
 *         while (thrum::this_thread::sleep_for(stop, std::chrono::milliseconds(1)))
 *             std::puts("still here");
 *     });
 *     if (!watchers.wait_for(std::chrono::seconds(1)))
 *         watchers.request_stop();
 *     watchers.wait();
 *
 * A group can be used again after wait(). The destructor waits, and drops exceptions. The group's threads may
 * call run() too; only its owner may call wait().
 *
 * Threads that have not ended when the runtime ends (runtime.hpp) never end. Then wait() throws std::system_error (ESRCH),
 * and the destructor does not wait. */
#ifndef THRUM_HPP_TASK_GROUP_HPP
#define THRUM_HPP_TASK_GROUP_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/launch.hpp"
#include "thrum/hpp/detail/outcome.hpp"
#include "thrum/hpp/detail/uncancelled.hpp"
#include "thrum/hpp/event.hpp"
#include "thrum/hpp/mutex.hpp"

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

    /* Runs f(), or f(token) if that can be called. Throws std::system_error with thrum_spawn's errors. */
    template <class F>
    requires(std::is_invocable_v<std::decay_t<F>> ||
             std::is_invocable_v<std::decay_t<F>, std::stop_token>) void run(F &&f) {
        if (forget_lost())
            begin_anew();
        if constexpr (std::is_invocable_v<std::decay_t<F>, std::stop_token>)
            start(detail::bind(std::forward<F>(f), get_stop_token()));
        else
            start(std::forward<F>(f));
        if (runtime_.load(std::memory_order_relaxed) == 0)
            runtime_.store(thrum_runtime_id(), std::memory_order_relaxed);
    }

    void wait() { finish(wait_for_all()); }
    /* As wait() if all end in time: true. After false the group is as before, and must still be waited for. */
    template <class Rep, class Period>
    bool wait_for(const std::chrono::duration<Rep, Period> &span) {
        return wait_in_time([&span](const event &all_left) { return all_left.wait_for(span); });
    }
    template <class Clock, class Duration>
    bool wait_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return wait_in_time([&deadline](const event &all_left) { return all_left.wait_until(deadline); });
    }

    /* A thread of the group has thrown, or request_stop() was called; until the next wait(). */
    bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }
    void request_stop() {
        stopping_.store(true, std::memory_order_relaxed);
        stop_source(false).request_stop();
    }
    std::stop_token get_stop_token() { return stop_source(true).get_token(); }

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
            if (thrown != nullptr && !group->failed_.exchange(true, std::memory_order_relaxed)) {
                group->thrown_ = std::move(thrown);
                group->request_stop();
            }
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
        bool &all; /* have left */
        ~owner_is_back() {
            all = self->left_.fetch_add(1, std::memory_order_acq_rel) == 0;
            if (!all)
                return;
            const detail::uncancelled waiting;
            self->all_left_.wait();
            self->all_left_.reset();
        }
    };
    enum class end { all, some, never };

    /* `wait` waits for the event. */
    template <class Wait>
    end wait_by(Wait wait) {
        if (forget_lost())
            return end::never;
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            left_.store(1, std::memory_order_relaxed);
            return end::all;
        }
        bool all = false;
        {
            const owner_is_back back{this, all};
            wait(all_left_);
        }
        return all ? end::all : end::some;
    }
    end wait_for_all() {
        return wait_by([](const event &all_left) { all_left.wait(); });
    }
    template <class Wait>
    bool wait_in_time(Wait wait) {
        const end how = wait_by(wait);
        if (how == end::some)
            return false;
        finish(how);
        return true;
    }
    /* Makes the group as new. */
    void finish(end how) {
        const std::exception_ptr thrown = begin_anew();
        if (how == end::never)
            detail::fail(ESRCH, "thrum::task_group::wait", detail::runtime_has_ended);
        if (thrown != nullptr)
            std::rethrow_exception(thrown);
    }
    std::exception_ptr begin_anew() {
        failed_.store(false, std::memory_order_relaxed);
        stopping_.store(false, std::memory_order_relaxed);
        {
            const detail::uncancelled region;
            const std::lock_guard lock(stop_mutex_);
            stop_ = std::stop_source(std::nostopstate);
        }
        return std::exchange(thrown_, nullptr);
    }

    template <class Work>
    void start(Work &&work) {
        detail::check(detail::launch(nullptr, native_,
                                     task<std::decay_t<Work>>{member(this), std::forward<Work>(work)}),
                      "thrum::task_group::run", detail::spawn_reasons);
    }

    /* The group has a source from the first time on that one is needed. Either a request finds it, or the thread that makes
     * it finds the request: both look under the mutex. */
    std::stop_source stop_source(bool needed) {
        const detail::uncancelled region; /* a member that ends by cancellation tells the others, too */
        const std::lock_guard lock(stop_mutex_);
        if (needed && !stop_.stop_possible()) {
            stop_ = std::stop_source();
            if (stopping())
                stop_.request_stop();
        }
        return stop_;
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
    std::atomic<bool> failed_{false}, stopping_{false};
    std::exception_ptr thrown_; /* written by the thread that has set failed_ */
    mutex stop_mutex_;
    std::stop_source stop_{std::nostopstate};
};

} // namespace thrum

#endif
