// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: do the checks bite? In processes of their own: malloc under raw signal-yield, which has to go wrong, where
// the same under LEND does not; `turns` with ticks that are kept from the library, which has to say so; and a stack that has
// no room for a signal's frame, which has to end with a line that says so.
#ifndef TESTS_STRESS_PREEMPT_BITES_H
#define TESTS_STRESS_PREEMPT_BITES_H

#include "preempt_options.h"

int bites_run(const CommandLine &line); // the exit status

// What the process of the last one does: it does not return.
[[noreturn]] void overflow_run();

#endif
