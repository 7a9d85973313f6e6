// SPDX-License-Identifier: Apache-2.0
/* How a function that may have switched stacks returns: as any. On x86-64 it is more than that. */
#ifndef THRUM_ARCH_RETURN_H
#define THRUM_ARCH_RETURN_H

#include <stdbool.h>
#include <stdint.h>

#define ARCH_CALLED_BY_NAME

/* The result of `inner`. */
static inline uint64_t arch_return(int result, bool jumps) {
    (void)jumps;
    return (uint64_t)(uint32_t)result;
}

/* Defines the function type name parameters, which is inner(first, second, where it was called from); the second, of void. */
#define ARCH_RETURN_BY_PLACE(type, name, parameters, inner, first, second)                                   \
    type name parameters {                                                                                   \
        return (int)(uint32_t)inner(first, second, __builtin_return_address(0));                             \
    }
#define ARCH_RETURN_VOID_BY_PLACE(name, parameters, inner, first, second)                                    \
    void name parameters {                                                                                   \
        (void)inner(first, second, __builtin_return_address(0));                                             \
    }

#endif
