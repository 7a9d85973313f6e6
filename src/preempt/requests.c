// SPDX-License-Identifier: Apache-2.0
/* See requests.h. */
#include "preempt/requests.h"

#include "base/atomic.h"
#include "os/futex.h"

struct requests requests;

/* The provider first clears the request, and then looks which worker lacks what: either that worker sees it, or this
 * asks again. */
void provider_ask(void) {
    uint32_t idle = NOT_ASKED;
    fence_seq_cst(); /* pairs with provide's in provider.c */
    if (load_relaxed(&requests.asked) == NOT_ASKED && cas_acq_rel(&requests.asked, &idle, ASK_TO_LOOK))
        futex_wake(&requests.asked, 1);
}

void provider_ask_to_arm(void) {
    store_release(&requests.wanted, 1);
    provider_ask();
}

void provider_ask_for_relief(void) {
    store_release(&requests.relief, 1);
    provider_ask();
}
