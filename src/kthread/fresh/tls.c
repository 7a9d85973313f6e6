// SPDX-License-Identifier: Apache-2.0
/* Static and dynamic thread-local storage of every module: back to the module's initial image. Row static-tls.
 *
 * The image is written inside dl_iterate_phdr's callback, under the loader's lock: outside it, a dlclose in
 * another thread could unmap the image, and a dlopen could give the same static block to another module.
 *
 * Where a thread's block is: for a module with a place in the static block, at a fixed distance from the thread
 * pointer; for others where dlpi_tls_data says, or nowhere as long as the thread has not touched it. libc says
 * dlpi_tls_data = NULL also for static modules that were opened after the thread began and that are reached
 * without the loader's help, so the distance is read from libc's own record of the module (tls_layout.c).
 *
 * Left alone: libc and the loader (malloc's cache and arena; see libc_state.c) and the module that this code is
 * in. Modules of other link-map namespaces are not seen here: the front end stops keeping threads when a
 * program calls dlmopen.
 *
 * Because starting a reused thread takes the loader's lock, a thread that creates another from within its own
 * dl_iterate_phdr callback, and waits for it there, would wait for ever: it is given a real new thread, which
 * does not take the lock (tls_lock_held_by_caller). */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"
#include "kthread/fresh/tls_layout.h"
#include "kthread/libc.h"
#include "os/lock.h"
#include "os/syscall.h"

static uintptr_t spared[3];                 /* load addresses; r/o after tls_init */
static __thread const void *callback_frame; /* of the outermost callback that the thread is in, or NULL */

static uintptr_t base_of(const void *address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? (uintptr_t)info.dli_fbase : 0;
}

bool tls_init(void) {
    /* by functions that only they have: the address of an ordinary one may be the program's own stub for it */
    spared[0] = base_of((const void *)(uintptr_t)libc.call_tls_dtors);
    spared[1] = base_of((const void *)spared);
    spared[2] = base_of((const void *)(uintptr_t)libc.tls_static_info);
    if (spared[0] == 0 || spared[1] == 0 || spared[2] == 0)
        return false;
    return tls_layout_find();
}

static const ElfW(Phdr) * tls_segment(const struct dl_phdr_info *info) {
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            return &info->dlpi_phdr[i];
    return NULL;
}

static bool is_spared(const struct dl_phdr_info *info) {
    for (size_t i = 0; i < sizeof spared / sizeof *spared; i++)
        if (info->dlpi_addr == spared[i])
            return true;
    return false;
}

void (*tls_module_seen)(const struct dl_phdr_info *info);

/* Modules that were ever loaded, when they were last looked at for other purposes (site.h). Under `reimaging`. */
static unsigned long long modules_added;

struct walk {
    const struct link_map *cursor;
    unsigned long long added;
};

/* Pages of a block that are given back instead of overwritten: from this size on that is cheaper, and a job that does
 * not use them does not have them. Smaller ones are likely to share their pages with what is used. */
enum { LARGE = 64 * 1024 };

static bool give_back(char *low, size_t size) {
    if (size < LARGE) /* first: this is asked for each module before each job */
        return false;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *first = low + (-(uintptr_t)low & (page - 1)),
         *end = low + size - (((uintptr_t)low + size) & (page - 1));
    return sys(SYS_madvise, first, end - first, MADV_DONTNEED) == 0;
}

static void zero_ends(char *low, size_t size) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    size_t begin = -(uintptr_t)low & (page - 1), end = ((uintptr_t)low + size) & (page - 1);
    memset(low, 0, begin);
    memset(low + size - end, 0, end);
}

struct block {
    char *at; /* NULL: the module has none in this thread */
    bool is_static;
    const ElfW(Phdr) * segment;
};

