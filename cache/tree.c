// SPDX-License-Identifier: Apache-2.0
/* --verbose for a program that starts others: one table of all its processes instead of lines from each.
 *
 * The process that `thrum run` became (THRUM_CACHE_PROGRAM) has a file in memory, which it holds open far up among its
 * descriptors, as it does its copy of standard error. Each process that it starts, directly or not, opens that by way of
 * /proc when it starts, while it may still do so, and adds its counters when it ends. Whatever ends after the program, or
 * could not open the file, speaks for itself.
 *
 * Written by many processes: a row is claimed by a cas on its state, and what is counted is added to. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "cache.h"
#include "os/syscall.h"

enum { ROWS = 64, NAME = 16 };
enum { ROW_FREE, ROW_CLAIMED, ROW_NAMED };
static const char file_name[] = "thrum-processes";

struct row {
    uint32_t state;
    char name[NAME];
    uint64_t processes, created, reused, retired, culled, passed;
};

static struct tree {
    uint32_t version, size;
    uint32_t closed;       /* the program has printed it */
    uint64_t without;      /* processes that made no thread */
    struct row rows[ROWS]; /* by the processes' names; the last for all others */
    struct row all;
    uint64_t retired_by[THRUM_CACHE_REASONS_MAX], passed_by[THRUM_CACHE_REASONS_MAX];
} * tree;

/* --- the file ------------------------------------------------------------------------------------------- */

/* Where text.c looks for a descriptor that is in no program's way, and as far up from there. */
static const int places[] = {960, 240, 60, 15};
enum { NEAR = 8 };

