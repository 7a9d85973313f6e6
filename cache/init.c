// SPDX-License-Identifier: Apache-2.0
/* Setting up: the environment, libc's functions, the reasons to stay off.
 *
 * Two steps, because most processes under `thrum run` create no thread and should pay next to nothing: the
 * constructor reads the environment and registers for fork; everything else waits for the first call that
 * has to do with threads, which may come from another library's constructor, before ours. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/misspelt.h"
#include "base/text.h"
#include "cache.h"
#include "os/futex.h"
#include "os/pressure.h"
#include "os/syscall.h"

struct libc_threads libc;

static long pid;
static pthread_t main_handle; /* the thread that the process began with, or that forked it */
static bool verbose, wanted = true, off_from_start;
static uint32_t filter_coming; /* before the set-up */
static const char not_wanted[] = "THRUM_CACHE=off", filtered[] = "a seccomp filter was installed";

long cache_pid(void) {
    return pid;
}

void cache_fork_child(void) {
    main_handle = pthread_self();
    if (kthread_keeping() || verbose || total_wanted())
        pid = sys(SYS_getpid);
}

/* On a user-level thread of libthrum's that has a handle of its own only the kernel knows. */
bool cache_in_main(void) {
    return pthread_self() == main_handle || (kthread_keeping() && sys(SYS_gettid) == sys(SYS_getpid));
}

/* Looked at when it ends, whatever the environment is then. */
static uint64_t program;
bool cache_is_the_program(void) {
    return program == (uint64_t)pid;
}

const char *cache_off_pending(void) {
    return wanted || off_from_start ? NULL : not_wanted;
}

bool cache_off_from_start(void) {
    return off_from_start;
}

bool cache_verbose(void) {
    return verbose;
}

/* --- environment ------------------------------------------------------------------------------------- */

static void complain(const char *name, const char *value, const char *wrong, const char *instead) {
    struct text text;
    text_start(&text);
    text_add(&text, name);
    text_add(&text, "=");
    text_add(&text, value);
    text_add(&text, ": ");
    text_add(&text, wrong);
    text_add(&text, "; ");
    text_add(&text, instead);
    text_finish(&text);
}

static const char use_default[] = "using the default";

static bool one_of(const char *value, const char *a, const char *b) {
    return strcmp(value, a) == 0 || strcmp(value, b) == 0;
}

static bool read_switch(const char *name, bool usual) {
    const char *value = getenv(name);
    if (value == NULL || *value == '\0')
        return usual;
    if (one_of(value, "1", "on"))
        return true;
    if (one_of(value, "0", "off"))
        return false;
    complain(name, value, "expected on or off (or 1 or 0)", use_default);
    return usual;
}

static uint64_t read_number(const char *name, uint64_t usual, uint64_t most, const char *accepted) {
    const char *value = getenv(name);
    if (value == NULL || *value == '\0')
        return usual;
    uint64_t number = 0;
    const char *at = value;
    while (*at >= '0' && *at <= '9' && number <= most)
        number = number * 10 + (uint64_t)(*at++ - '0');
    if (*at == '\0' && number <= most)
        return number;
    complain(name, value, accepted, use_default);
    return usual;
}

static void read_total(void) {
    const char *path = getenv("THRUM_CACHE_TOTAL");
    int saved = errno;
    /* The command that asked has ended: this process was left behind, and no counters are wanted any more. */
    bool is_over = path != NULL && strncmp(path, "/proc/", 6) == 0 && access(path, F_OK) != 0;
    if (path != NULL && *path != '\0' && !is_over && !total_open(path))
        complain("THRUM_CACHE_TOTAL", path, "cannot be written, or does not begin as <thrum/cache.h> says",
                 "adding nothing to it");
    errno = saved;
}

/* In one process of a program: all have the same environment. */
static void tell_of_misspelt(void) {
    static const char *const known[] = {"TOTAL",   "VERBOSE",        "PROGRAM",    "MIN_REST", "MAX_IDLE",
                                        "MAX_AGE", "THREAD_SECONDS", "TRIM_AFTER", "PRESSURE", "WIPE_STACK"};
    static const struct misspelt names = {.prefix = "THRUM_CACHE_",
                                          .known = known,
                                          .count = sizeof known / sizeof *known,
                                          .manual = "libthrum-cache(7)"};
    if (program == 0 || program == (uint64_t)sys(SYS_getpid))
        misspelt_tell(&names);
}

