// SPDX-License-Identifier: Apache-2.0
/* Functions under version names of libc's, for compat.c and arch/<cpu>/compat.c. */
#ifndef THRUM_CACHE_COMPAT_H
#define THRUM_CACHE_COMPAT_H

#include "arch_libc.h"
#include "real.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* nothing here is called by its name */

/* The definition `function` under a version that is not the default one. */
#define VERSION(function, name, version) __asm__(".symver " #function "," #name "@" version)

/* The next definition of that version, looked up when it is first wanted. dlvsym takes the loader's lock, so not
 * pthread_kill's, which a signal handler may call: that is looked up at the start. */
#define NEXT_VERSION(type, name, version)                                                                    \
    ({                                                                                                       \
        static type next_;                                                                                   \
        if (load_relaxed(&next_) == NULL)                                                                    \
            store_relaxed(&next_, (type)dlvsym(RTLD_NEXT, #name, version));                                  \
        load_relaxed(&next_);                                                                                \
    })

#endif
