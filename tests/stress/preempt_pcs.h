// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: where ticks hit. Between pcs_begin and pcs_end a handler of ours stands before the one that is
// installed, notes the program counter that was interrupted, and calls that one.
//
// Most of libc's functions have no names in a stripped libc.so. So a program counter in libc's text counts for what the
// actor says it is in (its Phase), and whose actor's stack it is tells the stack pointer. Where an actor is deep in its stack
// or has values in all of the widest registers, any program counter counts. At how many places they are is counted besides
// (preempt_places.h).
#ifndef TESTS_STRESS_PREEMPT_PCS_H
#define TESTS_STRESS_PREEMPT_PCS_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "preempt_stress.h"

// The places to hit, and how often each was since the program's start.
enum Hit : unsigned {
    kHitMalloc,
    kHitFree,
    kHitStdio,
    kHitMutex, // of pthreads, of whatever kind
    kHitLock,  // rwlocks and spinlocks
    kHitUnwinder,
    kHitDeep,
    kHitRegisters,
    kHits
};
using HitCounts = std::array<std::uint64_t, kHits>;
const char *name_of(Hit hit);
HitCounts pcs_counts();
// Whether a thread can be hit there in that mode: kernel threads do not go deep, and not all CPUs' registers are
// known.
bool can_be_hit(Hit hit, Mode mode);

// All ticks that came.
std::uint64_t pcs_ticks();

// Ticks that were sent from within the handler, and those of them that came.
struct Nested {
    std::uint64_t sent = 0, came = 0;
};
Nested pcs_nested();

// For a signal's handler: whose code it has interrupted, by name, and on whose stack (nullptr: no actor's).
struct Interrupted {
    const char *module;
    const Actor *actor;
};
Interrupted pcs_interrupted(const void *context);

// While no thread is tortured. `nested`: every now and then another tick is sent from the handler to its own thread:
// it comes when the handler unblocks signals for the next unit, or ends.
void pcs_begin(int signal, bool nested);
void pcs_end();

// An actor says so when it begins, of the stack that it is on: ticks there are its own, and its phase counts for them. From:
// the actor.
void pcs_here(Actor &actor);

#endif