/* retain.h. After seven seconds without work a program has the memory and the tasks that it has without the cache. */
enum { MAX_AGE_MS = 6000, TRIM_AFTER_MS = 1000 };

static void read_environment(void) {
    verbose = read_switch("THRUM_CACHE_VERBOSE", read_switch("THRUM_VERBOSE", false));
    program = read_number("THRUM_CACHE_PROGRAM", 0, INT32_MAX, "expected a process number");
    wanted = read_switch("THRUM_CACHE", true);
    kthread_config.min_rest_ns = UINT64_C(1000000) * read_number("THRUM_CACHE_MIN_REST", 0, 3600000,
                                                                 "expected milliseconds from 0 to 3600000");
    kthread_config.max_idle = read_number("THRUM_CACHE_MAX_IDLE", KTHREAD_MAX_IDLE_UNSET, 1000000,
                                          "expected a number of threads from 0 to 1000000");
    kthread_config.max_age_ns =
        UINT64_C(1000000) * read_number("THRUM_CACHE_MAX_AGE", MAX_AGE_MS, 86400000,
                                        "expected milliseconds from 0 (no limit) to 86400000");
    kthread_config.thread_ns =
        UINT64_C(1000000000) * read_number("THRUM_CACHE_THREAD_SECONDS", 0, 1000000000,
                                           "expected seconds from 0 (no limit) to 1000000000");
    kthread_config.trim_after_ns =
        UINT64_C(1000000) * read_number("THRUM_CACHE_TRIM_AFTER", TRIM_AFTER_MS, 86400000,
                                        "expected milliseconds from 0 (never) to 86400000");
    kthread_config.watch_pressure = read_switch("THRUM_CACHE_PRESSURE", false);
#ifdef THRUM_DEBUG
    if (getenv("THRUM_DEBUG_PRESSURE") != NULL)
        pressure_use_file(getenv("THRUM_DEBUG_PRESSURE"));
#endif
    if (kthread_config.watch_pressure)
        pressure_open();
    kthread_config.wipe_stack = read_switch("THRUM_CACHE_WIPE_STACK", false);
    read_total();
    if (wanted)
        tell_of_misspelt();
#ifdef THRUM_DEBUG
    const char *rows = getenv("THRUM_SKIP");
    if (rows != NULL && !rows_skip(rows))
        complain("THRUM_SKIP", rows, "expected row names from docs/internals/soundness.md", use_default);
#endif
}

/* --- the functions behind ours ------------------------------------------------------------------------ */

static void *find(const char *name) {
#ifdef THRUM_DEBUG
    const char *missing = getenv("THRUM_DEBUG_MISSING");
    if (missing != NULL && strcmp(missing, name) == 0 && !skipped(ROW_GLIBC))
        return NULL;
#endif
    return dlsym(RTLD_NEXT, name);
}

/* libc's table. Returns the first of the undocumented names that is missing, or NULL. */
static const char *fill_table(void) {
    libc.pthread_create = REAL(pthread_create);
    libc.pthread_join = REAL(pthread_join);
    libc.pthread_tryjoin = REAL(pthread_tryjoin_np);
    libc.pthread_clockjoin = REAL(pthread_clockjoin_np);
    libc.pthread_detach = REAL(pthread_detach);
    libc.pthread_exit = REAL(pthread_exit);
    libc.pthread_cancel = REAL(pthread_cancel);
    libc.dl_iterate_phdr = REAL(dl_iterate_phdr);

    const struct {
        const char *name;
        void *slot;
    } wants[] = {
        {"__pthread_register_cancel", &libc.register_cancel},
        {"__pthread_unregister_cancel", &libc.unregister_cancel},
        {"__pthread_unwind_next", &libc.unwind_next},
        {"__call_tls_dtors", &libc.call_tls_dtors},
        {"_dl_get_tls_static_info", &libc.tls_static_info},
    };
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        void *symbol = find(wants[i].name);
        if (symbol == NULL)
            return wants[i].name;
        memcpy(wants[i].slot, &symbol, sizeof symbol);
    }
    size_t size = 0, alignment = 0;
    libc.tls_static_info(&size, &alignment);
    stack_init(size + alignment);
    return NULL;
}

/* --- reasons to stay off ------------------------------------------------------------------------------ */

/* A sanitizer's or valgrind's own idea of a thread's life would not survive reuse. One whose runtime is linked
 * into the program shows by the program's own pthread_create in front of ours. */
