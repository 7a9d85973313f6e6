// SPDX-License-Identifier: Apache-2.0
/* Runs functions, each on a detached thread of its own.
 *
 *     thrum::executor executor;
 *     thrum::latch done(1);
 *     executor.execute([&] { done.count_down(); });
 *     done.wait();
 *
 * For libraries that take an executor. It is a value type: copies, and executors with the same pool, are equal. An
 * exception that leaves a function ends the program. */
#ifndef THRUM_HPP_EXECUTOR_HPP
#define THRUM_HPP_EXECUTOR_HPP

#include <type_traits>
#include <utility>

#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/detail/launch.hpp"
#include "thrum/hpp/pool.hpp"

namespace thrum {

class executor {
  public:
    executor() noexcept = default; /* on any worker */
    explicit executor(const pool &pool) noexcept : pool_(pool.native_handle()) {}

    /* Throws std::system_error with thrum_spawn's errors. */
    template <class F>
    requires std::is_invocable_v<std::decay_t<F>>
    void execute(F &&f) const {
        if (pool_ == nullptr)
            detail::check(detail::launch(nullptr, nullptr, std::forward<F>(f)), "thrum::executor::execute",
                          detail::spawn_reasons);
        else
            detail::check(detail::launch(nullptr, attributes().pool(pool_).native(), std::forward<F>(f)),
                          "thrum::executor::execute", detail::spawn_reasons);
    }

    friend bool operator==(const executor &, const executor &) noexcept = default;

  private:
    thrum_pool_t pool_ = nullptr;
};

} // namespace thrum

#endif
