// SPDX-License-Identifier: Apache-2.0
/* See variables.h. */
#include "runtime/variables.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/text.h"

#define PREFIX "THRUM_"

/* What config.c, places.c, overflow.c and trace_file.c read. tests/unit/ult/misuse_test.cpp holds it against them. */
static const char *const known[] = {"WORKERS", "STACK_SIZE", "PREEMPT", "SLICE",    "TICK",        "SIGNAL",
                                    "BLOCKS",  "BIND",       "TRACE",   "OVERFLOW", "TRACE_EVENTS"};

/* The Argobots layer's, the cache's, the command's and the tests', which look after theirs. */
static const char *const of_others[] = {"ABT_", "CACHE", "DEBUG",   "ROW_",
                                        "SKIP", "STAT",  "VERBOSE", "VERSION"};

/* Where a build finds the library. */
static const char *const places[] = {"_ROOT", "_DIR", "_HOME", "_PATH", "_PREFIX"};

enum { NAME_MAX_LENGTH = 32, NEAR = 3 };

static bool is_known(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == length && memcmp(known[i], name, length) == 0)
            return true;
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++)
        if (strncmp(name, of_others[i], strlen(of_others[i])) == 0)
            return true;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t suffix = strlen(places[i]);
        if (length + 1 >= suffix &&
            memcmp(name + length - suffix, places[i], suffix) == 0) /* also THRUM_ROOT */
            return true;
    }
    return false;
}

/* How many letters have to be put in, left out or changed (Levenshtein). */
static unsigned distance(const char *a, size_t a_length, const char *b) {
    unsigned row[NAME_MAX_LENGTH + 1];
    size_t b_length = strlen(b);
    for (size_t j = 0; j <= b_length; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned least = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            least = least < row[j] + 1 ? least : row[j] + 1;
            row[j] = least < row[j - 1] + 1 ? least : row[j - 1] + 1;
        }
    }
    return row[b_length];
}

/* The known one that it is most like, or begins with. NULL: none is. */
static const char *meant(const char *name, size_t length) {
    const char *nearest = NULL;
    unsigned least = NEAR + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        unsigned steps = distance(name, length, known[i]);
        bool begins = length > strlen(known[i]) && memcmp(name, known[i], strlen(known[i])) == 0;
        if (steps < least || (begins && nearest == NULL)) {
            nearest = known[i];
            least = steps < least ? steps : least;
        }
    }
    return nearest;
}

static void tell(const char *entry, size_t length) {
    char name[NAME_MAX_LENGTH + sizeof PREFIX];
    const char *nearest = meant(entry + strlen(PREFIX), length - strlen(PREFIX));
    struct text text;
    memcpy(name, entry, length);
    name[length] = '\0';
    text_start(&text);
    text_add(&text, name);
    text_add(&text, " is in the environment, but this library has no such variable; ");
    text_add(&text, nearest != NULL ? "did you mean " PREFIX : "libthrum(7) lists them");
    if (nearest != NULL) {
        text_add(&text, nearest);
        text_add(&text, "?");
    }
    text_finish(&text);
}

void variables_check(void) {
    static uint32_t checked;
    if (exchange_acq_rel(&checked, 1U) != 0 || environ == NULL)
        return;
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *end = strchr(*entry, '=');
        size_t length = end != NULL ? (size_t)(end - *entry) : 0;
        if (length <= strlen(PREFIX) || length > NAME_MAX_LENGTH ||
            strncmp(*entry, PREFIX, strlen(PREFIX)) != 0)
            continue;
        if (!is_known(*entry + strlen(PREFIX), length - strlen(PREFIX)))
            tell(*entry, length);
    }
}
