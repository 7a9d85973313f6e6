// SPDX-License-Identifier: Apache-2.0
//
// A program of a user with C++20 and an installed thrum: each part of <thrum/thrum.hpp> that has code of its own is
// used once, so that it compiles, links and runs with what the package says.
#include <mutex>
#include <stdexcept>
#include <thrum/thrum.hpp>
#include <vector>

static thrum::task<int> twice(int number) {
    co_return 2 * co_await thrum::async([number] { return number; });
}

static bool hands_exceptions_on() {
    thrum::thread thread([] { throw std::runtime_error("on purpose"); });
    try {
        thread.join();
    } catch (const std::runtime_error &) {
        return true;
    }
    return false;
}

int main() {
    const thrum::runtime runtime(2);
    std::vector<int> numbers(1000, 1);
    thrum::mutex mutex;
    int sum = 0;
    thrum::for_each(numbers, [](int &number) { number++; });
    thrum::task_group group;
    for (int i = 0; i < 10; i++)
        group.run([&] {
            const std::lock_guard lock(mutex);
            sum++;
        });
    group.wait();
    thrum::channel<int> channel(4);
    const thrum::thread sender([&channel] { channel.send(30); });
    sum += channel.receive().value_or(0) + thrum::reduce(numbers.begin(), numbers.end(), 0);
    sum += thrum::async(twice(1)).get();
    return sum == 2042 && hands_exceptions_on() ? 0 : 1;
}
