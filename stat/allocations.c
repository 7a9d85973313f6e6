// SPDX-License-Identifier: Apache-2.0
/* Where the program allocates its memory (PROBE_ALLOCATIONS): for each block the call that allocated it last.
 *
 * The functions are not interposed by their names, which would put this library between the program and its allocator in
 * all other runs as well. The words by which the program and its libraries call them are changed instead, in this mode
 * alone. The dynamic linker has filled them in, or would at the first call. Calls in this library, and those of libraries
 * that are loaded later, go to the allocator itself.
 *
 * A place is known by the return addresses on the stack, and its stack is copied once. A block is found by its address in a
 * table without chains: one that comes to the place of another takes it, and the other's place is unknown. Frees are not
 * noted; what is allocated there next takes the place. An entry belongs to the thread that has set `busy`. One that finds
 * it set, which may be a signal handler's own thread, leaves its block out. */
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch_link.h"
#include "stat.h"

enum {
    DEPTH = 6,  /* return addresses that make a difference */
    TRIES = 16, /* places that a key may be at */
    GRANULE_BITS = 4,
    ARENA_BITS = 23, /* whose blocks would meet at one place, were they not moved by this */
};

static struct probe *noting; /* NULL: nothing is noted, as in a child that was forked */

static void stop(void) {
    store_relaxed(&noting, (struct probe *)NULL);
}

/* --- what is noted ---------------------------------------------------------------------------------------- */

static struct probe_site *site_of(struct probe *probe, const struct registers *at, const void *frame,
                                  uint32_t *number) {
    const struct registers above = {0, (uintptr_t)frame, 0};
    const uint64_t key = stack_key_sigsafe(&above, DEPTH);
    for (unsigned i = 0; i < TRIES; i++) {
        const uint32_t place = (uint32_t)((key >> 8) + i) % PROBE_SITES;
        uint64_t seen = load_relaxed(&probe->in.heap.keys[place]);
        *number = place;
        if (seen == 0 && cas_relaxed(&probe->in.heap.keys[place], &seen, key)) {
            struct probe_site *site = &probe->in.heap.sites[place];
            stack_copy_sigsafe(&site->stack, at);
            store_release(&site->ready, 1); /* pairs with Allocations::finish (cli/stat/allocations.cpp) */
            return site;
        }
        if (seen == key)
            return &probe->in.heap.sites[place];
    }
    return NULL;
}

static void note(void *block, uint64_t size, const struct registers *at, const void *frame) {
    struct probe *probe = load_relaxed(&noting);
    uint32_t number, free = 0;
    if (probe == NULL || block == NULL || confined_sigsafe())
        return;
    if (site_of(probe, at, frame, &number) == NULL) {
        fetch_add_relaxed(&probe->unplaced, 1);
        return;
    }
    const uint64_t address = (uintptr_t)block;
    const uint64_t place = (address >> GRANULE_BITS) + (address >> ARENA_BITS) * UINT64_C(0x9e37);
    struct probe_block *to = &probe->in.heap.blocks[place % PROBE_BLOCKS];
    if (!cas_acquire(&to->busy, &free, 1)) /* pairs with the store of 0 below */
        return;
    to->address = address;
    to->size = size;
    to->at = clock_ns_sigsafe();
    to->site = number;
    store_release(&to->busy, 0); /* pairs with cas_acquire, and with Allocations::finish */
}

/* --- what is called in the allocator's place --------------------------------------------------------------- */

#define NOTE(block, size)                                                                                    \
    do {                                                                                                     \
        const struct registers here = registers_here();                                                      \
        note(block, size, &here, __builtin_frame_address(0));                                                \
    } while (0)

static void *noted_malloc(size_t size) {
    void *block = malloc(size);
    NOTE(block, size);
    return block;
}

static void *noted_calloc(size_t count, size_t size) {
    void *block = calloc(count, size);
    NOTE(block, count * size);
    return block;
}

static void *noted_realloc(void *old, size_t size) {
    void *block = realloc(old, size);
    NOTE(block, size);
    return block;
}

static void *noted_memalign(size_t alignment, size_t size) {
    void *block = memalign(alignment, size);
    NOTE(block, size);
    return block;
}

static void *noted_aligned_alloc(size_t alignment, size_t size) {
    void *block = aligned_alloc(alignment, size);
    NOTE(block, size);
    return block;
}

