// SPDX-License-Identifier: Apache-2.0
/* Parallel loops, reductions, scans and sorting.
 *
 *     std::vector<double> numbers(1000000, 2);
 *     thrum::for_each(numbers, [](double &x) { x = x * x; });
 *     thrum::for_each(0, numbers.size(), [&](std::size_t i) { numbers[i] += 1; });
 *     const double sum = thrum::reduce(numbers.begin(), numbers.end(), 0.0);
 *     const long squares = thrum::reduce(0, 1000, 0L, std::plus(), [](long i) { return i * i; });
 *     thrum::sort(numbers, std::greater());
 *     thrum::inclusive_scan(numbers.begin(), numbers.end(), numbers.begin()); // each becomes the sum up to it
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
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

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
using element_of = decltype(detail::element(std::declval<I>(), 0));

/* What a loop's function, an operation and a comparison must be. A static_assert says so in one line; where it fails, nothing is
 * instantiated that would say more. */
template <class F, class I>
concept takes_elements_of = std::invocable<F &, element_of<I>>;
template <class Op, class T, class U>
concept adds = std::invocable<Op &, T, U> && std::is_assignable_v<T &, std::invoke_result_t<Op &, T, U>> &&
    std::is_convertible_v<std::invoke_result_t<Op &, T, U>, T>;
template <class Map, class I, class T>
concept maps =
    takes_elements_of<Map, I> && std::convertible_to<std::invoke_result_t<Map &, element_of<I>>, T>;
template <class Op, class Map, class I, class T>
concept reduces =
    maps<Map, I, T> && adds<Op, T, T> && adds<Op, T, std::invoke_result_t<Map &, element_of<I>>>;
template <class Compare, class I>
concept compares = std::predicate<Compare &, element_of<I>, element_of<I>>;

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

/* A scan in two passes over the same parts: what each adds up to, and, once what is before each is known, the results. The first
 * pass leaves out the last part. `Exclusive`: a result is without its own element. */
template <bool Exclusive, class T, class I, class Out, class Op>
class scan {
  public:
    scan(I first, Out out, std::size_t count, std::size_t grain, Op &op)
        : first_(first), out_(out), count_(count), grain_(grain), op_(op), before_((count - 1) / grain + 1) {}

    /* `init` is before the first element, if there is one. */
    void run(std::optional<T> init) {
        const std::size_t parts = before_.size();
        if (parts > 1)
            for_each_part(parts - 1, [this](std::size_t part) { before_[part + 1].emplace(sum_of(part)); });
        for (std::size_t part = 0; part < parts; part++) {
            std::optional<T> sum = std::move(before_[part]); /* of the part before this one */
            if (init && sum)
                init.emplace(std::invoke(op_, std::move(*init), std::move(*sum)));
            else if (sum)
                init.emplace(std::move(*sum));
            if (init)
                before_[part].emplace(*init);
        }
        for_each_part(parts, [this](std::size_t part) { write(part); });
    }

  private:
    template <class F>
    void for_each_part(std::size_t parts, F f) {
        loop<std::size_t, F>{0, 1, f}.run(0, parts);
    }
    std::size_t end_of(std::size_t part) const { return std::min(count_, (part + 1) * grain_); }

    T sum_of(std::size_t part) const {
        T sum = detail::element(first_, part * grain_);
        for (std::size_t i = part * grain_ + 1; i < end_of(part); i++)
            sum = std::invoke(op_, std::move(sum), detail::element(first_, i));
        return sum;
    }
    void write(std::size_t part) {
        std::optional<T> sum = std::move(before_[part]);
        for (std::size_t i = part * grain_; i < end_of(part); i++) {
            auto &&place = out_[static_cast<std::iter_difference_t<Out>>(i)];
            if constexpr (Exclusive) { /* the element may be where its result goes */
                T next = std::invoke(op_, *sum, detail::element(first_, i));
                place = std::move(*sum);
                sum.emplace(std::move(next));
            } else {
                if (sum)
                    sum.emplace(std::invoke(op_, std::move(*sum), detail::element(first_, i)));
                else
                    sum.emplace(detail::element(first_, i));
                place = *sum;
            }
        }
    }

    I first_;
    Out out_;
    std::size_t count_, grain_;
    Op &op_;
    std::vector<std::optional<T>> before_; /* by part */
};