static struct block block_of(const struct dl_phdr_info *info, const struct link_map *map) {
    struct block block = {NULL, false, NULL};
    if (info->dlpi_tls_modid == 0 || is_spared(info) || (block.segment = tls_segment(info)) == NULL)
        return block;
    block.at = tls_layout_static_block(map);
    block.is_static = block.at != NULL;
    if (block.at == NULL)
        block.at = info->dlpi_tls_data;
    return block;
}

struct image {
    const void *from;
    size_t size, rest; /* bytes; of zeros after it */
};

static struct image image_of(const struct dl_phdr_info *info, const struct block *block) {
    const size_t size = block->segment->p_filesz;
    return (struct image){(const void *)(info->dlpi_addr + block->segment->p_vaddr), size,
                          block->segment->p_memsz - size};
}

/* A static block is part of what libc has mapped for the stack: pages that are given back read as zeros. Of a dynamic
 * one, which malloc found room for, that is not known. */
static void write_image(char *at, struct image image, bool is_static) {
    memcpy(at, image.from, image.size);
    if (is_static && give_back(at + image.size, image.rest))
        zero_ends(at + image.size, image.rest);
    else
        memset(at + image.size, 0, image.rest);
}

static int reimage_module(struct dl_phdr_info *info, size_t size, void *argument) {
    struct walk *walk = argument;
    (void)size;
    const struct link_map *map = tls_layout_next(&walk->cursor, info);
    walk->added = info->dlpi_adds;
    if (info->dlpi_adds != modules_added && tls_module_seen != NULL)
        tls_module_seen(info);
    struct block block = block_of(info, map);
    if (block.at != NULL)
        write_image(block.at, image_of(info, &block), block.is_static);
    return 0;
}

/* Whatever the pages are, the whole block is written before it is read again. */
static int trim_module(struct dl_phdr_info *info, size_t size, void *argument) {
    struct walk *walk = argument;
    (void)size;
    struct block block = block_of(info, tls_layout_next(&walk->cursor, info));
    if (block.at != NULL)
        give_back(block.at, block.segment->p_memsz);
    return 0;
}

/* libc's fork does not repair the lock that dl_iterate_phdr holds: a child forked meanwhile by another thread would
 * find it taken for ever. So fork waits until no thread is here (tls_fork_before). Held with all signals blocked. */
static struct lock reimaging;

void tls_reimage(void) {
    struct walk walk = {NULL, 0};
    if (skipped(ROW_STATIC_TLS))
        return;
    lock_acquire(&reimaging);
    libc.dl_iterate_phdr(reimage_module, &walk);
    modules_added = walk.added;
    lock_release(&reimaging);
}

/* --- often -------------------------------------------------------------------------------------------- */

/* Where the thread-locals of all modules are, if each has a place in the static block. Read and written in the loader's
 * callback, under its lock; true until a module comes or goes. */
enum { PLACES = 64 };
struct table {
    unsigned count;
    bool is_complete;
    struct {
        ptrdiff_t at; /* from the thread pointer */
        struct image image;
    } of[PLACES];
};

static struct {
    unsigned long long adds, subs; /* the loader's, when it was made; 0: never */
    struct table table;
} places;

static void note_place(struct table *table, struct image image, const struct block *block) {
    if (!block->is_static || table->count == PLACES) {
        table->is_complete = false;
        return;
    }
    table->of[table->count].at = block->at - (char *)__builtin_thread_pointer();
    table->of[table->count++].image = image;
}

static void write_places(const struct table *table) {
    char *base = __builtin_thread_pointer();
    for (unsigned i = 0; i < table->count; i++)
        write_image(base + table->of[i].at, table->of[i].image, true);
}

/* The modules up to libc and the loader, the later of the two, are first in the loader's list, and are never unloaded. If that list
 * ends with them they are all, and the loader's lock is not needed: a thread that has used another module's thread-locals has
 * seen it added to the list. If it was unloaded since, the place of its static block is another module's one day, and libc writes that
 * module's image to it in all threads. It ends so in a program that has all its libraries before libc, as libgcc_s in one of C++. In
 * others, whose libgcc_s comes after it, the lock is taken each time, which costs a spawn and join 10 ns of 100. */
