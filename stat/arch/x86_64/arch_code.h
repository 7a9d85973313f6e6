// SPDX-License-Identifier: Apache-2.0
/* Whether code has a system call here (calls.c): STEP between places to look at, LENGTH and BEFORE bytes are read there. */
#ifndef THRUM_STAT_ARCH_CODE_H
#define THRUM_STAT_ARCH_CODE_H

#include <stdbool.h>

enum { STEP = 1, LENGTH = 2, BEFORE = 8 };

enum { MOV_TO = 0x89, MOV_FROM = 0x8b, LEA = 0x8d, XOR = 0x31, CONSTANT = 0xb8, ON_STACK = 0x24 };

static inline bool is_load(unsigned char code) {
    return code == MOV_FROM || code == LEA;
}

/* With a byte for where it is, from a register or the stack pointer. */
static inline bool is_load_nearby(const unsigned char *end) {
    const bool is_near = (end[-2] & 0xc0) == 0x40 && (end[-2] & 7) != 4;
    const bool is_on_stack = (end[-3] & 0xc7) == 0x44 && end[-2] == ON_STACK;
    return (is_load(end[-3]) && is_near) || (is_load(end[-4]) && is_on_stack);
}

/* With four: of the program's data or of a large frame, which are not far away. */
static inline bool is_load_far(const unsigned char *end) {
    const bool is_small = end[-1] == 0 || end[-1] == 0xff;
    const bool is_wide = (end[-5] & 0xc7) == 0x05 || ((end[-5] & 0xc0) == 0x80 && (end[-5] & 7) != 4);
    const bool is_on_stack = (end[-6] & 0xc7) == 0x84 && end[-5] == ON_STACK;
    return is_small && ((is_load(end[-6]) && is_wide) || (is_load(end[-7]) && is_on_stack));
}

static inline bool is_constant(const unsigned char *end) {
    const bool has_64_bits = (end[-6] & 0xf8) == 0x48; /* then it ends elsewhere */
    return end[-5] >= CONSTANT && end[-5] < CONSTANT + 8 && end[-2] == 0 && end[-1] == 0 && !has_64_bits;
}

static inline bool is_between_registers(const unsigned char *end) {
    const bool has_prefix = (end[-3] & 0xf0) == 0x40, is_move = end[-2] == MOV_TO || end[-2] == MOV_FROM;
    return end[-1] >= 0xc0 && (end[-2] == XOR || (is_move && has_prefix));
}

/* `syscall` may as well be part of another instruction, of a displacement as a rule. It is taken for a call where the
 * instruction before it loads something, as one does that puts an argument in its place. */
static inline bool is_call(const unsigned char *at) {
    return at[0] == 0x0f && at[1] == 0x05 &&
           (is_between_registers(at) || is_constant(at) || is_load_nearby(at) || is_load_far(at));
}

#endif
