// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: a line on a fault, before the process ends of it: in which code, and what the actor was in. So a
// reader, or the check that malloc breaks as it should (preempt_bites.h), can tell malloc's fault from the library's.
#ifndef TESTS_STRESS_PREEMPT_FAULTS_H
#define TESTS_STRESS_PREEMPT_FAULTS_H

// From here on. Before there is a runtime, which passes on what is no overflow of a stack.
void faults_are_told();

#endif
