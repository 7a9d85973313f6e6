// SPDX-License-Identifier: Apache-2.0
/* Where the code of the program and of its libraries is, as they stand when this library starts. filter.c tells by it
 * whose system calls are meant, stack.c what may be a return address. */
#include <link.h>
#include <string.h>

#include "stat.h"

struct text text;

/* Each library's code, ascending; what is more than there is room for is taken as one with the last. */
enum { MOST_LIBRARIES = 256 };
static struct span code[MOST_LIBRARIES];
static unsigned libraries;

static void grow(struct span *span, const struct span *by) {
    if (span->end == 0)
        *span = *by;
    span->begin = by->begin < span->begin ? by->begin : span->begin;
    span->end = by->end > span->end ? by->end : span->end;
}

static void note(const struct span *one) {
    unsigned at = libraries;
    grow(&text.libraries, one);
    if (libraries == MOST_LIBRARIES) {
        grow(&code[MOST_LIBRARIES - 1], one);
        return;
    }
    for (; at > 0 && code[at - 1].begin > one->begin; at--)
        code[at] = code[at - 1];
    code[at] = *one;
    libraries++;
}

bool text_holds_sigsafe(uint64_t address) {
    unsigned low = 0, high = libraries;
    if (in_span(&text.program, address))
        return true;
    if (!in_span(&text.libraries, address))
        return false;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (code[middle].begin <= address)
            low = middle;
        else
            high = middle;
    }
    return in_span(&code[low], address);
}

static struct span code_of(const struct dl_phdr_info *object) {
    struct span found = {0, 0};
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uint64_t begin = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0)
            grow(&found, &(struct span){begin, begin + segment->p_memsz});
    }
    return found;
}

/* The program comes first; the vDSO has a name without a folder. */
static int look_at(struct dl_phdr_info *object, size_t size, void *argument) {
    unsigned *seen = argument;
    struct span own = code_of(object);
    (void)size;
    if ((*seen)++ == 0) {
        text.program = own;
        text.movable = object->dlpi_addr != 0;
    } else if (own.end != 0 && strchr(object->dlpi_name, '/') != NULL) {
        note(&own);
        if (in_span(&own, (uintptr_t)text_find))
            text.own = own;
    }
    return 0;
}

void text_find(void) {
    unsigned seen = 0;
    dl_iterate_phdr(look_at, &seen);
}