static struct tree *map(int fd) {
    void *at = mmap(NULL, sizeof *tree, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void make(void) {
    int kept = -1, fd = (int)sys(SYS_memfd_create, file_name, MFD_CLOEXEC);
    if (fd < 0)
        return;
    for (unsigned i = 0; i < sizeof places / sizeof *places && kept < 0; i++)
        kept = (int)sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, places[i]);
    sys(SYS_close, fd);
    if (kept < 0 || sys(SYS_ftruncate, kept, sizeof *tree) != 0 || (tree = map(kept)) == NULL)
        return;
    tree->size = sizeof *tree;
    tree->version = THRUM_CACHE_COUNTERS_VERSION;
}

static void path_of(struct text *text, uint64_t pid, int fd) {
    text->length = 0;
    text_add(text, "/proc/");
    text_add_number(text, pid);
    text_add(text, "/fd/");
    text_add_number(text, (uint64_t)fd);
    text->bytes[text->length] = '\0';
}

static bool is_file(const char *path) {
    char target[64];
    static const char expected[] = "/memfd:thrum-processes";
    long length = sys(SYS_readlinkat, AT_FDCWD, path, target, sizeof target);
    return length >= (long)sizeof expected - 1 && memcmp(target, expected, sizeof expected - 1) == 0;
}

static struct tree *open_file(const char *path) {
    long fd = is_file(path) ? sys(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return NULL;
    bool whole = sys(SYS_lseek, fd, 0, SEEK_END) == (long)sizeof *tree;
    struct tree *found = whole ? map((int)fd) : NULL;
    sys(SYS_close, fd);
    if (found == NULL || (found->version == THRUM_CACHE_COUNTERS_VERSION && found->size == sizeof *found))
        return found;
    munmap(found, sizeof *found);
    return NULL;
}

static void find(uint64_t program) {
    struct text path;
    for (unsigned i = 0; i < sizeof places / sizeof *places && tree == NULL; i++)
        for (int fd = places[i]; fd < places[i] + NEAR && tree == NULL; fd++) {
            path_of(&path, program, fd);
            tree = open_file(path.bytes);
        }
}

void tree_open(uint64_t program) {
    int saved = errno;
    if (program == 0 || sandbox_is_filtered()) /* which may kill for a call that the loader does not make */
        return;
    if (program == (uint64_t)sys(SYS_getpid))
        make();
    else
        find(program);
    errno = saved;
}

/* --- what a process adds ---------------------------------------------------------------------------------- */

/* A row that another process is just naming may be the same: then there are two. */
static struct row *row_of(const char *name) {
    for (unsigned i = 0; i < ROWS - 1; i++) {
        struct row *row = &tree->rows[i];
        uint32_t state = ROW_FREE;
        if (cas_acq_rel(&row->state, &state, ROW_CLAIMED)) { /* one that fails pairs with the next */
            strncpy(row->name, name, NAME - 1);
            store_release(&row->state, ROW_NAMED); /* pairs with the cas and is_used: the name is there */
            return row;
        }
        if (state == ROW_NAMED && strncmp(row->name, name, NAME - 1) == 0)
            return row;
    }
    return &tree->rows[ROWS - 1];
}

static void add_to_row(struct row *row, const struct thrum_cache_counters *c) {
    fetch_add_relaxed(&row->processes, 1);
    fetch_add_relaxed(&row->created, c->created);
    fetch_add_relaxed(&row->reused, c->reused);
    fetch_add_relaxed(&row->retired, c->retired);
    fetch_add_relaxed(&row->culled, c->culled);
    fetch_add_relaxed(&row->passed, c->passed);
}

static void add(const struct thrum_cache_counters *c) {
    if (c->created + c->reused + c->passed == 0) {
        fetch_add_relaxed(&tree->without, 1);
        return;
    }
    add_to_row(row_of(program_invocation_short_name), c);
    add_to_row(&tree->all, c);
    for (unsigned i = 0; i < THRUM_CACHE_REASONS_MAX; i++) {
        fetch_add_relaxed(&tree->retired_by[i], c->retired_by[i]);
        fetch_add_relaxed(&tree->passed_by[i], c->passed_by[i]);
    }
}

bool tree_add(void) {
    if (tree == NULL || cache_is_the_program() || load_relaxed(&tree->closed))
        return false;
    add(&thrum_cache_counters);
    return true;
}

/* --- the table -------------------------------------------------------------------------------------------- */

static void column(struct text *text, uint64_t number) {
    enum { WIDTH = 10 };
    size_t digits = 1;
    for (uint64_t rest = number; rest >= 10; rest /= 10)
        digits++;
    for (size_t i = digits; i < WIDTH; i++)
        text_add(text, " ");
    text_add_number(text, number);
}

static void line_of(const char *name, const struct row *row) {
    struct text text;
    text_start(&text);
    text_add(&text, "  ");
    text_add(&text, name);
    for (size_t i = strlen(name); i < NAME; i++)
        text_add(&text, " ");
    column(&text, row->processes);
    column(&text, row->created);
    column(&text, row->reused);
    column(&text, row->retired);
    column(&text, row->culled);
    column(&text, row->passed);
    text_finish(&text);
}

/* The last has no name of its own. */
static bool is_used(unsigned i) {
    const struct row *row = &tree->rows[i];
    bool is_named = i == ROWS - 1 || load_acquire(&row->state) == ROW_NAMED; /* pairs with row_of */
    return is_named && load_relaxed(&row->processes) != 0;
}

/* The program adds its own first. Nothing where it has started no process with threads. */
void tree_print(void (*reasons)(const char *, const uint64_t *, const char *(*)(unsigned))) {
    if (tree == NULL || !cache_is_the_program() || exchange_relaxed(&tree->closed, 1) != 0 ||
        load_relaxed(&tree->all.processes) == 0)
        return;
    add(&thrum_cache_counters);
    text_line("all processes:", NULL, NULL);
    text_line("                   processes   created    reused   retired    culled    passed", NULL, NULL);
    for (unsigned i = 0; i < ROWS; i++)
        if (is_used(i))
            line_of(i < ROWS - 1 ? tree->rows[i].name : "(others)", &tree->rows[i]);
    line_of("together", &tree->all);
    reasons("  retired: ", tree->retired_by, thrum_cache_retire_reason);
    reasons("  passed through: ", tree->passed_by, thrum_cache_pass_reason);
    if (load_relaxed(&tree->without) == 0)
        return;
    struct text text;
    text_start(&text);
    text_add(&text, "  without threads: ");
    text_add_number(&text, load_relaxed(&tree->without));
    text_finish(&text);
}
