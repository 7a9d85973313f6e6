// SPDX-License-Identifier: Apache-2.0
/* Whether the program makes system calls in its own code, without libc: PROBE_EXACT asks that of a program that stands at
 * a fixed address.
 *
 * Such a program's own code is not trapped (filter.c). One that blocks all signals there, as Go's runtime does, blocks
 * SIGSYS for good, and the next call that libc makes for that thread would end it. */
#include <link.h>
#include <string.h>

#include "stat.h"

#if defined(__x86_64__)

enum { STEP = 1, LENGTH = 2, BEFORE = 8 };

enum { MOV_TO = 0x89, MOV_FROM = 0x8b, LEA = 0x8d, XOR = 0x31, CONSTANT = 0xb8, ON_STACK = 0x24 };

static bool is_load(unsigned char code) {
    return code == MOV_FROM || code == LEA;
}

/* With a byte for where it is, from a register or the stack pointer. */
static bool is_load_nearby(const unsigned char *end) {
    const bool is_near = (end[-2] & 0xc0) == 0x40 && (end[-2] & 7) != 4;
    const bool is_on_stack = (end[-3] & 0xc7) == 0x44 && end[-2] == ON_STACK;
    return (is_load(end[-3]) && is_near) || (is_load(end[-4]) && is_on_stack);
}

/* With four: of the program's data or of a large frame, which are not far away. */
static bool is_load_far(const unsigned char *end) {
    const bool is_small = end[-1] == 0 || end[-1] == 0xff;
    const bool is_wide = (end[-5] & 0xc7) == 0x05 || ((end[-5] & 0xc0) == 0x80 && (end[-5] & 7) != 4);
    const bool is_on_stack = (end[-6] & 0xc7) == 0x84 && end[-5] == ON_STACK;
    return is_small && ((is_load(end[-6]) && is_wide) || (is_load(end[-7]) && is_on_stack));
}

static bool is_constant(const unsigned char *end) {
    const bool has_64_bits = (end[-6] & 0xf8) == 0x48; /* then it ends elsewhere */
    return end[-5] >= CONSTANT && end[-5] < CONSTANT + 8 && end[-2] == 0 && end[-1] == 0 && !has_64_bits;
}

static bool is_between_registers(const unsigned char *end) {
    const bool has_prefix = (end[-3] & 0xf0) == 0x40, is_move = end[-2] == MOV_TO || end[-2] == MOV_FROM;
    return end[-1] >= 0xc0 && (end[-2] == XOR || (is_move && has_prefix));
}

/* `syscall` may as well be part of another instruction, of a displacement as a rule. It is taken for a call where the
 * instruction before it loads something, as one does that puts an argument in its place. */
static bool is_call(const unsigned char *at) {
    return at[0] == 0x0f && at[1] == 0x05 &&
           (is_between_registers(at) || is_constant(at) || is_load_nearby(at) || is_load_far(at));
}

#elif defined(__aarch64__)

enum { STEP = 4, LENGTH = 4, BEFORE = 0 };

static bool is_call(const unsigned char *at) {
    const unsigned char svc_0[] = {0x01, 0x00, 0x00, 0xd4};
    return memcmp(at, svc_0, sizeof svc_0) == 0;
}

#endif

static bool has_calls(const unsigned char *code, uint64_t size) {
    for (uint64_t at = BEFORE; at + LENGTH <= size; at += STEP)
        if (is_call(code + at))
            return true;
    return false;
}

static int look_at(struct dl_phdr_info *object, size_t size, void *argument) {
    bool *found = argument;
    (void)size;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const unsigned wanted = PF_R | PF_X;
        if (segment->p_type == PT_LOAD && (segment->p_flags & wanted) == wanted)
            *found =
                *found || has_calls((const unsigned char *)(object->dlpi_addr + segment->p_vaddr), // NOLINT
                                    segment->p_filesz);
    }
    return 1; /* the program is the first, and the only one that is asked about */
}

bool calls_in_program(void) {
    bool found = false;
    dl_iterate_phdr(look_at, &found);
    return found;
}
