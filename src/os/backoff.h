// SPDX-License-Identifier: Apache-2.0
/* Waiting for somebody who is busy for a few instructions, unless he has lost his CPU. */
#ifndef THRUM_OS_BACKOFF_H
#define THRUM_OS_BACKOFF_H

/* The `tries`-th wait of the caller: ever longer. */
void backoff(unsigned tries);

#endif
