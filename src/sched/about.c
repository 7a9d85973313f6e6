// SPDX-License-Identifier: Apache-2.0
/* Queries about a thread, and its name and priority. */
#include <errno.h>
#include <string.h>

#include "base/misuse.h"
#include "os/memory.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

_Static_assert(sizeof(((struct thrum_unit *)0)->name) == THRUM_NAME_SIZE, "unit.h leaves room for it");

thrum_t thrum_self(void) {
    struct worker *worker = enter();
    struct thrum_unit *self = worker != NULL ? worker->current : NULL;
    if (self != NULL)
        self->escaped = true;
    leave();
    return self;
}

uint64_t thrum_id(thrum_t unit) {
    static uint64_t last;
    if (handle_check(unit) != 0)
        return 0;
    uint64_t id = load_relaxed(&unit->id);
    if (id == 0) {
        uint64_t next = fetch_add_relaxed(&last, 1) + 1;
        store_relaxed(&unit->extras, true);
        if (cas_relaxed(&unit->id, &id, next))
            id = next;
    }
    return id;
}

/* Two words, each written as a whole: a concurrent reader gets at worst half of each name, and it is terminated. */
int thrum_set_name(thrum_t unit, const char *name) {
    uint64_t words[2] = {0, 0};
    int error = name == NULL ? EINVAL : handle_check(unit);
    if (error != 0)
        return error;
    size_t length = strnlen(name, THRUM_NAME_SIZE);
    if (length == THRUM_NAME_SIZE)
        return ERANGE;
    memcpy(words, name, length);
    store_relaxed(&unit->extras, true);
    store_relaxed(&unit->name[0], words[0]);
    store_relaxed(&unit->name[1], words[1]);
    return 0;
}

void thrum_get_name(thrum_t unit, char name[THRUM_NAME_SIZE]) {
    uint64_t words[2] = {0, 0};
    if (is_null(name))
        misuse_null(__func__);
    if (handle_check(unit) == 0)
        for (unsigned i = 0; i < 2; i++)
            words[i] = load_relaxed(&unit->name[i]);
    memcpy(name, words, THRUM_NAME_SIZE);
    name[THRUM_NAME_SIZE - 1] = '\0';
}

int thrum_set_priority(thrum_t unit, unsigned priority) {
    int error = priority > THRUM_PRIORITY_MAX ? EINVAL : handle_check(unit);
    if (error != 0)
        return error;
    store_relaxed(&unit->priority, (uint8_t)priority);
    return 0;
}

unsigned thrum_get_priority(thrum_t unit) {
    return handle_check(unit) == 0 ? load_relaxed(&unit->priority) : 0;
}

/* --- its stack ---------------------------------------------------------------------------------------- */

enum { PAGES_AT_ONCE = 256 };

/* The lowest page of a stack that has memory. */
static char *lowest_touched(char *low, char *top) {
    size_t page = stack_page_size();
    unsigned char touched[PAGES_AT_ONCE];
    for (char *at = (char *)((uintptr_t)low & ~(page - 1)); at < top; at += page * PAGES_AT_ONCE) {
        size_t pages = ((size_t)(top - at) + page - 1) / page;
        if (pages > PAGES_AT_ONCE)
            pages = PAGES_AT_ONCE;
        if (!memory_is_resident(at, pages * page, touched))
            return NULL;
        for (size_t i = 0; i < pages; i++)
            if (touched[i] & 1)
                return at + i * page;
    }
    return top;
}

int thrum_stack_used(thrum_t unit, size_t *used, size_t *size) {
    int error = used == NULL || size == NULL ? EINVAL : handle_check(unit);
    if (error != 0)
        return error;
    if (load_acquire(&unit->join) == JOIN_ENDED) /* pairs with unit_publish_end */
        return ESRCH;
    char *top = unit->stack_top;
    if (top == NULL || load_relaxed(&unit->kind) == UNIT_TASKLET || load_relaxed(&unit->sp) == UNIT_NEW) {
        *used = *size = 0;
        return 0;
    }
    char *low = unit_stack_low(unit), *touched = lowest_touched(low, top);
    if (touched == NULL)
        return ENOMEM; /* another thread unmaps it */
    *size = (size_t)(top - low);
    *used = (size_t)(top - (touched < low ? low : touched));
    return 0;
}
