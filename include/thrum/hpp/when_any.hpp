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
 * What can be waited for: futures, events, latches, semaphores, of which a permit is taken, and channels, from which
 * a value is received. The answer is the place of the first that is ready; nothing is taken from the others. */
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

template <class... Waitables>
std::optional<std::size_t> when_any_until_ns(std::uint64_t moment, Waitables &...objects) {
    thrum_wait_t waits[] = {objects.waiting()...};
    std::size_t which = 0, place = 0;
    const int error = thrum_wait_any(waits, sizeof...(objects), moment, &which);
    if (error == ETIMEDOUT)
        return std::nullopt;
    check(error, "thrum::when_any");
    ((place++ == which ? tell(objects, waits[which].result) : void()), ...);
    return which;
}

} // namespace detail

template <waitable... Waitables>
requires(sizeof...(Waitables) > 0) std::size_t when_any(Waitables &&...objects) {
    return *detail::when_any_until_ns(UINT64_MAX, objects...);
}

/* Nothing: the time is up. */
template <class Rep, class Period, waitable... Waitables>
requires(sizeof...(Waitables) >
         0) std::optional<std::size_t> when_any_for(const std::chrono::duration<Rep, Period> &span,
                                                    Waitables &&...objects) {
    return detail::when_any_until_ns(detail::moment_after(span), objects...);
}

/* As many as there are of one kind, at least one. */
template <waitable Waitable>
std::size_t when_any(std::span<Waitable> objects) {
    std::vector<thrum_wait_t> waits;
    waits.reserve(objects.size());
    for (Waitable &object : objects)
        waits.push_back(object.waiting());
    std::size_t which = 0;
    detail::check(thrum_wait_any(waits.data(), waits.size(), UINT64_MAX, &which), "thrum::when_any");
    detail::tell(objects[which], waits[which].result);
    return which;
}

} // namespace thrum

#endif
