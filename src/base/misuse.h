// SPDX-License-Identifier: Apache-2.0
/* Misuse of an object: unlocking what another thread owns, destroying what is in use. Debug builds print one line and
 * abort; release builds return the error where they can tell. misuse_end() is for misuse after which no caller could
 * continue, in any build. */
#ifndef THRUM_BASE_MISUSE_H
#define THRUM_BASE_MISUSE_H

#include <stdlib.h>

#include "base/text.h"

_Noreturn static inline void misuse_end(const char *what) {
    text_line("misuse: ", what, NULL);
    abort();
}

/* A public function got NULL instead of an object or a function. It returns EINVAL; if it returns no error, it ends
 * the process by this, in any build. */
#define is_null(pointer) __builtin_expect((pointer) == NULL, 0)
__attribute__((cold)) _Noreturn void misuse_null(const char *function);

#ifdef THRUM_DEBUG
static inline int misuse_report(const char *what) {
    misuse_end(what);
}
#define misuse(error, what) misuse_report(what)
#define MISUSE_IS_WATCHED   1
#else
static inline int misuse_answer(int error) {
    return error;
}
#define misuse(error, what) misuse_answer(error)
#define MISUSE_IS_WATCHED   0
#endif

#endif
