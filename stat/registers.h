// SPDX-License-Identifier: Apache-2.0
/* What a signal handler finds in a ucontext. */
#ifndef THRUM_STAT_REGISTERS_H
#define THRUM_STAT_REGISTERS_H

#include <linux/audit.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct registers {
    uint64_t pc, sp, bp;
};

#include "arch_ucontext.h" // IWYU pragma: export

#endif
