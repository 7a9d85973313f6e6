// SPDX-License-Identifier: Apache-2.0
/* See front.h. An object of its own: what ends a thread from within reads it, and front.c runs threads. */
#include "sched/front.h"

struct front_shape front_shape;
bool (*front_relieve)(struct worker *worker, const struct worker *stuck);
