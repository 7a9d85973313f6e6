// SPDX-License-Identifier: Apache-2.0
// Stop tokens: four threads look for the number that has a certain hash; when one has found it the others are told to
// stop, and so is one that waits for something that does not come.
// c++ -std=c++20 cancellation.cpp $(pkg-config --cflags --libs thrum)
#include <atomic>
#include <cstdint>
#include <iostream>
#include <vector>

#include <thrum/thrum.hpp>

using namespace std::chrono_literals;

// No two numbers have the same (splitmix64, by Sebastiano Vigna).
std::uint64_t hash(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

int main() {
    constexpr std::uint64_t kWanted = 0x1abe0e81888ce00f, kSearchers = 4;
    const thrum::runtime runtime;
    thrum::channel<std::uint64_t> found(1);
    std::atomic<int> stopped{0};
    thrum::mutex mutex;
    thrum::condition_variable never;

    std::vector<thrum::thread> threads;
    for (std::uint64_t i = 0; i < kSearchers; i++)
        threads.emplace_back([&, i](const std::stop_token &stop) {
            for (std::uint64_t n = i; !stop.stop_requested(); n += kSearchers) {
                if (hash(n) == kWanted) {
                    found.send(n);
                    return;
                }
                if (n % 1024 == i)
                    thrum::this_thread::yield(); // the others want to search, too
            }
            stopped++;
        });
    threads.emplace_back([&](const std::stop_token &stop) {
        std::unique_lock lock(mutex);
        if (!never.wait(lock, stop, [] { return false; }))
            stopped++;
    });

    const std::optional<std::uint64_t> number = found.receive_for(60s);
    threads.clear(); // tells each to stop, and waits for its end
    if (number)
        std::cout << "it is " << *number << "; " << stopped << " were told to stop\n";
}
