// SPDX-License-Identifier: Apache-2.0
/* See site.h. */
#include "kthread/site.h"

#include <string.h>

#include "base/atomic.h"

enum { SITES_LOG2 = 8, PROMPT_NEEDED = 8 };

static struct site sites[1 << SITES_LOG2];
static uintptr_t libstdcxx_low, libstdcxx_high; /* its code */

static bool in_libstdcxx(void *(*start)(void *)) {
    uintptr_t low = load_relaxed(&libstdcxx_low);
    return (uintptr_t)start - low < load_relaxed(&libstdcxx_high) - low;
}

struct site *site_of(void *(*start)(void *), void *argument) {
    uintptr_t id = (uintptr_t)start;
    if (in_libstdcxx(start) && argument != NULL)
        id = *(const uintptr_t *)argument;
    struct site *site = &sites[(uint64_t)id * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SITES_LOG2)];
    if (load_relaxed(&site->id) != id) {
        store_relaxed(&site->id, id);
        store_relaxed(&site->brief, 0);
        store_relaxed(&site->medium, 0);
        store_relaxed(&site->batch, 1);
        store_relaxed(&site->batch_sure, 0);
        store_relaxed(&site->prompt, 0);
        store_relaxed(&site->prompt_needed, PROMPT_NEEDED);
    }
    return site;
}

void site_score(uint32_t *score, bool good) {
    uint32_t was = load_relaxed(score), is;
    if (good)
        is = was < SITE_SCORE_MAX ? was + 1 : was;
    else
        is = was > 4 ? was - 4 : 0;
    if (is != was) /* most of the time it is not: then the line stays shared */
        store_relaxed(score, is);
}

/* The program's start routines in libstdc++ are its own two, and both take an object with a virtual table. */
void site_module_seen(const struct dl_phdr_info *info) {
    static const char name[] = "libstdc++.so.";
    const char *file = strrchr(info->dlpi_name, '/');
    file = file != NULL ? file + 1 : info->dlpi_name;
    if (strncmp(file, name, sizeof name - 1) != 0)
        return;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uintptr_t low = info->dlpi_addr + segment->p_vaddr;
        store_relaxed(&libstdcxx_low, low);
        store_relaxed(&libstdcxx_high, low + segment->p_memsz);
    }
}
