// SPDX-License-Identifier: Apache-2.0
// A scheduler of one's own: three customers have bought shares of a worker, and each turn is drawn by lot.
// c++ -std=c++20 scheduler.cpp $(pkg-config --cflags --libs thrum)
#include <array>
#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include <thrum/thrum.hpp>

int main() {
    const thrum::runtime runtime(2);
    std::array<thrum::pool, 3> customers;
    std::array<long, 3> turns{}; // only the one worker counts them

    std::minstd_rand random;
    std::discrete_distribution<std::size_t> draw{50, 30, 20};
    thrum::scheduler lottery(
        [&]() -> thrum_t { // which thread is next? A pool that is empty leaves its turn to the others
            const std::size_t drawn = draw(random);
            for (std::size_t i = 0; i < customers.size(); i++)
                if (const thrum_t thread = customers[(drawn + i) % customers.size()].pop())
                    return thread;
            return nullptr;
        },
        customers[0], customers[1], customers[2]);

    std::vector<thrum::thread> threads;
    for (std::size_t i = 0; i < customers.size(); i++)
        threads.emplace_back(thrum::attributes().pool(customers[i]), [&turns, i] {
            while (turns[0] + turns[1] + turns[2] < 100000) {
                turns[i]++;
                thrum::this_thread::yield();
            }
        });
    lottery.run_on(1);
    for (thrum::thread &thread : threads)
        thread.join();

    std::cout << "shares:";
    for (const long count : turns)
        std::cout << " " << std::lround(static_cast<double>(count) / 1000) << " %";
    std::cout << "\n";
}
