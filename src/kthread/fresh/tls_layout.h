// SPDX-License-Identifier: Apache-2.0
/* Where libc put a module's thread-locals; used by tls.c only. */
#ifndef THRUM_KTHREAD_FRESH_TLS_LAYOUT_H
#define THRUM_KTHREAD_FRESH_TLS_LAYOUT_H

#include <link.h>
#include <stdbool.h>

/* Before the first use; also again, with the same result. False if this libc's record of a module is not understood: then threads
 * cannot be kept. */
bool tls_layout_find(void);

/* Inside a dl_iterate_phdr callback: libc's record of the module that the callback is about. The cursor, NULL
 * before the first call, follows the loader's list, which dl_iterate_phdr walks in the same order. */
const struct link_map *tls_layout_next(const struct link_map **cursor, const struct dl_phdr_info *info);

/* The calling thread's block of that module if it is part of the static block, else NULL. */
char *tls_layout_static_block(const struct link_map *map);

#endif
