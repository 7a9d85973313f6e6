// SPDX-License-Identifier: Apache-2.0
/* Of a relocation: does the dynamic linker put a function's address there, by which it is called (allocations.c)? */
#ifndef THRUM_STAT_ARCH_LINK_H
#define THRUM_STAT_ARCH_LINK_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

static inline bool is_word_of_function(uint64_t type) {
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

#endif
