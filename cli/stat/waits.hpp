// SPDX-License-Identifier: Apache-2.0
//
// What a thread that sleeps is waiting for: by the system call that it sleeps in, and by the names of the functions that
// made it. Used by analyse.cpp, counted.cpp, sites.cpp and facts.cpp.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stat/layers.hpp"
#include "stat/report.hpp"

namespace thrum::stat {

// By names alone: a lock, a thread's end, or work; nothing where none tells.
std::optional<Doing> doing_by_names(const std::vector<Frame> &stack);

// `threads`: those of the program, for a futex that holds the number of one is what tells of its end.
Doing doing_of(const ProcSample &sample, const std::vector<Frame> &stack, const std::set<pid_t> &threads);

// It reads what others send, by a socket or a pipe, and sleeps until they do. A reader of a file is in an
// uninterruptible sleep, which the device ends.
bool is_for_message(const ProcSample &sample);

// In a call that the C library makes to wait for a mutex, or another lock of its own.
bool is_at_mutex(const ProcSample &sample);

// In a call that takes a mutex of the C library's; on a condition, where musl's word looks like that of a mutex.
bool is_in_mutex_call(const std::vector<Frame> &stack);
bool is_in_condition_call(const std::vector<Frame> &stack);

// Of libc's own functions.
bool is_of_libc(const Frame &frame);

// The interpreter's, or a function of a Python program's.
bool is_python(const Frame &frame);

// A wait for the lock that only one of Python's threads can have. Locks of modules are others, wherever they are called from.
bool is_python_lock(const std::vector<Frame> &stack, const Lock &lock);

// Without what the C library puts around: the way into the kernel, down to the function that was called by the program or
// stands for something (random, syscall, pthread_mutex_lock), and what threads begin in.
std::vector<Frame> without_surroundings(std::vector<Frame> stack);

// Its first argument is a descriptor.
bool takes_descriptor(long number);
// Its first arguments are descriptors with what is waited for, and their number.
bool polls(long number);
// Several threads may wait in it on one descriptor for what comes to one of them.
bool waits_for_peers(long number);

// "futex"; "system call 123" where it is none of those that programs with threads make a lot of.
std::string system_call_name(long number);

} // namespace thrum::stat
