// SPDX-License-Identifier: Apache-2.0
/* See interrupted.h. Only x86-64 keeps in its registers what is needed: all arguments, and in the code before the call
 * its number. On aarch64 the answer has taken the first argument's place, and nothing is done. */
#include "interrupted.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

enum { CALL = 2, LOAD = 5 }; /* bytes of `syscall`, and of `mov $NUMBER, %eax` before it */

static bool may_be_made_again(uint32_t number) {
    switch (number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv: return true;
    default: return false;
    }
}

/* `syscall` leaves the address behind it in rcx. */
void interrupted_again_sigsafe(ucontext_t *context) {
    greg_t *r = context->uc_mcontext.gregs;
    if (r[REG_RAX] != -EINTR || r[REG_RCX] != r[REG_RIP])
        return;
    const unsigned char *behind = (const unsigned char *)(uintptr_t)r[REG_RIP];
    uint32_t number;
    if (behind[-CALL] != 0x0f || behind[1 - CALL] != 0x05 || behind[-CALL - LOAD] != 0xb8)
        return;
    memcpy(&number, behind - CALL - LOAD + 1, sizeof number);
    if (!may_be_made_again(number))
        return;
    r[REG_RAX] = (greg_t)number;
    r[REG_RIP] -= CALL;
}

#else

void interrupted_again_sigsafe(ucontext_t *context) {
    (void)context;
}

#endif
