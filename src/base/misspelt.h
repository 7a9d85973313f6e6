// SPDX-License-Identifier: Apache-2.0
/* Variables of the environment that look like a library's own, and are not. A misspelt one would be passed over in silence,
 * and the program would run as it does without. libthrum and the cache call this, each with its own names. */
#ifndef THRUM_BASE_MISSPELT_H
#define THRUM_BASE_MISSPELT_H

#include <stdbool.h>
#include <stddef.h>

struct misspelt {
    const char *prefix;           /* of all: "THRUM_" */
    const char *const *known;     /* without it */
    const char *const *of_others; /* of another part of thrum: these, and what begins with one and '_' */
    size_t count, others;
    const char *manual; /* the page that lists them */
};

/* Writes a line about each that begins with the prefix and is neither known nor another part's. */
void misspelt_tell(const struct misspelt *names);

#endif