template <bool Exclusive, class T, class I, class Out, class Op>
Out scan_of(I first, I last, Out out, Op &op, std::optional<T> init, std::size_t grain) {
    constexpr bool is_scan = adds<Op, T, element_of<I>> && adds<Op, T, T> &&
                             (Exclusive || std::convertible_to<element_of<I>, T>)&&requires {
        *out = std::declval<T &>();
    };
    static_assert(is_scan,
                  "thrum::inclusive_scan, exclusive_scan: op(T, element) and op(T, T) must be a T, which the "
                  "output must take; T is the type of init, or of the elements where there is none");
    const std::size_t count = detail::count(first, last);
    if constexpr (is_scan)
        if (count != 0)
            scan<Exclusive, T, I, Out, Op>(first, out, count, detail::grain_for(count, grain), op)
                .run(std::move(init));
    return out + static_cast<std::iter_difference_t<Out>>(count);
}

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
    static_assert(detail::takes_elements_of<F, I>,
                  "thrum::for_each: f must be callable with an element of the range, or with an index");
    const std::size_t count = detail::count(first, last);
    if constexpr (detail::takes_elements_of<F, I>)
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
    static_assert(detail::reduces<Op, Map, I, T>,
                  "thrum::reduce: op(T, T) must be a T, and so must map(element), or the element where there "
                  "is no map; T is the type of init");
    const std::size_t count = detail::count(first, last);
    if constexpr (detail::reduces<Op, Map, I, T>)
        if (count != 0) {
            detail::sum<T, I, Op, Map> sum{first, detail::grain_for(count, grain), op, map};
            return std::invoke(op, std::move(init), sum.of(0, count));
        }
    return init;
}

template <std::integral A, std::integral B, class T, class Op = std::plus<>, class Map = std::identity>
requires(!std::same_as<A, B>) T
    reduce(A first, B last, T init, Op op = {}, Map map = {}, std::size_t grain = 0) {
    const detail::bounds<A, B> both(first, last);
    return thrum::reduce(both.first, both.last, std::move(init), std::move(op), std::move(map), grain);
}

template <class Range, class T, class Op = std::plus<>, class Map = std::identity>
requires requires(Range &range) {
    { std::begin(range) } -> std::random_access_iterator;
    { std::end(range) } -> std::same_as<decltype(std::begin(range))>;
}
T reduce(Range &&range, T init, Op op = {}, Map map = {}, std::size_t grain = 0) {
    return thrum::reduce(std::begin(range), std::end(range), std::move(init), std::move(op), std::move(map),
                         grain);
}

/* As std::inclusive_scan and std::exclusive_scan: out[i] is the sum, by `op`, of the elements up to i, which is included or not,
 * and of `init` before them. `op` must be associative; it need not be commutative. It is called about twice for each
 * element: one thread alone would call it once. `out` may be `first`. Returns the end of the results. If `op` throws, some results may be
 * there. */
template <loop_index I, std::random_access_iterator Out, class Op = std::plus<>>
Out inclusive_scan(I first, I last, Out out, Op op = {}) {
    using T = std::remove_cvref_t<decltype(detail::element(first, 0))>;
    return detail::scan_of<false, T>(first, last, out, op, std::optional<T>(), 0);
}
template <loop_index I, std::random_access_iterator Out, class Op, class T>
Out inclusive_scan(I first, I last, Out out, Op op, T init, std::size_t grain = 0) {
    return detail::scan_of<false, T>(first, last, out, op, std::optional<T>(std::move(init)), grain);
}
template <loop_index I, std::random_access_iterator Out, class T, class Op = std::plus<>>
Out exclusive_scan(I first, I last, Out out, T init, Op op = {}, std::size_t grain = 0) {
    return detail::scan_of<true, T>(first, last, out, op, std::optional<T>(std::move(init)), grain);
}

/* As std::sort, which sorts parts of at most `grain` elements. Equal elements may change places. If `compare` throws, or a move,
 * all elements are there, in any order. The upper levels divide by std::nth_element in one thread: n elements take about
 * twice as long as one such division, however many workers there are. */
template <std::random_access_iterator I, class Compare = std::less<>>
void sort(I first, I last, Compare compare = {}, std::size_t grain = 0) {
    static_assert(detail::compares<Compare, I>,
                  "thrum::sort: compare must be callable with two elements, and say whether the first comes "
                  "before the second");
    const std::size_t count = detail::count(first, last);
    if constexpr (detail::compares<Compare, I>)
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
