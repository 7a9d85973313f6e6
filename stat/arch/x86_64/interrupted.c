// SPDX-License-Identifier: Apache-2.0
/* See interrupted.h. This architecture keeps in its registers what is needed: all arguments, and in the code before the call
 * its number.
 *
 * The number is known where the code loads it as a constant, as libc's functions do. It is not where the call is made by
 * syscall(), or by one function for all calls that are cancellation points, as in glibc from 2.41 on: those stay broken
 * off. */
#include "interrupted.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "stat.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* newer than the oldest headers that thrum is built with */
#endif

enum {
    CALL = 2,      /* bytes of `syscall` */
    LOAD = 5,      /* and of `mov $NUMBER, %eax` */
    CLEAR = 2,     /* or `xor %eax, %eax` */
    FURTHEST = 40, /* from its beginning to the call */
};

/* What SA_RESTART does not make the kernel restart: signal(7), "Interruption of system calls", and io_uring. These wait
 * for events, for time, or for signals, of which ours is none to the program; */
static bool never_restarts(uint32_t number) {
    switch (number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv: return true;
    default: return false;
    }
}

/* these where a socket or the call has a limit of time. With EINTR nothing has been sent or received, and a
 * connection attempt is still under way. */
static bool restarts_without_limit(uint32_t number) {
    switch (number) {
    case SYS_futex:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice: return true;
    default: return false;
    }
}

/* --- the number in the code --------------------------------------------------------------------------------- */

/* The length of an instruction that may stand between the load of the number and the call, as it loads an argument from a
 * register, from the stack or as a constant; 0: it is none, or changes eax. */
static unsigned length_of_load(const unsigned char *at) {
    enum { MOV_TO = 0x89, MOV_FROM = 0x8b, XOR_TO = 0x31, XOR_FROM = 0x33, CONSTANT = 0xb8, STACK = 0x24 };
    const bool has_prefix = (at[0] & 0xf0) == 0x40;
    const unsigned char prefix = has_prefix ? at[0] : 0, *code = at + has_prefix;
    const unsigned mode = code[1] >> 6, reg = (code[1] >> 3 & 7) | (prefix & 4) << 1, rm = code[1] & 7;
    const bool is_constant = code[0] >= CONSTANT && code[0] < CONSTANT + 8;
    if (is_constant) /* of 32 bits, and for r8 or another one, but eax */
        return (prefix & 8) == 0 && (code[0] != CONSTANT || (prefix & 1) != 0) ? has_prefix + LOAD : 0;
    if ((code[0] == MOV_TO || code[0] == XOR_TO) && mode == 3)
        return (rm | (prefix & 1) << 3) != 0 ? has_prefix + 2 : 0;
    if ((code[0] != MOV_FROM && code[0] != XOR_FROM) || reg == 0)
        return 0;
    if (mode == 3)
        return has_prefix + 2;
    const bool is_on_stack = rm == 4 && code[2] == STACK;
    return is_on_stack && mode < 2 ? has_prefix + 3 + mode : 0;
}

static bool leads_to(const unsigned char *at, const unsigned char *call) {
    for (unsigned length; at < call; at += length)
        if ((length = length_of_load(at)) == 0)
            return false;
    return at == call;
}

/* The byte before a load must not make it one of r8. */
static bool find_number(const unsigned char *call, uint32_t *number) {
    for (unsigned back = CLEAR; back <= FURTHEST; back++) {
        const unsigned char *at = call - back;
        const bool is_load = back >= LOAD && at[0] == 0xb8 && (at[-1] & 0xf1) != 0x41;
        const bool is_clear = (at[0] == 0x31 || at[0] == 0x33) && at[1] == 0xc0 && (at[-1] & 0xf0) != 0x40;
        if ((!is_load && !is_clear) || !leads_to(at + (is_load ? LOAD : CLEAR), call))
            continue;
        *number = 0;
        if (is_load)
            memcpy(number, at + 1, sizeof *number);
        return true;
    }
    return false;
}

/* `syscall` leaves the address behind it in rcx. */
void interrupted_again_sigsafe(ucontext_t *context) {
    greg_t *r = context->uc_mcontext.gregs;
    if (r[REG_RAX] != -EINTR || r[REG_RCX] != r[REG_RIP])
        return;
    const unsigned char *call = (const unsigned char *)(uintptr_t)r[REG_RIP] - CALL;
    uint32_t number;
    if (call[0] != 0x0f || call[1] != 0x05)
        return;
    if (!memory_is_readable_sigsafe((uintptr_t)call - FURTHEST - 1, FURTHEST + 1) ||
        !find_number(call, &number))
        return; /* code may begin there */
    if (!never_restarts(number) && !restarts_without_limit(number))
        return;
    r[REG_RAX] = (greg_t)number;
    r[REG_RIP] -= CALL;
}
