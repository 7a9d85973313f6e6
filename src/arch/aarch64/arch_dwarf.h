// SPDX-License-Identifier: Apache-2.0
/* What an unwinder needs to begin at a saved frame: registers by their DWARF numbers (DWARF for the Arm 64-bit
 * Architecture, 4.1). */
#ifndef THRUM_ARCH_DWARF_H
#define THRUM_ARCH_DWARF_H

#include "arch_context.h"

enum { ARCH_DWARF_SP = 31 };

/* `at`: where the frame lies. Sets registers[] and a bit of *known for each; `*pc` is where it resumes. */
static inline void arch_dwarf_registers(const struct arch_frame *frame, uint64_t at, uint64_t *registers,
                                        uint64_t *known, uint64_t *pc) {
    const uint64_t saved[] = {frame->x19, frame->x20, frame->x21, frame->x22, frame->x23, frame->x24,
                              frame->x25, frame->x26, frame->x27, frame->x28, frame->x29};
    for (unsigned i = 0; i < sizeof saved / sizeof *saved; i++)
        registers[19 + i] = saved[i];
    registers[30] = *pc = (uint64_t)frame->resume;
    registers[ARCH_DWARF_SP] = at + sizeof *frame;
    *known |= ((UINT64_C(1) << 13) - 1) << 19;
}

#endif
