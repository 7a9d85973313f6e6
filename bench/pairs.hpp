// SPDX-License-Identifier: Apache-2.0
//
// Runs one of bench/programs without and with the library, in rounds of the two. Used by
// async_programs, never_slower and openmp. A program measures its own work and reports it in one line
// (programs/program.hpp); starting and ending the process, with however many idle threads, is in the times
// of the whole process.
#ifndef THRUM_BENCH_PAIRS_HPP
#define THRUM_BENCH_PAIRS_HPP

#include <string>
#include <vector>

#include "rounds.hpp"

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

// A program with its arguments, and what every run of it has to come to.
struct Subject {
    std::string label; // for people
    std::vector<std::string> command;
    std::string checksum;
    bool reuses; // with the library at least one thread
};

// The variants are kPlain and kCached. Another checksum is a failure, and so is a run with the library that reused no thread
// though it should, or one without the library that did.
Rounds<Measured> run_pairs(const Subject &subject, const std::string &library, double rounds);

} // namespace bench

#endif
