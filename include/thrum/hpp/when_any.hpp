// SPDX-License-Identifier: Apache-2.0
/* Waiting for the first of several: when_any; and for all of them: when_all.
 *
 *     thrum::channel<int> numbers(8);
 *     thrum::event stop_now;
 *     std::optional<int> number;
 *     numbers.send(1), numbers.close();
 *     while (thrum::when_any(numbers.receiving(number), stop_now) == 0 && number)
 *         std::printf("%d\n", *number);
 *
 * It waits for futures, events and latches, for semaphores, of which it takes a permit, for mutexes, which it locks, and for
 * threads, which it joins. From channels it receives a value (receiving()), or it sends one to them (sending()). It returns the position of
 * the first that is ready, and takes nothing from the others.
 *
 * This sends to whichever channel has room first. `value` is sent once, and is empty then, or unchanged when when_any
 * returns:
 *
 *     thrum::channel<std::string> a(1), b(1);
 *     std::optional<std::string> value = "hello";
 *     thrum::when_any(a.sending(value), b.sending(value));
 *
 * An operand may be switched off for one call (only_if), and a stop token may end the wait (stopping). The first is Go's nil
 * channel: here it receives only while there is room, and sends only what there is:
 *
 *     thrum::channel<int> in(1), out(1);
 *     std::vector<int> kept;
 *     std::optional<int> received, next;
 *     in.send(1);
 *     thrum::thread copies([&](std::stop_token stop) {
 *         for (;;) {
 *             if (!next && !kept.empty())
 *                 next = kept.back(), kept.pop_back();
 *             const auto which = thrum::when_any(thrum::stopping(stop), thrum::only_if(kept.size() < 8, in.receiving(received)),
 *                                                thrum::only_if(next.has_value(), out.sending(next)));
 *             if (which == 0 || (which == 1 && !received))
 *                 return;
 *             if (which == 1)
 *                 kept.push_back(*received);
 *         }
 *     });
 *     out.receive();
 *
 * A std::span of at least one object of the same kind can be given too. There are three forms: when_any, when_any_for and
 * when_any_until; the last two return nothing if the deadline comes first. Errors of thrum_wait_any are thrown as
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
#include <stop_token>
#include <utility>
#include <vector>

#include "thrum/hpp/detail/offer.hpp"
#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

/* waiting() says what to wait for. After the wait, also after one that an exception ended, unwaited() is called for all
 * objects that have it. Then waited(result) is called for the one that was ready, if it has it. */
template <class T>
concept waitable = requires(T &object) {
    { object.waiting() } -> std::same_as<thrum_wait_t>;
};

/* An operand that is ready once a stop is requested, or if it was before. */
class [[nodiscard]] stopping {
  public:
    explicit stopping(const std::stop_token &stop) : flag_(stop) {}
    thrum_wait_t waiting() noexcept { return flag_.waiting(); }

  private:
    detail::stop_flag flag_;
};

/* `operand` if the condition is true, and otherwise one that is never ready. It keeps a reference if that is an lvalue. */
template <waitable Operand>
class [[nodiscard]] only_if {
  public:
    only_if(bool condition, Operand &&operand)
        : operand_(std::forward<Operand>(operand)), is_on_(condition) {}
    thrum_wait_t waiting() {
        return is_on_ ? operand_.waiting() : thrum_wait_t{THRUM_WAIT_NONE, 0, nullptr, nullptr, {}};
    }
    /* What follows is for the operands that have it. */
    void add_to(detail::offers &offered) noexcept {
        if (is_on_)
            offered.add(operand_);
    }
    void sent() noexcept { detail::tell_sent(operand_, 0); }
    void unwaited() {
        std::exception_ptr thrown;
        detail::tell_unwaited(operand_, thrown);
        if (thrown != nullptr)
            std::rethrow_exception(thrown);
    }
    void waited(int error) { detail::tell_waited(operand_, error); }

  private:
    Operand operand_; /* or a reference to it */
    bool is_on_;
};
template <class Operand>
only_if(bool condition, Operand &&operand) -> only_if<Operand>;

namespace detail {

inline constexpr reason any_reasons[] = {
    {EINVAL, "nothing to wait for, or a thread that another joins or that is detached"},
    {ESRCH, runtime_has_ended},
};

/* `error` is the result of thrum_wait_any. False: the deadline has come. */
inline bool any_is_ready(int error) {
    if (error != ETIMEDOUT)
        check(error, "thrum::when_any", any_reasons);
    return error == 0;
}

/* Tells the operands how the wait ended: by told(), or, from the destructor, by an exception or the end of the thread.
 * `for_each` calls a function for each operand, `for_one` for the operand at a position. */
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
    std::exception_ptr thrown_; /* while a value was moved back to where it came from */
    bool is_over_ = false;
};

/* `wait` takes the arguments of thrum_wait_any except the deadline. */
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

inline auto any_until_ns(std::uint64_t deadline) {
    return [deadline](thrum_wait_t *waits, std::size_t count, std::size_t *which) {
        return thrum_wait_any(waits, count, deadline, which);
    };
}

