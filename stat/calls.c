// SPDX-License-Identifier: Apache-2.0
/* Whether the program makes system calls in its own code, without libc: PROBE_EXACT asks that of a program that stands at
 * a fixed address.
 *
 * Such a program's own code is not trapped (filter.c). One that blocks all signals there, as Go's runtime does, blocks
 * SIGSYS for good, and the next call that libc makes for that thread would end it. */
#include <link.h>
#include <string.h>

#include "arch_code.h"
#include "stat.h"

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
