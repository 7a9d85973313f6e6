// SPDX-License-Identifier: Apache-2.0
/* Row registers: there is no call that changes what a new thread inherits. */
#include "cache.h"

bool registers_have_pkeys(void) {
    return false;
}
