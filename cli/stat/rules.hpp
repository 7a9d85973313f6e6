// SPDX-License-Identifier: Apache-2.0
//
// From the numbers of a report to its verdict and its findings: the one table of rules, each with what it takes, what it
// shows as evidence, what it advises and how sure it is. Nothing but the report is looked at, and of its times only where
// the machine was free; shares and counts hold on a busy machine as well. docs/guide/stat.md shows the table to the user.
#pragma once

#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

// Fills outcome, verdict and findings from all the rest, and adds warnings of libraries that have no names to blame.
// `failure`: how the program failed, where it did.
void conclude(Report &report, const std::string &failure);

// Are threads made and ended all the time, as far as they were seen? Places of theirs are worth a closer look.
bool is_churning(const Report &report);

// Do threads share enough of a cache line that it explains a loss, in memory that has no name?
bool is_sharing_nameless(const Report &report);

// Those names, from a run in which allocations were noted: of what its threads share at the same places.
void name_shared(Report &report, const Report &noted);

// The names of all rules, as Finding::rule has them, in the order in which they are tried.
std::vector<std::string> rule_names();

// --- hidden_locks.cpp: what locks without being asked to ---

// Functions of libraries that take a lock which their caller does not see, or write to what all threads share, and the way
// around each.
struct HiddenLock {
    const char *functions; // names in stacks, separated by blanks; without leading underscores
    const char *name;      // what the CAUSE calls it; empty: the function's own name, with ()
    const char *fix;       // of allocators: allocator_fix()
    bool is_allocator;
    bool is_locked = true; // false: they write to one state for all threads without taking a lock
};

// The entry for a frame of a library, or nullptr.
const HiddenLock *find_hidden_lock(const Frame &frame);

// What to do about the allocator in a library: not to use that one.
std::string allocator_fix(const std::string &module);

// Without what compilers put behind the name of a part of a function: "f._omp_fn.0" is "f".
std::string source_name(const std::string &function);
// Of a library's function besides: "__GI___random" is "random".
std::string plain_name(const std::string &function);
// As it stands in a program's source: "printf" for "__printf_chk", "puts" for "_IO_puts".
std::string public_name(const std::string &function);

} // namespace thrum::stat
