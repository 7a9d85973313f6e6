// SPDX-License-Identifier: Apache-2.0
#include "stat/working.hpp"

#include <cstdlib>

namespace thrum::stat {

namespace {

// "0-2,7", as the kernel writes it.
void add_cpus(const std::string &list, std::set<unsigned long> &cpus) {
    for (const char *at = list.c_str(); *at >= '0' && *at <= '9';) {
        char *end = nullptr;
        const unsigned long first = std::strtoul(at, &end, 10);
        const unsigned long last = *end == '-' ? std::strtoul(end + 1, &end, 10) : first;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            cpus.insert(cpu);
        at = *end == ',' ? end + 1 : end;
    }
}

} // namespace

std::vector<const Thread *> working_threads(const std::vector<Thread> &threads, double least) {
    double all = 0;
    for (const Thread &thread : threads)
        all += thread.cpu;
    std::vector<const Thread *> working;
    for (const Thread &thread : threads)
        if (thread.cpu > 0 && thread.cpu >= least * all)
            working.push_back(&thread);
    return working;
}

Affinity affinity_of(const Report &report, double least) {
    Affinity affinity;
    for (const Thread *thread : working_threads(report.threads, least)) {
        affinity.threads++;
        affinity.is_known = affinity.is_known && !thread->cpus.empty();
        add_cpus(thread->cpus, affinity.cpus);
    }
    return affinity;
}

} // namespace thrum::stat
