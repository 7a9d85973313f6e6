// SPDX-License-Identifier: Apache-2.0
//
// What the C++ programs of this folder share: measuring their own work, and the one line on standard output
// that says what came of it (read by ../pairs.cpp):
//
//     checksum threads deferred wall-ms user-ms system-ms created reused
//
// The last two are the cache's, 0 without it. The programs are otherwise what an author would write who has
// never heard of the cache: each is one file, takes its sizes as arguments, and links with the C++ library.
#ifndef THRUM_BENCH_PROGRAM_HPP
#define THRUM_BENCH_PROGRAM_HPP

#include <dlfcn.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "thrum/cache.h"

namespace program {

// The same numbers on every machine and in every run.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
    std::uint64_t next() { // xorshift*
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545F4914F6CDD1Du;
    }
    unsigned below(unsigned limit) { return static_cast<unsigned>((next() >> 33) % limit); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; } // [0, 1)

  private:
    std::uint64_t state_;
};

// FNV-1a of whatever is put in.
class Checksum {
  public:
    void add(const void *bytes, std::size_t size) {
        const auto *byte = static_cast<const unsigned char *>(bytes);
        for (std::size_t i = 0; i < size; i++)
            value_ = (value_ ^ byte[i]) * 0x100000001B3u;
    }
    template <class T>
    void add(const T &value) {
        add(&value, sizeof value);
    }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xCBF29CE484222325u;
};

// Begins when it is made.
class Stopwatch {
  public:
    Stopwatch() { getrusage(RUSAGE_SELF, &start_usage_); }

    void stop() {
        end_ = std::chrono::steady_clock::now();
        getrusage(RUSAGE_SELF, &end_usage_);
    }

    // Prints the line.
    void report(std::uint64_t checksum, std::uint64_t threads, std::uint64_t deferred) const {
        const auto *counters =
            static_cast<const struct thrum_cache_counters *>(dlsym(RTLD_DEFAULT, "thrum_cache_counters"));
        const bool known = counters != nullptr && counters->version == THRUM_CACHE_COUNTERS_VERSION;
        std::printf("%016llx %llu %llu %.3f %.3f %.3f %llu %llu\n", number(checksum), number(threads),
                    number(deferred), std::chrono::duration<double, std::milli>(end_ - start_).count(),
                    ms_between(start_usage_.ru_utime, end_usage_.ru_utime),
                    ms_between(start_usage_.ru_stime, end_usage_.ru_stime),
                    number(known ? counters->created : 0), number(known ? counters->reused : 0));
        std::fflush(stdout);
    }

  private:
    static unsigned long long number(std::uint64_t value) { return value; }
    static double ms_between(const timeval &from, const timeval &to) {
        return static_cast<double>(to.tv_sec - from.tv_sec) * 1e3 +
               static_cast<double>(to.tv_usec - from.tv_usec) / 1e3;
    }
    rusage start_usage_{}, end_usage_{};
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), end_ = start_;
};

// Argument number i as a positive number, `usual` if there is none.
inline unsigned long size_argument(int argc, char **argv, int i, unsigned long usual) {
    if (i >= argc)
        return usual;
    char *end = nullptr;
    const unsigned long value = std::strtoul(argv[i], &end, 10);
    if (*end == '\0' && value > 0)
        return value;
    std::fprintf(stderr, "%s: argument %d is a number above 0, not '%s'\n", argv[0], i, argv[i]);
    std::exit(2);
}

} // namespace program

#endif
