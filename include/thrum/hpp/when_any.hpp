// SPDX-License-Identifier: Apache-2.0
/* Waiting for the first of several.
 *
 *     thrum::channel<int> numbers(8);
 *     thrum::event stop_now;
 *     std::optional<int> number;
 *     numbers.send(1), numbers.close();
 *     while (thrum::when_any(numbers.receiving(number), stop_now) == 0 && number)
 *         std::printf("%d\n", *number);
 *
 * What can be waited for: futures, events, latches, semaphores, of which a permit is taken, channels, from which a
 * value is received (receiving()) or to which one is sent (sending()), and threads, which are joined. The answer is the
 * place of the first that is ready; nothing is taken from the others.
 *
 * To whichever channel has room first; `value` is sent once, and is empty then, or is back when when_any returns:
 *
 *     thrum::channel<std::string> a(1), b(1);
 *     std::optional<std::string> value = "hello";
 *     thrum::when_any(a.sending(value), b.sending(value));
 *
 * As many as there are of one kind, at least one, can be given as a std::span. Of each there are three forms: when_any;
 * when_any_for and when_any_until, which give nothing where the time is up first. Errors of thrum_wait_any are
 * std::system_error. */
#ifndef THRUM_HPP_WHEN_ANY_HPP
#define THRUM_HPP_WHEN_ANY_HPP

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "thrum/hpp/detail/offer.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

/* waiting() says what to wait for. When the wait is over, unwaited(), if there is one, is called for all of them, also
 * where it has ended by an exception, and then waited(result), if there is one, for the one that was ready. */
template <class T>
concept waitable = requires(T &object) {
    { object.waiting() } -> std::same_as<thrum_wait_t>;
};

namespace detail {

inline constexpr reason any_reasons[] = {
    {EINVAL, "nothing to wait for, or a thread that another joins or that is detached"},
    {ESRCH, runtime_has_ended},
};

/* What thrum_wait_any said. False: the time is up. */
inline bool any_is_ready(int error) {
    if (error != ETIMEDOUT)
        check(error, "thrum::when_any", any_reasons);
    return error == 0;
}

/* Tells the operands how the wait has ended: it is told() so, or left by an exception or the end of its thread.
 * `for_each` calls a function for each operand, `for_one` for that of a place. */
template <class ForEach, class ForOne>
class any_end {
  public:
    any_end(ForEach for_each, ForOne for_one) : for_each_(for_each), for_one_(for_one) {}
    any_end(const any_end &) = delete;
    ~any_end() {
        if (!is_over_)
            unwait();
    }

    std::optional<std::size_t> told(int error, std::size_t which, const thrum_wait_t *waits) {
        is_over_ = true;
        if (error == 0)
            for_one_(which, [&](auto &operand) { detail::tell_sent(operand, waits[which].result); });
        unwait();
        if (!any_is_ready(error))
            which = none;
        else
            for_one_(which, [&](auto &operand) { detail::tell_waited(operand, waits[which].result); });
        if (thrown_ != nullptr)
            std::rethrow_exception(thrown_);
        return which != none ? std::optional(which) : std::nullopt;
    }

  private:
    static constexpr std::size_t none = SIZE_MAX;

    void unwait() noexcept {
        for_each_([this](auto &operand) { detail::tell_unwaited(operand, thrown_); });
    }

    ForEach for_each_;
    ForOne for_one_;
    std::exception_ptr thrown_; /* by a value that was to go back to where it came from */
    bool is_over_ = false;
};

/* `wait` gets what thrum_wait_any does, but for the moment. */
template <class Wait, class... Waitables>
std::optional<std::size_t> when_any_by(Wait wait, Waitables &...objects) {
    offers offered;
    (offered.add(objects), ...);
    any_end end([&](auto tell) { (tell(objects), ...); },
                [&](std::size_t which, auto tell) {
                    std::size_t place = 0;
                    ((place++ == which ? tell(objects) : void()), ...);
                });
    thrum_wait_t waits[] = {objects.waiting()...};
    std::size_t which = 0;
    const int error = wait(waits, sizeof...(objects), &which);
    return end.told(error, which, waits);
}

template <class Wait, class Waitable, std::size_t Extent>
std::optional<std::size_t> when_any_of_span(Wait wait, std::span<Waitable, Extent> objects) {
    std::vector<thrum_wait_t> waits;
    waits.reserve(objects.size());
    offers offered;
    for (Waitable &object : objects)
        offered.add(object);
    any_end end(
        [&](auto tell) {
            for (Waitable &object : objects)
                tell(object);
        },
        [&](std::size_t which, auto tell) { tell(objects[which]); });
    for (Waitable &object : objects)
        waits.push_back(object.waiting());
    std::size_t which = 0;
    const int error = wait(waits.data(), waits.size(), &which);
    return end.told(error, which, waits.data());
}

inline auto any_until_ns(std::uint64_t moment) {
    return [moment](thrum_wait_t *waits, std::size_t count, std::size_t *which) {
        return thrum_wait_any(waits, count, moment, which);
    };
}

template <class Clock, class Duration>
auto any_until(const std::chrono::time_point<Clock, Duration> &moment) {
    return [moment](thrum_wait_t *waits, std::size_t count, std::size_t *which) {
        return detail::wait_until(moment,
                                  [=](std::uint64_t ns) { return thrum_wait_any(waits, count, ns, which); });
    };
}

} // namespace detail

template <waitable... Waitables>
requires(sizeof...(Waitables) > 0) std::size_t when_any(Waitables &&...objects) {
    return *detail::when_any_by(detail::any_until_ns(UINT64_MAX), objects...);
}

template <class Rep, class Period, waitable... Waitables>
requires(sizeof...(Waitables) >
         0) std::optional<std::size_t> when_any_for(const std::chrono::duration<Rep, Period> &span,
                                                    Waitables &&...objects) {
    return detail::when_any_by(detail::any_until_ns(detail::moment_after(span)), objects...);
}

template <class Clock, class Duration, waitable... Waitables>
requires(sizeof...(Waitables) >
         0) std::optional<std::size_t> when_any_until(const std::chrono::time_point<Clock, Duration> &moment,
                                                      Waitables &&...objects) {
    return detail::when_any_by(detail::any_until(moment), objects...);
}

template <waitable Waitable, std::size_t Extent>
std::size_t when_any(std::span<Waitable, Extent> objects) {
    return *detail::when_any_of_span(detail::any_until_ns(UINT64_MAX), objects);
}

template <class Rep, class Period, waitable Waitable, std::size_t Extent>
std::optional<std::size_t> when_any_for(const std::chrono::duration<Rep, Period> &span,
                                        std::span<Waitable, Extent> objects) {
    return detail::when_any_of_span(detail::any_until_ns(detail::moment_after(span)), objects);
}

template <class Clock, class Duration, waitable Waitable, std::size_t Extent>
std::optional<std::size_t> when_any_until(const std::chrono::time_point<Clock, Duration> &moment,
                                          std::span<Waitable, Extent> objects) {
    return detail::when_any_of_span(detail::any_until(moment), objects);
}

} // namespace thrum

#endif
