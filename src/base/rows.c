// SPDX-License-Identifier: Apache-2.0
/* THRUM_SKIP in debug builds; see rows.h. */
#include "base/rows.h"

#ifdef THRUM_DEBUG
#include <string.h>

uint64_t rows_skipped_mask;

#define ROW_NAME(name, text) text,
static const char *const names[] = {THRUM_ROWS(ROW_NAME)};

static bool skip_one(const char *name, size_t length) {
    for (unsigned row = 0; row < ROWS_END; row++) {
        if (strlen(names[row]) == length && memcmp(names[row], name, length) == 0) {
            rows_skipped_mask |= UINT64_C(1) << row;
            return true;
        }
    }
    return false;
}

bool rows_skip(const char *list) {
    bool known = true;
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        if (length > 0)
            known &= skip_one(list, length);
        list += length + (list[length] == ',');
    }
    return known;
}
#else
typedef int rows_has_no_code_in_release_builds;
#endif
