// SPDX-License-Identifier: Apache-2.0
//
// A shared library with thread-local variables, for row "static-tls". Built several times: linked with the program,
// opened by it, opened with its variables in the static block (initial-exec).

#include "tls-vars.h"

#ifndef MODULE_DIRTY
#define MODULE_DIRTY module_dirty
#define MODULE_WRONG module_wrong
#endif

void MODULE_DIRTY(void);
const char *MODULE_WRONG(void);

void MODULE_DIRTY(void) {
    tls_dirty();
}

const char *MODULE_WRONG(void) {
    return tls_wrong();
}
