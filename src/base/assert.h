// SPDX-License-Identifier: Apache-2.0
/* Assertions of internal invariants. In debug builds a broken one prints its place and aborts; in release builds the
 * condition is not evaluated. A user's mistakes are not asserted but answered by an errno. */
#ifndef THRUM_BASE_ASSERT_H
#define THRUM_BASE_ASSERT_H

#ifdef THRUM_DEBUG
#include <stdlib.h>

#include "base/text.h"
#define THRUM_STRING_(x) #x
#define THRUM_STRING(x)  THRUM_STRING_(x)
#define thrum_assert(condition)                                                                              \
    do {                                                                                                     \
        if (__builtin_expect(!(condition), 0)) {                                                             \
            text_line("assertion broken: ", #condition, " at " __FILE__ ":" THRUM_STRING(__LINE__));         \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)
#else
#define thrum_assert(condition) ((void)sizeof(!(condition)))
#endif

#endif
