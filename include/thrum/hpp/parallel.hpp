// SPDX-License-Identifier: Apache-2.0
/* Parallel loops, reductions and sorting.
 *
 *     std::vector<double> numbers(1000000, 2);
 *     thrum::for_each(numbers, [](double &x) { x = x * x; });
 *     thrum::for_each(0, numbers.size(), [&](std::size_t i) { numbers[i] += 1; });
 *     const double sum = thrum::reduce(numbers.begin(), numbers.end(), 0.0);
 *     const long squares = thrum::reduce(0, 1000, 0L, std::plus(), [](long i) { return i * i; });
 *     thrum::sort(numbers, std::greater());
 *
 * A range is halved until at most `grain` elements are left, which one thread processes in order. By default `grain` is an
 * eighth of each worker's share. If a thread cannot be created, the caller processes its part. If several parts throw, the
 * first exception in the range's order is rethrown when all parts have ended. */
#ifndef THRUM_HPP_PARALLEL_HPP
#define THRUM_HPP_PARALLEL_HPP

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "thrum/hpp/branch.hpp"

namespace thrum {

/* The bounds of a loop: integers, or random access iterators. */
template <class I>
concept loop_index = std::integral<I> || std::random_access_iterator<I>;

namespace detail {

template <class I>
decltype(auto) element(I first, std::size_t i) {
    if constexpr (std::integral<I>)
        return static_cast<I>(static_cast<std::size_t>(first) + i); /* modulo, where it is signed */
    else
        return first[static_cast<std::iter_difference_t<I>>(i)];
}

/* The bounds of a loop that have different types, as one that holds both. */
template <std::integral A, std::integral B>
struct bounds {
    using type = std::common_type_t<A, B>;
    type first, last;

    bounds(A a, B b) : first(static_cast<type>(a)), last(static_cast<type>(b)) {
        if (!std::in_range<type>(a) || !std::in_range<type>(b))
            throw std::out_of_range(
                "thrum: a bound of a loop is negative, and the other one's type has no sign");
    }
};

template <class I>
std::size_t count(I first, I last) {
    if constexpr (std::integral<I>)
        return first < last ? static_cast<std::size_t>(last) - static_cast<std::size_t>(first) : 0;
    else
        return static_cast<std::size_t>(last - first);
}

inline std::size_t grain_for(std::size_t count, std::size_t grain) {
    const std::size_t parts = std::size_t{8} * std::max(thrum_workers(), 1U);
    return grain != 0 ? grain : std::max<std::size_t>(count / parts, 1);
}

template <class I, class F>
struct loop {
    I first;
    std::size_t grain;
    F &body;

    void run(std::size_t begin, std::size_t end) {
        if (end - begin <= grain) {
            for (std::size_t i = begin; i < end; i++)
                std::invoke(body, detail::element(first, i));
            return;
        }
        const std::size_t middle = begin + (end - begin) / 2;
        thrum::parallel_invoke([=, this] { run(begin, middle); }, [=, this] { run(middle, end); });
    }
};

template <class T, class I, class Op, class Map>
struct sum {
    I first;
    std::size_t grain;
    Op &op;
    Map &map;

    T of(std::size_t begin, std::size_t end) { /* not empty */
        if (end - begin <= grain) {
            T result = std::invoke(map, detail::element(first, begin));
            for (std::size_t i = begin + 1; i < end; i++)
                result = std::invoke(op, std::move(result), std::invoke(map, detail::element(first, i)));
            return result;
        }
        const std::size_t middle = begin + (end - begin) / 2;
        branch low(std::nothrow, [=, this] { return of(begin, middle); });
        outcome<T> high;
        high.run([=, this] { return of(middle, end); });
        T result = low.join();
        return std::invoke(op, std::move(result), high.take());
    }
};

template <class Compare>
struct sorting {
    std::size_t grain;
    Compare &compare;

    template <class I>
    void run(I first, I last) {
        if (detail::count(first, last) <= grain) {
            std::sort(first, last, std::ref(compare));
            return;
        }
        const I middle = first + (last - first) / 2;
        std::nth_element(first, middle, last, std::ref(compare));
        thrum::parallel_invoke([=, this] { run(first, middle); }, [=, this] { run(middle + 1, last); });
    }
};

} // namespace detail

template <loop_index I, class F>
void for_each(I first, I last, F f, std::size_t grain = 0) {
    const std::size_t count = detail::count(first, last);
    if (count != 0)
        detail::loop<I, F>{first, detail::grain_for(count, grain), f}.run(0, count);
}

/* Bounds of two integer types, such as 0 and size(): f gets their common type. Throws std::out_of_range if that cannot hold
 * a negative bound. */
template <std::integral A, std::integral B, class F>
requires(!std::same_as<A, B>) void for_each(A first, B last, F f, std::size_t grain = 0) {
    const detail::bounds<A, B> both(first, last);
    thrum::for_each(both.first, both.last, std::ref(f), grain);
}

template <class Range, class F>
requires requires(Range &range) {
    { std::begin(range) } -> std::random_access_iterator;
    { std::end(range) } -> std::same_as<decltype(std::begin(range))>;
}
void for_each(Range &&range, F f, std::size_t grain = 0) {
    thrum::for_each(std::begin(range), std::end(range), std::ref(f), grain);
}

/* op(init, op(op(map(first), map(first + 1)), op(...))): op must be associative; it need not be commutative. */
template <loop_index I, class T, class Op = std::plus<>, class Map = std::identity>
T reduce(I first, I last, T init, Op op = {}, Map map = {}, std::size_t grain = 0) {
    const std::size_t count = detail::count(first, last);
    if (count == 0)
        return init;
    detail::sum<T, I, Op, Map> sum{first, detail::grain_for(count, grain), op, map};
    return std::invoke(op, std::move(init), sum.of(0, count));
}

template <std::integral A, std::integral B, class T, class Op = std::plus<>, class Map = std::identity>
requires(!std::same_as<A, B>) T
    reduce(A first, B last, T init, Op op = {}, Map map = {}, std::size_t grain = 0) {
    const detail::bounds<A, B> both(first, last);
    return thrum::reduce(both.first, both.last, std::move(init), std::move(op), std::move(map), grain);
}

/* As std::sort, which sorts parts of at most `grain` elements. Equal elements may change places. If `compare` throws, or a move,
 * all elements are there, in any order. The upper levels divide by std::nth_element in one thread: n elements take about
 * twice as long as one such division, however many workers there are. */
template <std::random_access_iterator I, class Compare = std::less<>>
void sort(I first, I last, Compare compare = {}, std::size_t grain = 0) {
    const std::size_t count = detail::count(first, last);
    if (count > 1)
        detail::sorting<Compare>{std::max(detail::grain_for(count, grain), std::size_t{2}), compare}.run(
            first, last);
}

template <class Range, class Compare = std::less<>>
requires requires(Range &range) {
    { std::begin(range) } -> std::random_access_iterator;
    { std::end(range) } -> std::same_as<decltype(std::begin(range))>;
}
void sort(Range &&range, Compare compare = {}, std::size_t grain = 0) {
    thrum::sort(std::begin(range), std::end(range), std::ref(compare), grain);
}

} // namespace thrum

#endif
