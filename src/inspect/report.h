// SPDX-License-Identifier: Apache-2.0
/* What inspect.h finds, as a text: for thrum_dump and `thrum ps`. */
#ifndef THRUM_INSPECT_REPORT_H
#define THRUM_INSPECT_REPORT_H

#include "inspect/inspect.h"

#ifdef __cplusplus
extern "C" {
#endif

struct inspect_report {
    void (*line)(void *context, const char *line, size_t length); /* with its end of line */
    /* The name of the function that a thread began with; NULL: it is not known. The text may be gone at the next call. May
     * be NULL. */
    const char *(*name)(void *context, const struct inspect_thread *thread);
    /* Before the line of a thread that a kernel thread stands under (its tid): the stack pointer of that; 0: it is not
     * known. May be NULL. */
    uint64_t (*stack_pointer)(void *context, const struct inspect_thread *thread);
    /* After the line of this thread. May be NULL. */
    void (*after)(void *context, const struct inspect_thread *thread);
    void *context;
    uint64_t most; /* so many threads at most */
    /* Rows of tables have at most so many bytes: columns that matter less are left out, and what a thread waits for is on a
     * line of its own where it does not fit. 0: no limit. */
    size_t columns;
};

/* False: there is no runtime. */
bool inspect_print(const struct inspect_source *source, const struct inspect_report *report);

#ifdef __cplusplus
}
#endif

#endif