static int noted_posix_memalign(void **to, size_t alignment, size_t size) {
    const int error = posix_memalign(to, alignment, size);
    if (error == 0)
        NOTE(*to, size);
    return error;
}

static const struct {
    const char *name;
    void *function;
} functions[] = {
    {"malloc", (void *)noted_malloc},
    {"calloc", (void *)noted_calloc},
    {"realloc", (void *)noted_realloc},
    {"memalign", (void *)noted_memalign},
    {"aligned_alloc", (void *)noted_aligned_alloc},
    {"posix_memalign", (void *)noted_posix_memalign},
};

/* --- the words by which they are called -------------------------------------------------------------------- */

struct object { /* a program or library, as it is mapped */
    uint64_t base;
    const ElfW(Sym) * symbols;
    const char *names;
    struct span fixed; /* whole pages that are read-only once the linker is done with them */
};

/* The linker has added the base to most of them. */
static uint64_t address_of(const struct object *object, const ElfW(Dyn) * entry) {
    return entry->d_un.d_ptr < object->base ? object->base + entry->d_un.d_ptr : entry->d_un.d_ptr;
}

static void change(const struct object *object, uint64_t word, void *function) {
    const bool is_fixed = in_span(&object->fixed, word);
    void *pages = (void *)(uintptr_t)object->fixed.begin; // NOLINT
    const size_t size = object->fixed.end - object->fixed.begin;
    if (is_fixed && mprotect(pages, size, PROT_READ | PROT_WRITE) != 0)
        return;
    store_relaxed((void **)(uintptr_t)word, function); // NOLINT
    if (is_fixed)
        mprotect(pages, size, PROT_READ);
}

static void change_those_of(const struct object *object, const ElfW(Rela) * from, uint64_t bytes) {
    for (const ElfW(Rela) *one = from; one < from + bytes / sizeof *from; one++) {
        if (!is_word_of_function(ELF64_R_TYPE(one->r_info)))
            continue;
        const char *name = object->names + object->symbols[ELF64_R_SYM(one->r_info)].st_name;
        for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
            if (strcmp(name, functions[i].name) == 0)
                change(object, object->base + one->r_offset, functions[i].function);
    }
}

static int change_object(struct dl_phdr_info *info, size_t size, void *argument) {
    struct object object = {.base = info->dlpi_addr};
    const ElfW(Dyn) *dynamic = NULL;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const ElfW(Rela) *words = NULL, *calls = NULL;
    uint64_t words_bytes = 0, calls_bytes = 0;
    bool is_own = false;
    (void)size;
    (void)argument;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        const uint64_t begin = object.base + part->p_vaddr;
        if (part->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(uintptr_t)begin; // NOLINT
        else if (part->p_type == PT_GNU_RELRO)
            object.fixed = (struct span){begin & ~(page - 1), (begin + part->p_memsz) & ~(page - 1)};
        else if (part->p_type == PT_LOAD)
            is_own = is_own || (uintptr_t)change_object - begin < part->p_memsz;
    }
    if (dynamic == NULL || is_own || strncmp(info->dlpi_name, "linux-", 6) == 0)
        return 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++)
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            object.symbols = (const void *)(uintptr_t)address_of(&object, dynamic);
            break;                                                                                   // NOLINT
        case DT_STRTAB: object.names = (const void *)(uintptr_t)address_of(&object, dynamic); break; // NOLINT
        case DT_RELA: words = (const void *)(uintptr_t)address_of(&object, dynamic); break;          // NOLINT
        case DT_RELASZ: words_bytes = dynamic->d_un.d_val; break;
        case DT_JMPREL: calls = (const void *)(uintptr_t)address_of(&object, dynamic); break; // NOLINT
        case DT_PLTRELSZ: calls_bytes = dynamic->d_un.d_val; break;
        default: break;
        }
    if (object.symbols == NULL || object.names == NULL)
        return 0;
    change_those_of(&object, words, words_bytes);
    change_those_of(&object, calls, calls_bytes);
    return 0;
}

void allocations_start(struct probe *probe) {
    if (load_relaxed(&probe->loaded) > 1) /* what a program has left that this process was before */
        memset(&probe->in.heap, 0, sizeof probe->in.heap);
    store_relaxed(&noting, probe);
    pthread_atfork(NULL, NULL, stop);
    dl_iterate_phdr(change_object, NULL);
}
