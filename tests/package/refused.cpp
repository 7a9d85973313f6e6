// SPDX-License-Identifier: Apache-2.0
//
// What <thrum/thrum.hpp> refuses, and the one line in which the compiler must say so (check-refused.sh). It is never run.
#include <thrum/thrum.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace {

thrum::task<int> one() {
    co_return 1;
}

thrum::task<int> awaits(thrum::condition_variable &changed) {
    int sum = co_await 5; // REFUSED: co_await in a thrum::task takes a thrum::task, a future,
    co_await changed;     // REFUSED: co_await in a thrum::task takes a thrum::task, a future,
    const std::string text =
        co_await "text"; // REFUSED: co_await in a thrum::task takes a thrum::task, a future,
    thrum::task<int> task = one();
    sum += co_await task; // REFUSED: co_await std::move(task)
    co_return sum + static_cast<int>(text.size());
}

int loops(std::vector<int> &numbers) {
    const auto strings = [](std::string a, const std::string &b) { return a + b; };
    const auto text = [](int) { return std::string(); };
    int sum = thrum::reduce(numbers, 0, strings);      // REFUSED: thrum::reduce: op(T, T) must be a T
    sum += thrum::reduce(0, 9, 0L, std::plus(), text); // REFUSED: thrum::reduce: op(T, T) must be a T
    thrum::for_each(numbers, [](std::string &) {});    // REFUSED: thrum::for_each: f must be callable
    thrum::sort(numbers, strings);                     // REFUSED: thrum::sort: compare must be callable
    thrum::inclusive_scan(numbers.begin(), numbers.end(), numbers.begin(),
                          strings); // REFUSED: thrum::inclusive_scan,
    return sum;
}

void runs(thrum::task_group &group, thrum::scope &scope, thrum::once_flag &once) {
    const auto takes = [](int) {};
    thrum::thread thread(takes);            // REFUSED: it has to be callable with these arguments
    group.run(takes);                       // REFUSED: no matching
    scope.run(takes);                       // REFUSED: no matching
    thrum::call_once(once, takes);          // REFUSED: no matching
    static_cast<void>(thrum::async(takes)); // REFUSED: no matching
    thrum::when_any(5);                     // REFUSED: no matching
}

} // namespace
