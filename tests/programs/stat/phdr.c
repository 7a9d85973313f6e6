// SPDX-License-Identifier: Apache-2.0
//
// Disease: which loaded file an address belongs to is asked of dl_iterate_phdr(), as stack walkers, profilers and the
// unwinders of exceptions do or did: it holds the dynamic linker's lock while it goes through the list.
// Cure: _dl_find_object() (glibc 2.35), which takes none.
#include <dlfcn.h>
#include <link.h>

#include "crew.h"

#ifdef CURED
static SEEN uintptr_t file_of(uintptr_t address) {
    struct dl_find_object found;
    return _dl_find_object((void *)address, &found) == 0 ? (uintptr_t)found.dlfo_map_start : 0;
}
#else
struct search {
    uintptr_t address, found;
};

static int is_it_here(struct dl_phdr_info *file, size_t size, void *arg) {
    struct search *search = arg;
    (void)size;
    for (int i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && search->address - (file->dlpi_addr + part->p_vaddr) < part->p_memsz)
            search->found = file->dlpi_addr;
    }
    return search->found != 0;
}

static SEEN uintptr_t file_of(uintptr_t address) {
    struct search search = {address, 0};
    dl_iterate_phdr(is_it_here, &search); /* HERE: hidden-lock */
    return search.found;
}
#endif

static void *walk(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + file_of(i % 2 != 0 ? (uintptr_t)walk : (uintptr_t)&stdout), 20);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 12000000, walk);
    return 0;
}
