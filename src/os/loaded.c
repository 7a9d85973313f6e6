// SPDX-License-Identifier: Apache-2.0
/* See loaded.h. */
#include "os/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

/* Perhaps with more behind it: "libstdc++.so.6.0.33". */
static int has_name(struct dl_phdr_info *info, size_t size, void *library) {
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
    return strncmp(name, library, strlen(library)) == 0;
}

/* dlopen would search the file system for one that is not there. */
void *loaded_symbol(const char *library, const char *symbol) {
    if (dl_iterate_phdr(has_name, (void *)(uintptr_t)library) == 0)
        return NULL;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return handle != NULL ? dlsym(handle, symbol) : NULL;
}
