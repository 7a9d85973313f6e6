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
 * As many as there are of one kind, at least one, can be given as a std::span. Of each there are three forms: when_any;
 * when_any_for and when_any_until, which give nothing where the time is up first. Errors of thrum_wait_any are
 * std::system_error. */
#ifndef THRUM_HPP_WHEN_ANY_HPP
#define THRUM_HPP_WHEN_ANY_HPP

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "thrum/hpp/detail/time.hpp"

namespace thrum {

/* waited(), if there is one, is told how it went, when the wait has ended with this one. */
template <class T>
concept waitable = requires(T &object) {
    { object.waiting() } -> std::same_as<thrum_wait_t>;
};

namespace detail {

template <class Waitable>
void tell(Waitable &object, int result) {
    if constexpr (requires { object.waited(result); })
        object.waited(result);
}

/* What thrum_wait_any said. False: the time is up. */
inline bool any_is_ready(int error) {
    if (error != ETIMEDOUT)
        check(error, "thrum::when_any");
    return error == 0;
}

/* `wait` gets what thrum_wait_any does, but for the moment. */
template <class Wait, class... Waitables>
std::optional<std::size_t> when_any_by(Wait wait, Waitables &...objects) {
    thrum_wait_t waits[] = {objects.waiting()...};
    std::size_t which = 0, place = 0;
    if (!any_is_ready(wait(waits, sizeof...(objects), &which)))
        return std::nullopt;
    ((place++ == which ? tell(objects, waits[which].result) : void()), ...);
    return which;
}

template <class Wait, class Waitable, std::size_t Extent>
std::optional<std::size_t> when_any_of_span(Wait wait, std::span<Waitable, Extent> objects) {
    std::vector<thrum_wait_t> waits;
    waits.reserve(objects.size());
    for (Waitable &object : objects)
        waits.push_back(object.waiting());
    std::size_t which = 0;
    if (!any_is_ready(wait(waits.data(), waits.size(), &which)))
        return std::nullopt;
    tell(objects[which], waits[which].result);
    return which;
}

inline auto any_until_ns(std::uint64_t moment) {
    return [moment](thrum_wait_t *waits, std::size_t count, std::size_t *which) {
        return thrum_wait_any(waits, count, moment, which);
    };
}

template <class Clock, class Duration>
auto any_until(const std::chrono::time_point<Clock, Duration> &moment) {
    return [moment](thrum_wait_t *waits, std::size_t count, std::size_t *which) {
        return wait_until(moment, [=](std::uint64_t ns) { return thrum_wait_any(waits, count, ns, which); });
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
