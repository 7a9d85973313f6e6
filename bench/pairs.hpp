// SPDX-License-Identifier: Apache-2.0
//
// Runs one of bench/programs alternately without and with the library, and compares pair by pair. Used by
// async_programs, never_slower and openmp. A program measures its own work and reports it in one line
// (programs/program.hpp); starting and ending the process, with however many idle threads, is in the times
// of the whole process.
#ifndef THRUM_BENCH_PAIRS_HPP
#define THRUM_BENCH_PAIRS_HPP

#include <functional>
#include <string>
#include <vector>

#include "common.hpp"

namespace bench {

// One run of a program.
struct Measured {
    std::string checksum;
    double threads, deferred;               // asked for; run without a thread because none was available
    double wall_ms, user_ms, system_ms;     // of the work
    double created, reused;                 // by the cache, 0 without it
    double process_wall_ms, process_cpu_ms; // from start to end, everything included

    double cpu_ms() const { return user_ms + system_ms; }
};

// "" if the program was not built: the caller says so in a note.
std::string program_path(const std::string &name);

Measured run_program(const std::vector<std::string> &command, const Environment &environment);

struct Pair {
    Measured plain, cached;
};

// A program with its arguments, and what every run of it has to come to.
struct Subject {
    std::string label; // for people
    std::vector<std::string> command;
    std::string checksum;
    bool reuses; // with the library at least one thread
};

// Each pair begins with the other one than the pair before. Another checksum is a failure, and so is a run
// with the library that reused no thread though it should, or one without the library that did.
std::vector<Pair> run_pairs(const Subject &subject, const std::string &library, unsigned rounds);

// What `value` says of each pair.
Estimate over(const std::vector<Pair> &pairs, const std::function<double(const Pair &)> &value);

// Of either half of the pairs, and its ratio within each pair: cached / plain, so below 1 the cache is faster.
Estimate of_plain(const std::vector<Pair> &pairs, double (*value)(const Measured &));
Estimate of_cached(const std::vector<Pair> &pairs, double (*value)(const Measured &));
Estimate ratio(const std::vector<Pair> &pairs, double (*value)(const Measured &));

inline double wall_ms(const Measured &run) {
    return run.wall_ms;
}
inline double cpu_ms(const Measured &run) {
    return run.cpu_ms();
}
inline double process_wall_ms(const Measured &run) {
    return run.process_wall_ms;
}
inline double process_cpu_ms(const Measured &run) {
    return run.process_cpu_ms;
}
inline double threads(const Measured &run) {
    return run.threads;
}

} // namespace bench

#endif
