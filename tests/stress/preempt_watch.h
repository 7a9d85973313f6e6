// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: the watchdog, a kernel thread that ends a round when its time is over, and the program when nothing
// happens any more: then it says what each actor did last.
#ifndef TESTS_STRESS_PREEMPT_WATCH_H
#define TESTS_STRESS_PREEMPT_WATCH_H

#include <deque>

#include "preempt_stress.h"

void watch_start(); // before there is a runtime: it takes no signals

// `over` is set in so many seconds. The actors stay until watch_nothing.
void watch_round(const std::deque<Actor> &actors, double seconds);
void watch_nothing();

#endif
