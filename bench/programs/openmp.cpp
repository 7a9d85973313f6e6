// SPDX-License-Identifier: Apache-2.0
//
// What libgomp makes threads for, today: it keeps a team's threads for the next region of the same thread and
// size, and ends and makes threads in all other cases. Run by ../openmp.cpp.
//
//     openmp alternate REGIONS    regions of 2 and of 8 threads in turns
//     openmp entered REGIONS      each region, of 4, entered by a thread of its own that ends afterwards
//     openmp nested REGIONS       each a region of 2 threads that enter one of 4 each
#include <omp.h>

#include <atomic>
#include <thread>

#include "program.hpp"

namespace {

std::atomic<std::uint64_t> sum{0}, members{0};

void region(int threads) {
#pragma omp parallel num_threads(threads)
    {
        sum.fetch_add(static_cast<std::uint64_t>(omp_get_thread_num()) + 1, std::memory_order_relaxed);
        members.fetch_add(1, std::memory_order_relaxed);
    }
}

void alternate(unsigned long regions) {
    for (unsigned long i = 0; i < regions; i++)
        region(i % 2 == 0 ? 2 : 8);
}

void entered(unsigned long regions) {
    for (unsigned long i = 0; i < regions; i++)
        std::thread(region, 4).join();
}

void nested(unsigned long regions) {
    for (unsigned long i = 0; i < regions; i++) {
#pragma omp parallel num_threads(2)
        region(4);
    }
}

} // namespace

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)(unsigned long);
    } modes[] = {{"alternate", alternate}, {"entered", entered}, {"nested", nested}};
    omp_set_dynamic(0); // the sizes are meant
    omp_set_max_active_levels(2);
    for (const auto &mode : modes)
        if (argc == 3 && std::strcmp(argv[1], mode.name) == 0) {
            const unsigned long regions = program::size_argument(argc, argv, 2, 1);
            program::Stopwatch stopwatch;
            mode.run(regions);
            stopwatch.stop();
            stopwatch.report(sum, members, 0);
            return 0;
        }
    std::fprintf(stderr, "usage: openmp alternate|entered|nested REGIONS\n");
    return 2;
}
