// SPDX-License-Identifier: Apache-2.0
/* See variables.h. */
#include "runtime/variables.h"

#include <stdint.h>

#include "base/atomic.h"
#include "base/misspelt.h"

/* What config.c, places.c, overflow.c and trace_file.c read. tests/unit/ult/misuse_test.cpp holds it against them. */
static const char *const known[] = {"WORKERS", "STACK_SIZE", "PREEMPT", "SLICE",    "TICK",        "SIGNAL",
                                    "BLOCKS",  "BIND",       "TRACE",   "OVERFLOW", "TRACE_EVENTS"};

/* The Argobots layer's, the cache's, the command's and the tests', which look after theirs. */
static const char *const of_others[] = {"ABT", "CACHE", "DEBUG", "ROW", "SKIP", "STAT", "VERBOSE", "VERSION"};

void variables_check(void) {
    static uint32_t checked;
    static const struct misspelt names = {.prefix = "THRUM_",
                                          .known = known,
                                          .of_others = of_others,
                                          .count = sizeof known / sizeof *known,
                                          .others = sizeof of_others / sizeof *of_others,
                                          .manual = "libthrum(7)"};
    if (exchange_relaxed(&checked, 1U) == 0)
        misspelt_tell(&names);
}
