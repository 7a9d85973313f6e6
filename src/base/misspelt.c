// SPDX-License-Identifier: Apache-2.0
/* See misspelt.h. */
#include "base/misspelt.h"

#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Where a build finds the library. */
static const char *const places[] = {"_ROOT", "_DIR", "_HOME", "_PATH", "_PREFIX"};

enum { LONGEST = 48, NEAR = 3 };

/* It is that one, or one of its family. */
static bool is_of(const char *name, size_t length, const char *part) {
    size_t size = strlen(part);
    return length >= size && memcmp(name, part, size) == 0 && (length == size || name[size] == '_');
}

static bool is_known(const struct misspelt *names, const char *name, size_t length) {
    for (size_t i = 0; i < names->count; i++)
        if (strlen(names->known[i]) == length && memcmp(names->known[i], name, length) == 0)
            return true;
    for (size_t i = 0; i < names->others; i++)
        if (is_of(name, length, names->of_others[i]))
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
    unsigned row[LONGEST + 1];
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
static const char *meant(const struct misspelt *names, const char *name, size_t length) {
    const char *nearest = NULL;
    unsigned least = NEAR + 1;
    for (size_t i = 0; i < names->count; i++) {
        unsigned steps = distance(name, length, names->known[i]);
        bool begins =
            length > strlen(names->known[i]) && memcmp(name, names->known[i], strlen(names->known[i])) == 0;
        if (steps < least || (begins && nearest == NULL)) {
            nearest = names->known[i];
            least = steps < least ? steps : least;
        }
    }
    return nearest;
}

static void tell(const struct misspelt *names, const char *entry, size_t length) {
    char name[LONGEST + 1];
    size_t prefix = strlen(names->prefix);
    const char *nearest = meant(names, entry + prefix, length - prefix);
    struct text text;
    memcpy(name, entry, length);
    name[length] = '\0';
    text_start(&text);
    text_add(&text, name);
    text_add(&text, " is in the environment, but this library has no such variable; ");
    text_add(&text, nearest != NULL ? "did you mean " : names->manual);
    text_add(&text, nearest != NULL ? names->prefix : " lists them");
    if (nearest != NULL) {
        text_add(&text, nearest);
        text_add(&text, "?");
    }
    text_finish(&text);
}

void misspelt_tell(const struct misspelt *names) {
    size_t prefix = strlen(names->prefix);
    if (environ == NULL)
        return;
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *end = strchr(*entry, '=');
        size_t length = end != NULL ? (size_t)(end - *entry) : 0;
        if (length > prefix && length <= LONGEST && strncmp(*entry, names->prefix, prefix) == 0 &&
            !is_known(names, *entry + prefix, length - prefix))
            tell(names, *entry, length);
    }
}
