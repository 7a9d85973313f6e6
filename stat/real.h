// SPDX-License-Identifier: Apache-2.0
/* REAL(name): libc's function of that name, or that of the next library that was preloaded. Looked up at its first
 * use; two threads may do that at once, and find the same. */
#ifndef THRUM_STAT_REAL_H
#define THRUM_STAT_REAL_H

#include <dlfcn.h>
#include <stddef.h>

#include "base/atomic.h"

#define REAL(name)                                                                                           \
    ({                                                                                                       \
        static __typeof__(&name) found_;                                                                     \
        __typeof__(&name) function_ = load_relaxed(&found_);                                                 \
        if (__builtin_expect(function_ == NULL, 0)) {                                                        \
            function_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                          \
            store_relaxed(&found_, function_);                                                               \
        }                                                                                                    \
        function_;                                                                                           \
    })

#endif