static bool sanitizer_present(void) {
    static const char *const symbols[] = {"__asan_init", "__tsan_init",   "__msan_init",
                                          "__lsan_init", "__hwasan_init", "__dfsan_init"};
    if (skipped(ROW_SANITIZERS))
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (dlsym(RTLD_DEFAULT, symbols[i]) != NULL)
            return true;
    const char *preload = getenv("LD_PRELOAD");
    if (preload != NULL && strstr(preload, "/vgpreload_") != NULL)
        return true;
    Dl_info first, ours;
    ElfW(Sym) *symbol = NULL;
    if (dladdr1(dlsym(RTLD_DEFAULT, "pthread_create"), &first, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
        dladdr(&libc, &ours) == 0 || symbol == NULL)
        return true;
    bool stub = symbol->st_shndx == SHN_UNDEF; /* of a program that takes the function's address */
    return first.dli_fbase != ours.dli_fbase && !stub;
}

/* In this order: what makes a system call comes after all that makes none. */
static const char *reason_to_stay_off(const char *missing) {
    static char without[128];
    if (!wanted)
        return not_wanted;
    if (load_relaxed(&filter_coming))
        return filtered;
    if (!kthread_keeping() && !skipped(ROW_SANDBOX))
        return kthread_state();
    if (missing != NULL) {
        strcpy(without, "this C library has no ");
        strncat(without, missing, sizeof without - strlen(without) - 1);
        return without;
    }
    if (sanitizer_present())
        return "a sanitizer or valgrind is present";
    if (!sandbox_permits())
        return "a seccomp filter from before the start refuses system calls that reuse needs";
    if (!kthread_init())
        return "this C library's layout of thread-locals is unknown";
    return NULL;
}

static void set_up(void) {
    real_fill();
    const char *why = reason_to_stay_off(fill_table());
    if (why == NULL) {
        limits_read();
        if (registers_have_pkeys())
            creator_pkeys_used();
        return;
    }
    off_from_start = true;
    kthread_keep_none(why);
    if (verbose)
        text_line("the cache is off: ", why, NULL);
}

/* --- once --------------------------------------------------------------------------------------------- */

enum { UNTOUCHED, AT_WORK, AWAITED, DONE };

/* Runs step once for the process. Concurrent callers wait; the running thread itself, when it comes back through a
 * function that step calls, continues. */
static void once(uint32_t *state, void (*step)(void)) {
    static __thread uint32_t *at_work;
    uint32_t seen = UNTOUCHED;
    if (at_work == state)
        return;
    if (cas_relaxed(state, &seen, AT_WORK)) {
        uint32_t *outer = at_work;
        at_work = state;
        step();
        at_work = outer;
        if (exchange_acq_rel(state, DONE) == AWAITED) /* pairs with the loads: what step did is there */
            futex_wake(state, INT32_MAX);
        return;
    }
    while ((seen = load_acquire(state)) != DONE) /* pairs with the exchange */
        if (seen == AWAITED || cas_relaxed(state, &seen, AWAITED))
            futex_wait(state, AWAITED);
}

/* Switched off it does nothing more than read the environment: it makes no system call, and a fork is none of its
 * business. */
static void read_environment_and_watch(void) {
    real_fill_sigsafe();
    main_handle = pthread_self();
    read_environment();
    if (wanted || verbose || total_wanted())
        pid = sys(SYS_getpid);
    if (!wanted && !total_wanted())
        kthread_keep_none(not_wanted);
    if (verbose || total_wanted())
        at_quick_exit(report_once);
    if (verbose) {
        text_keep_stderr();
        tree_open(program);
    }
    if ((kthread_keeping() || total_wanted()) && !process_watch_forks())
        kthread_stop_keeping("no memory to handle forks");
}

void cache_early(void) {
    static uint32_t state;
    if (__builtin_expect(load_acquire(&state) != DONE, 0)) /* pairs with the exchange in once */
        once(&state, read_environment_and_watch);
}

void cache_ready(void) {
    static uint32_t state;
    if (__builtin_expect(load_acquire(&state) != DONE, 0)) { /* pairs likewise */
        cache_early();
        once(&state, set_up);
    }
}

void cache_filter_coming(void) {
    if (!skipped(ROW_SANDBOX))
        store_relaxed(&filter_coming, 1);
}

__attribute__((constructor)) static void start(void) {
    cache_early();
}