template <class Clock, class Duration>
auto any_until(const std::chrono::time_point<Clock, Duration> &deadline) {
    return [deadline](thrum_wait_t *waits, std::size_t count, std::size_t *which) {
        return detail::wait_until(deadline,
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
    return detail::when_any_by(detail::any_until_ns(detail::deadline_after(span)), objects...);
}

template <class Clock, class Duration, waitable... Waitables>
requires(sizeof...(Waitables) > 0) std::optional<std::size_t> when_any_until(
    const std::chrono::time_point<Clock, Duration> &deadline, Waitables &&...objects) {
    return detail::when_any_by(detail::any_until(deadline), objects...);
}

template <waitable Waitable, std::size_t Extent>
std::size_t when_any(std::span<Waitable, Extent> objects) {
    return *detail::when_any_of_span(detail::any_until_ns(UINT64_MAX), objects);
}

template <class Rep, class Period, waitable Waitable, std::size_t Extent>
std::optional<std::size_t> when_any_for(const std::chrono::duration<Rep, Period> &span,
                                        std::span<Waitable, Extent> objects) {
    return detail::when_any_of_span(detail::any_until_ns(detail::deadline_after(span)), objects);
}

template <class Clock, class Duration, waitable Waitable, std::size_t Extent>
std::optional<std::size_t> when_any_until(const std::chrono::time_point<Clock, Duration> &deadline,
                                          std::span<Waitable, Extent> objects) {
    return detail::when_any_of_span(detail::any_until(deadline), objects);
}

/* --- all of several ----------------------------------------------------------------------------------- */

namespace detail {

/* Waits for one after the other. An exception that `waited` throws, as that of a thread which it has joined, is kept until all
 * others have been waited for. */
template <class Wait>
class all_of {
  public:
    explicit all_of(Wait wait) : wait_(wait) {}
    template <class Operand>
    void add(Operand &operand) {
        if (in_time_)
            try {
                in_time_ = detail::when_any_by(wait_, operand).has_value();
            } catch (...) {
                const std::exception_ptr thrown = std::current_exception();
                if (thrown == nullptr) /* not an exception: thrum_exit unwinds */
                    throw;
                if (thrown_ == nullptr)
                    thrown_ = thrown;
            }
    }
    bool over() const {
        if (thrown_ != nullptr)
            std::rethrow_exception(thrown_);
        return in_time_;
    }

  private:
    Wait wait_;
    bool in_time_ = true;
    std::exception_ptr thrown_; /* the first */
};

template <class Wait, class... Waitables>
bool when_all_by(Wait wait, Waitables &...objects) {
    all_of all(wait);
    (all.add(objects), ...);
    return all.over();
}

template <class Wait, class Waitable, std::size_t Extent>
bool when_all_of_span(Wait wait, std::span<Waitable, Extent> objects) {
    all_of all(wait);
    for (Waitable &object : objects)
        all.add(object);
    return all.over();
}

} // namespace detail

/* Waits until all have been ready, and performs the operation of each, in the order of the arguments. If one throws, as the join
 * of a thread that has thrown, the others are waited for all the same, and the first exception is rethrown. when_all_for and
 * when_all_until return false if the deadline comes first. What was performed before stays so: threads are joined, and
 * permits are taken. Futures, events and latches stay as they are. Not for locks: which of them are locked after a false is
 * unknown, and two threads that name them in different orders wait for each other for ever; use std::lock. */
template <waitable... Waitables>
void when_all(Waitables &&...objects) {
    detail::when_all_by(detail::any_until_ns(UINT64_MAX), objects...);
}

template <class Rep, class Period, waitable... Waitables>
bool when_all_for(const std::chrono::duration<Rep, Period> &span, Waitables &&...objects) {
    return detail::when_all_by(detail::any_until_ns(detail::deadline_after(span)), objects...);
}

template <class Clock, class Duration, waitable... Waitables>
bool when_all_until(const std::chrono::time_point<Clock, Duration> &deadline, Waitables &&...objects) {
    return detail::when_all_by(detail::any_until(deadline), objects...);
}

template <waitable Waitable, std::size_t Extent>
void when_all(std::span<Waitable, Extent> objects) {
    detail::when_all_of_span(detail::any_until_ns(UINT64_MAX), objects);
}

template <class Rep, class Period, waitable Waitable, std::size_t Extent>
bool when_all_for(const std::chrono::duration<Rep, Period> &span, std::span<Waitable, Extent> objects) {
    return detail::when_all_of_span(detail::any_until_ns(detail::deadline_after(span)), objects);
}

template <class Clock, class Duration, waitable Waitable, std::size_t Extent>
bool when_all_until(const std::chrono::time_point<Clock, Duration> &deadline,
                    std::span<Waitable, Extent> objects) {
    return detail::when_all_of_span(detail::any_until(deadline), objects);
}

} // namespace thrum

#endif
