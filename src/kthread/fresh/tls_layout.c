// SPDX-License-Identifier: Apache-2.0
/* Finding the distance of a module's static thread-locals from the thread pointer.
 *
 * libc keeps it in the private part of struct link_map, followed by the module's TLS number. The place of the
 * two words differs between versions, so it is found, not assumed: at start-up every module with thread-locals
 * has a known number and a known block, hence a known distance, and there must be exactly one place where the
 * two stand side by side in the record of each of them. Anything else: the library does not understand this
 * libc and stays off. */
#include "kthread/fresh/tls_layout.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arch_tls_layout.h"
#include "kthread/libc.h"
#include "os/syscall.h"

enum { WORDS = 256, NO_PLACE = 0 };

static size_t place; /* of the distance, in words; NO_PLACE until found */

const struct link_map *tls_layout_next(const struct link_map **cursor, const struct dl_phdr_info *info) {
    const struct link_map *map = *cursor == NULL ? _r_debug.r_map : (*cursor)->l_next;
    if (map == NULL || map->l_addr != info->dlpi_addr || map->l_name != info->dlpi_name)
        for (map = _r_debug.r_map; map != NULL; map = map->l_next)
            if (map->l_addr == info->dlpi_addr && map->l_name == info->dlpi_name)
                break;
    if (map != NULL)
        *cursor = map;
    return map;
}

/* 0 and -1 stand for "none yet" and "never". */
char *tls_layout_static_block(const struct link_map *map) {
    intptr_t distance = 0;
    if (map == NULL)
        return NULL;
    memcpy(&distance, (const char *)map + place * sizeof distance, sizeof distance);
    return distance == 0 || distance == -1 ? NULL : arch_tls_block(distance);
}

/* --- finding the place ---------------------------------------------------------------------------------- */

struct search {
    const struct link_map *cursor;
    unsigned modules;
    unsigned char possible[WORDS]; /* in how many modules' records the two words stand here */
};

/* Whether a word can be read there. The kernel looks at the new mask before it finds that there is no such operation:
 * a system call that libc's own pthread_create makes, too, so that a filter allows it. */
static bool is_readable(const void *word) {
    return sys(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) != -EFAULT;
}

/* The record's length is not known. What can be read is known by the page. */
static size_t read_record(const struct link_map *map, intptr_t *words) {
    const intptr_t *record = (const intptr_t *)(const void *)map;
    uintptr_t page = 4096; /* or larger; a multiple of it ends where a page does */
    size_t count = 0;
    for (; count < WORDS; count++) {
        bool new_page = ((uintptr_t)(record + count) & (page - 1)) == 0;
        if (new_page && !is_readable(record + count))
            break;
        words[count] = record[count];
    }
    return count;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *argument) {
    (void)size;
    struct search *search = argument;
    intptr_t words[WORDS];
    const struct link_map *map = tls_layout_next(&search->cursor, info);
    if (map == NULL || info->dlpi_tls_modid == 0 || info->dlpi_tls_data == NULL)
        return 0;
    size_t count = read_record(map, words);
    unsigned found = 0;
    for (size_t i = 1; i + 1 < count; i++) {
        if (words[i] == 0 || words[i] == -1 || (size_t)words[i + 1] != info->dlpi_tls_modid)
            continue;
        if (arch_tls_block(words[i]) == info->dlpi_tls_data) {
            search->possible[i]++;
            found++;
        }
    }
    search->modules += found > 0; /* one that was opened later may have its block elsewhere */
    return 0;
}

bool tls_layout_find(void) {
    struct search search = {0};
    size_t found = NO_PLACE;
    libc.dl_iterate_phdr(look_at, &search);
    for (size_t i = 1; i < WORDS; i++) {
        if (search.modules < 2 || search.possible[i] != search.modules)
            continue;
        if (found != NO_PLACE)
            return false;
        found = i;
    }
    place = found;
    return place != NO_PLACE;
}
