// SPDX-License-Identifier: Apache-2.0
/* See misuse.h. */
#include "base/misuse.h"

void misuse_null(const char *function) {
    text_line("misuse: ", function, ": an argument must not be NULL");
    abort();
}
