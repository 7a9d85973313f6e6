// SPDX-License-Identifier: Apache-2.0
//
// Channels: a chain of threads sieves primes. Each takes out the multiples of one prime and passes on the rest; the
// first number that comes out at the end is the next prime, for which the chain is made longer. After a program by Russ
// Cox in "Bell Labs and CSP Threads", which has it from McIlroy.
//
//     c++ -std=c++20 sieve.cpp $(pkg-config --cflags --libs thrum)
#include <deque>
#include <iostream>

#include <thrum/thrum.hpp>

using Numbers = thrum::channel<int>;

constexpr int kLimit = 10000;

void count(Numbers &to) {
    for (int n = 2; n < kLimit; n++)
        to.send(n); // waits while it is full
    to.close();
}

void pass_on(Numbers &from, int prime, Numbers &to) {
    for (const int n : from) // until it is closed, and empty
        if (n % prime != 0)
            to.send(n);
    to.close();
}

int main() {
    const thrum::runtime runtime;
    std::deque<Numbers> channels;
    std::deque<thrum::thread> threads; // joined at the end, before the channels go
    channels.emplace_back(16);
    threads.emplace_back(count, std::ref(channels.back()));
    int largest = 0;
    while (const std::optional<int> prime = channels.back().receive()) {
        Numbers &from = channels.back(), &to = channels.emplace_back(16);
        threads.emplace_back(pass_on, std::ref(from), *prime, std::ref(to));
        largest = *prime;
    }
    std::cout << threads.size() - 1 << " primes are below " << kLimit << ", the largest is " << largest
              << "\n";
}
