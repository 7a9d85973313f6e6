// SPDX-License-Identifier: Apache-2.0
/* The outcome of a call: none yet, a value, or an exception. Branches, futures and tasks store it here; they synchronise
 * its writer and its reader by other means. */
#ifndef THRUM_HPP_DETAIL_OUTCOME_HPP
#define THRUM_HPP_DETAIL_OUTCOME_HPP

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace thrum::detail {

struct nothing {};

/* What is stored for a result of type T. */
template <class T>
using stored =
    std::conditional_t<std::is_void_v<T>, nothing,
                       std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T> *, T>>;

template <class T>
class outcome {
  public:
    outcome() noexcept {}
    outcome(const outcome &) = delete;
    ~outcome() {
        if (has_value_)
            std::destroy_at(std::addressof(value_));
    }

    template <class... Args>
    void set(Args &&...args) {
        if constexpr (std::is_reference_v<T>)
            std::construct_at(std::addressof(value_), std::addressof(args)...);
        else
            std::construct_at(std::addressof(value_), std::forward<Args>(args)...);
        has_value_ = true;
    }

    void fail(std::exception_ptr thrown) noexcept { thrown_ = std::move(thrown); }

    /* Calls `work` and stores what it returns or throws. */
    template <class Work>
    void run(Work &&work) {
        try {
            if constexpr (std::is_void_v<T>) {
                std::invoke(std::forward<Work>(work));
                set();
            } else {
                set(std::invoke(std::forward<Work>(work)));
            }
        } catch (...) {
            std::exception_ptr thrown = std::current_exception();
            if (thrown == nullptr) /* not an exception: thrum_exit unwinds, and there is no outcome */
                throw;
            fail(std::move(thrown));
        }
    }

    std::exception_ptr thrown() const noexcept { return thrown_; }

    /* To be called once. If the thread ended inside the call (thrum_exit), this throws as for a broken promise. */
    T take() {
        if (!has_value_) [[unlikely]]
            throw_what_is_held();
        if constexpr (std::is_reference_v<T>)
            return static_cast<T>(*value_);
        else if constexpr (!std::is_void_v<T>)
            return std::move(value_);
    }

    /* The same for many readers: the value stays. */
    std::add_lvalue_reference_t<const T> look() const {
        if (!has_value_) [[unlikely]]
            throw_what_is_held();
        if constexpr (std::is_reference_v<T>)
            return *value_;
        else if constexpr (!std::is_void_v<T>)
            return value_;
    }

  private:
    [[noreturn]] __attribute__((noinline)) void throw_what_is_held() const {
        if (thrown_ != nullptr)
            std::rethrow_exception(thrown_);
        throw std::future_error(std::future_errc::broken_promise);
    }

    std::exception_ptr thrown_; /* null: nothing was thrown */
    union {
        stored<T> value_;
    };
    bool has_value_ = false;
};

} // namespace thrum::detail

#endif
