// SPDX-License-Identifier: Apache-2.0
/* See alternative.h. Weak: another object of the same library may define it. */
#include "kthread/alternative.h"

#include <stddef.h>

__attribute__((weak)) const struct alternative *const kthread_alternative = NULL;
