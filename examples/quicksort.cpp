// SPDX-License-Identifier: Apache-2.0
// Quicksort, with a new thread for every half: as short as without threads.
// c++ -std=c++20 quicksort.cpp $(pkg-config --cflags --libs thrum)
#include <algorithm>
#include <iostream>
#include <random>
#include <vector>

#include <thrum/thrum.hpp>

template <class I>
void quicksort(I first, I last) {
    if (last - first <= 500)
        return std::sort(first, last);
    const auto pivot = first[(last - first) / 2];
    const I middle = std::partition(first, last, [&](const auto &x) { return x < pivot; });
    const I behind = std::partition(middle, last, [&](const auto &x) { return !(pivot < x); });
    thrum::parallel_invoke([=] { quicksort(first, middle); }, [=] { quicksort(behind, last); });
}

int main() {
    const thrum::runtime runtime;
    std::vector<unsigned> numbers(1000000);
    std::generate(numbers.begin(), numbers.end(), std::mt19937());
    quicksort(numbers.begin(), numbers.end());
    if (std::is_sorted(numbers.begin(), numbers.end()))
        std::cout << numbers.size() << " numbers are in order\n";
}
