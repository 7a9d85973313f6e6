// SPDX-License-Identifier: Apache-2.0
//
// sort [NUMBERS [CUT-OFF]]: merge sort of random numbers. Each half is a thread's, down to CUT-OFF numbers;
// so is each half of a merge, which is split where the larger run's middle falls in the other.
#include <algorithm>

#include "async.hpp"

namespace {

using Number = std::uint32_t;
std::ptrdiff_t cut_off;

void merge(const Number *a, const Number *a_end, const Number *b, const Number *b_end, Number *to) {
    if (a_end - a < b_end - b) {
        std::swap(a, b);
        std::swap(a_end, b_end);
    }
    if ((a_end - a) + (b_end - b) <= 4 * cut_off) {
        std::merge(a, a_end, b, b_end, to);
        return;
    }
    const Number *a_middle = a + (a_end - a) / 2, *b_middle = std::lower_bound(b, b_end, *a_middle);
    auto lower = program::start([=] { merge(a, a_middle, b, b_middle, to); });
    merge(a_middle, a_end, b_middle, b_end, to + (a_middle - a) + (b_middle - b));
    lower.get();
}

// Sorts [from, end) into place, or into the same places of `other` if `elsewhere`.
void sort(Number *from, Number *end, Number *other, bool elsewhere) {
    const std::ptrdiff_t size = end - from;
    if (size <= cut_off) {
        std::sort(from, end);
        if (elsewhere)
            std::copy(from, end, other);
        return;
    }
    Number *middle = from + size / 2, *other_middle = other + size / 2;
    auto left = program::start([=] { sort(from, middle, other, !elsewhere); });
    sort(middle, end, other_middle, !elsewhere);
    left.get();
    if (elsewhere)
        merge(from, middle, middle, end, other);
    else
        merge(other, other_middle, other_middle, other + size, from);
}

} // namespace

int main(int argc, char **argv) {
    argc = program::arguments_of(argc, argv);
    const std::size_t count = program::size_argument(argc, argv, 1, 1000000);
    cut_off = static_cast<std::ptrdiff_t>(program::size_argument(argc, argv, 2, 128));
    program::Random random(1);
    std::vector<Number> numbers(count), other(count);
    for (Number &number : numbers)
        number = static_cast<Number>(random.next() >> 32);

    program::Stopwatch stopwatch;
    sort(numbers.data(), numbers.data() + count, other.data(), false);
    stopwatch.stop();
    program::Checksum checksum;
    checksum.add(numbers.data(), count * sizeof(Number));
    stopwatch.report(checksum.value(), program::threads, program::deferred);
    program::require(std::is_sorted(numbers.begin(), numbers.end()), "not sorted");
    return 0;
}