static struct {
    const struct link_map *last; /* r/o after tls_often_init, as the next; NULL: not known */
    struct table table;
} lasting;

static const struct link_map *last_of_program(void) {
    const struct link_map *last = NULL;
    unsigned found = 0;
    for (const struct link_map *map = _r_debug.r_map; map != NULL && found < 2; map = map->l_next)
        if (map->l_addr == spared[0] || map->l_addr == spared[2]) {
            last = map;
            found++;
        }
    return found == 2 ? last : NULL;
}

static int note_lasting(struct dl_phdr_info *info, size_t size, void *argument) {
    struct walk *walk = argument;
    (void)size;
    if (walk->cursor == NULL)
        lasting.last = last_of_program();
    const struct link_map *map = tls_layout_next(&walk->cursor, info);
    const struct block block = block_of(info, map);
    if (block.segment != NULL)
        note_place(&lasting.table, image_of(info, &block), &block);
    return map == NULL || map == lasting.last;
}

void tls_often_init(void) {
    struct walk walk = {NULL, 0};
    lasting.table.count = 0;
    lasting.table.is_complete = true;
    libc.dl_iterate_phdr(note_lasting, &walk);
    if (!lasting.table.is_complete || walk.cursor != lasting.last)
        lasting.last = NULL;
}

/* The first module leads to the table, the others make it. */
static int reimage_known(struct dl_phdr_info *info, size_t size, void *argument) {
    struct walk *walk = argument;
    (void)size;
    if (walk->added == 0) {
        if (places.table.is_complete && places.adds == info->dlpi_adds && places.subs == info->dlpi_subs) {
            write_places(&places.table);
            return 1;
        }
        places.adds = walk->added = info->dlpi_adds;
        places.subs = info->dlpi_subs;
        places.table.count = 0;
        places.table.is_complete = true;
    }
    const struct block block = block_of(info, tls_layout_next(&walk->cursor, info));
    if (block.segment == NULL)
        return 0;
    const struct image image = image_of(info, &block);
    note_place(&places.table, image, &block);
    if (block.at != NULL)
        write_image(block.at, image, block.is_static);
    return 0;
}

void tls_reimage_often(void) {
    struct walk walk = {NULL, 0};
    if (lasting.last != NULL && load_relaxed(&lasting.last->l_next) == NULL)
        write_places(&lasting.table);
    else
        libc.dl_iterate_phdr(reimage_known, &walk);
}

void tls_trim(void) {
    struct walk walk = {NULL, 0};
    if (skipped(ROW_STATIC_TLS))
        return;
    lock_acquire(&reimaging);
    libc.dl_iterate_phdr(trim_module, &walk);
    lock_release(&reimaging);
}

/* In a callback of its own the caller holds the loader's lock itself, and a thread in tls_reimage waits for it. */
void tls_fork_before(void) {
    if (!tls_lock_held_by_caller())
        lock_acquire(&reimaging);
}

void tls_fork_parent(void) {
    if (!tls_lock_held_by_caller())
        lock_release(&reimaging);
}

void tls_fork_child(void) {
    lock_reset(&reimaging);
}

/* A callback that was left by an exception or a jump has not said so; but then the stack is shorter. */
__attribute__((noinline)) bool tls_lock_held_by_caller(void) {
    if (callback_frame != NULL && (const char *)__builtin_frame_address(0) > (const char *)callback_frame)
        callback_frame = NULL;
    return callback_frame != NULL;
}

const void *tls_callback_entered(const void *frame) {
    const void *outer = tls_lock_held_by_caller() ? callback_frame : NULL;
    if (outer == NULL)
        callback_frame = frame;
    return outer;
}

void tls_callback_left(const void *outer) {
    callback_frame = outer;
}
