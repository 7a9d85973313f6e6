// SPDX-License-Identifier: Apache-2.0
/* See alternate.h. */
#include "os/alternate.h"

#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#include "os/memory.h"

enum { STACK = 64 * 1024 };

bool alternate_stack_begin(char **stack) {
    stack_t now;
    *stack = NULL;
    if (sigaltstack(NULL, &now) == 0 && !(now.ss_flags & SS_DISABLE))
        return true;
    *stack = memory_map(STACK, 0);
    stack_t ours = {.ss_sp = *stack, .ss_size = STACK};
    return *stack != NULL && sigaltstack(&ours, NULL) == 0;
}

void alternate_stack_end(char *stack) {
    stack_t none = {.ss_flags = SS_DISABLE};
    if (stack == NULL)
        return;
    sigaltstack(&none, NULL);
    munmap(stack, STACK);
}
