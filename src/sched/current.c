// SPDX-License-Identifier: Apache-2.0
/* See current.h. Data alone, so that what reads it depends on nothing else. */
#include "sched/current.h"

__thread struct worker *thrum_worker;
__thread const void *thrum_left_from;
__thread uint32_t thrum_nopreempt = NOPREEMPT_NOT_PENDING;
