// SPDX-License-Identifier: Apache-2.0
/* The C half of the Go program (main.go); its functions are in bridge.c. */
#ifndef BRIDGE_H
#define BRIDGE_H

int plus_one(int number);

/* Starts ten threads that call goAdd() and end; the sum of what it returned, -1 if a thread could not be made. */
int threads_that_call_go(int round);

/* Go ends the process by a system call of its own, so that no summary is written. If the program runs under thrum, this
 * writes the summary's first line from the counters. */
void report_cache(void);

#endif
