// SPDX-License-Identifier: Apache-2.0
/* What an unwinder needs to begin at a saved frame: registers by their DWARF numbers (System V ABI for AMD64, 3.6). */
#ifndef THRUM_ARCH_DWARF_H
#define THRUM_ARCH_DWARF_H

#include "arch_context.h"

enum { ARCH_DWARF_SP = 7 };

/* `at`: where the frame lies. Sets registers[] and a bit of *known for each; `*pc` is where it resumes. */
static inline void arch_dwarf_registers(const struct arch_frame *frame, uint64_t at, uint64_t *registers,
                                        uint64_t *known, uint64_t *pc) {
    static const uint8_t numbers[] = {3, 6, 7, 12, 13, 14, 15, 16};
    registers[3] = frame->rbx;
    registers[6] = frame->rbp;
    registers[ARCH_DWARF_SP] = at + sizeof *frame;
    registers[12] = frame->r12;
    registers[13] = frame->r13;
    registers[14] = frame->r14;
    registers[15] = frame->r15;
    registers[16] = *pc = (uint64_t)frame->resume;
    for (unsigned i = 0; i < sizeof numbers; i++)
        *known |= UINT64_C(1) << numbers[i];
}

#endif
