// SPDX-License-Identifier: Apache-2.0
/* What a thread that was switched out has left on its stack. */
#include <string.h>

#include "arch_dwarf.h"
#include "inspect/memory.h"

bool inspect_registers(const struct inspect_source *source, const struct inspect_thread *thread,
                       uint64_t registers[INSPECT_REGISTERS], uint64_t *known) {
    struct arch_frame frame;
    if (!memory_get(source, thread->stack_pointer, &frame, sizeof frame))
        return false;
    memset(registers, 0, INSPECT_REGISTERS * sizeof *registers);
    *known = 0;
    arch_dwarf_registers(&frame, thread->stack_pointer, registers, known, &registers[INSPECT_REGISTERS - 1]);
    return true;
}

unsigned inspect_stack_register(void) {
    return ARCH_DWARF_SP;
}
