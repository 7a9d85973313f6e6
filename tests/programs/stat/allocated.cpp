// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads count their steps in one variable, which is on the heap and has no name there. Other memory is
// allocated and freed all the time beside it.
// Cure: each thread counts for itself, and adds at the end.
#include <atomic>
#include <cstdlib>
#include <memory>

#include "crew.h"

struct Statistics {
    std::atomic<uint64_t> requests{0};
    char name[48] = "";
};

static std::unique_ptr<Statistics> statistics;

static SEEN std::unique_ptr<Statistics> make_statistics() {
    return std::make_unique<Statistics>(); // the allocation that is to be named
}

static SEEN uint64_t serve(uint64_t state) {
#ifndef CURED
    statistics->requests.fetch_add(1, std::memory_order_relaxed); /* HERE: true-sharing */
#endif
    return chew(state, 2); /* HERE: true-sharing */
}

static void *serve_some(void *arg) {
    auto *hand = static_cast<struct hand *>(arg);
    for (long i = 0; i < hand->share; i++) {
        hand->result = serve(hand->result);
        if (i % 4096 == 0)
            std::make_unique<char[]>(64)[0] = static_cast<char>(hand->result);
    }
    statistics->requests.fetch_add(static_cast<uint64_t>(hand->share), std::memory_order_relaxed);
    return nullptr;
}

int main(int argc, char **argv) {
    statistics = make_statistics();
    crew_work(crew_size(argc, argv), 100000000, serve_some);
    return 0;
}
