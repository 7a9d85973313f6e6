// SPDX-License-Identifier: Apache-2.0
/* Waiting for a thread that is busy for a few instructions, unless it has lost its CPU. */
#ifndef THRUM_OS_BACKOFF_H
#define THRUM_OS_BACKOFF_H

/* The `tries`-th wait of the caller: ever longer. */
void backoff(unsigned tries);

#endif
