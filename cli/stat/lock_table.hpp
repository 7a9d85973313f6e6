// SPDX-License-Identifier: Apache-2.0
//
// The locks of runtimes and libraries by the names of their functions, as data/locks.conf lists them and users extend
// that (its head describes the format). Used by unwind.cpp (frames that are never the place to blame), waits.cpp (what a
// thread waits for) and facts.cpp (whose lock it is).
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat {

struct ListedLock {
    enum Kind { kLock, kReadLock, kInterpreter, kAllocator, kCount, kIdle, kRuntime };
    Kind kind = kLock;
    std::string name, fix;
    std::vector<std::string> at, through, without, modules; // patterns
    bool parks =
        false; // a waiter sleeps at a word of its own: what address that has says nothing about the lock

    bool is_lock() const { return kind != kCount && kind != kIdle && kind != kRuntime; }
};

class LockTable {
  public:
    // Adds the sections of a file, which come before those that are there. Throws Failure (usage) with `name` and the line
    // where it is no such file.
    void add(const std::string &text, const std::string &name);

    // What the program's innermost call is about; nullptr where no section tells. `at`: the frame that told.
    const ListedLock *find(const std::vector<Frame> &stack, const Frame **at = nullptr) const;

    // Is it a function of a runtime, library or lock, whatever file it is in?
    bool is_runtime(const Frame &frame) const;

  private:
    bool has(const ListedLock &entry, const Frame &frame) const;

    std::deque<ListedLock> entries_; // latest first
};

// Does a pattern of the file match a name?
bool matches(const std::string &pattern, const std::string &name);

// The table in use: that of share/thrum or of this build, the user's file, and what --locks has added.
LockTable &lock_table();

// The text that this build has, in the case that no file is installed beside it.
extern const char *const kBuiltInLocks;

} // namespace thrum::stat
