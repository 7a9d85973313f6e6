// SPDX-License-Identifier: Apache-2.0
/* What the provider (provider.h), a kernel thread that sleeps on a futex, is asked for. By any thread, signal
 * handlers too. */
#ifndef THRUM_PREEMPT_REQUESTS_H
#define THRUM_PREEMPT_REQUESTS_H

#include <stdint.h>

#include "base/inside.h"

enum { NOT_ASKED, ASK_TO_LOOK, ASK_TO_END };

extern struct requests {
    uint32_t asked;  /* futex: what it must do; changes pair with the provider's exchange */
    uint32_t wanted; /* a unit could not be preempted, since nothing is armed; pairs with its exchange */
    uint32_t relief; /* one more relief worker is wanted; pairs likewise */
} requests;

/* The provider must check whether there are enough; if so, it interrupts starving workers anew. */
SIGSAFE void provider_ask(void);
/* ... and must arm preemption first (preempt.h): a unit could not be preempted. */
SIGSAFE void provider_ask_to_arm(void);
/* ... or to add one more relief worker. */
void provider_ask_for_relief(void);

#endif
