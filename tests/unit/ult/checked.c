/* SPDX-License-Identifier: Apache-2.0 */
/* See checked.h. */
#include "checked.h"

#include "base/misuse.h"

int library_is_checked(void) {
    return MISUSE_IS_WATCHED;
}
