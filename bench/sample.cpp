// SPDX-License-Identifier: Apache-2.0
//
// Creating and joining threads, measured in a process of its own.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "common.hpp"
#include "thrum/cache.h"
#include "tools/clock.hpp"

namespace bench {

Sample measure(const std::vector<std::string> &words, const Environment &environment, bool expect_reuse) {
    const Ended ended = run_well(own_work(words), environment);
    Sample sample{};
    if (std::sscanf(ended.output.c_str(), "%lf %lf %lf %lf %lf %lf %lf %lf %lf", &sample.operations,
                    &sample.wall_ns, &sample.cpu_ns, &sample.system_ns, &sample.created, &sample.reused,
                    &sample.idle, &sample.resident_kb, &sample.switches) != 9 ||
        sample.operations < 1)
        throw Failure("a measuring process says '" + ended.output + "'");
    if (expect_reuse != (sample.reused > 0))
        throw Failure(expect_reuse ? "the library has not reused a thread; see why with THRUM_CACHE_VERBOSE=1"
                                   : "a thread was reused where none should have been");
    return sample;
}

namespace {

// The kernel's share of this process's CPU time, 0 to 1, and its context switches. From getrusage, whose two times are
// counted in clock ticks and then scaled to the exact sum: good for measurements of many ticks, and no better than that.
struct Usage {
    double user, system, switches;
    Usage() {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        user = thrum::seconds_of(usage.ru_utime);
        system = thrum::seconds_of(usage.ru_stime);
        switches = static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw);
    }
    double kernel_share_until(const Usage &end) const {
        const double in_kernel = std::max(end.system - system, 0.0), outside = std::max(end.user - user, 0.0);
        return in_kernel + outside > 0 ? in_kernel / (in_kernel + outside) : 0;
    }
};

double resident_kb() {
    std::ifstream file("/proc/self/statm");
    double size = 0, pages = 0;
    if (!(file >> size >> pages))
        throw Failure("/proc/self/statm cannot be read");
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

} // namespace

void report_work(const std::function<std::uint64_t()> &work, double settle) {
    const Usage begin;
    const double wall = thrum::seconds_now(), cpu = thrum::seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    const std::uint64_t operations = work();
    const double wall_ns = (thrum::seconds_now() - wall) * 1e9;
    const double cpu_ns = (thrum::seconds_on(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e9;
    const Usage end;
    const auto *counters =
        static_cast<const struct thrum_cache_counters *>(dlsym(RTLD_DEFAULT, "thrum_cache_counters"));
    if (counters != nullptr && counters->version != THRUM_CACHE_COUNTERS_VERSION)
        throw Failure("the library's counters are of another version than this benchmark's");
    if (settle > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(settle));
    const auto count = [counters](std::uint64_t thrum_cache_counters::*counter) {
        return static_cast<unsigned long long>(counters != nullptr ? counters->*counter : 0);
    };
    std::printf("%llu %.0f %.0f %.0f %llu %llu %llu %.0f %.0f\n", static_cast<unsigned long long>(operations),
                wall_ns, cpu_ns, cpu_ns * begin.kernel_share_until(end),
                count(&thrum_cache_counters::created), count(&thrum_cache_counters::reused),
                count(&thrum_cache_counters::idle), resident_kb(), end.switches - begin.switches);
}

namespace {

void *nothing(void *) {
    return nullptr;
}

} // namespace

std::uint64_t create_and_join(unsigned at_once, const std::function<bool(std::uint64_t)> &enough) {
    std::vector<pthread_t> threads(at_once);
    std::uint64_t count = 0;
    do {
        for (pthread_t &thread : threads)
            if (const int error = pthread_create(&thread, nullptr, nothing, nullptr); error != 0)
                throw Failure(std::string("pthread_create: ") + std::strerror(error));
        for (const pthread_t thread : threads)
            if (const int error = pthread_join(thread, nullptr); error != 0)
                throw Failure(std::string("pthread_join: ") + std::strerror(error));
        count += at_once;
    } while (!enough(count));
    return count;
}

std::function<bool(std::uint64_t)> after_seconds(double seconds) {
    const double end = thrum::seconds_now() + seconds;
    return [end](std::uint64_t) { return thrum::seconds_now() >= end; };
}

} // namespace bench
