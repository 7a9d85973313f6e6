// SPDX-License-Identifier: Apache-2.0
//
// Row "static-tls": a thread finds every thread-local variable of every module as in a new thread, whatever its
// predecessor on the kernel thread did: in the program, in libraries linked with it, in libraries opened and closed
// before, while and after the kernel thread was idle, in the static block or allocated at first use.

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include "check.h"
#include "tls-vars.h"

void linked_dirty(void);
const char *linked_wrong(void);

struct module {
    void *handle;
    void (*dirty)(void);
    const char *(*wrong)(void);
};

static void bind(struct module *module, const char *what) {
    CHECK(module->handle, "%s: %s", what, dlerror());
    module->dirty = (void (*)(void))dlsym(module->handle, "module_dirty");
    module->wrong = (const char *(*)(void))dlsym(module->handle, "module_wrong");
    CHECK(module->dirty && module->wrong, "%s lacks its functions", what);
}

static struct module open_module(const char *name) {
    struct module module = {dlopen(name, RTLD_NOW | RTLD_LOCAL), NULL, NULL};
    bind(&module, name);
    return module;
}

// Opens a copy of the library that `module` stands for: to the loader, another library.
static struct module open_copy(const struct module *module) {
    struct link_map *map;
    CHECK(dlinfo(module->handle, RTLD_DI_LINKMAP, &map) == 0, "dlinfo: %s", dlerror());
    char path[] = "/tmp/thrum-row-XXXXXX.so";
    int to = mkstemps(path, 3), from = open(map->l_name, O_RDONLY | O_CLOEXEC);
    CHECK_SYS(to);
    CHECK_SYS(from);
    char buffer[16384];
    ssize_t n;
    while ((n = read(from, buffer, sizeof buffer)) > 0)
        CHECK_EQ(write(to, buffer, (size_t)n), n);
    close(from);
    close(to);
    struct module copy = {dlopen(path, RTLD_NOW | RTLD_LOCAL), NULL, NULL};
    bind(&copy, path);
    unlink(path);
    return copy;
}

static void close_module(struct module *module) {
    CHECK(dlclose(module->handle) == 0, "dlclose: %s", dlerror());
    module->handle = NULL;
}

static struct module program_itself(void) {
    return (struct module){NULL, tls_dirty, tls_wrong};
}

static struct module linked_library(void) {
    return (struct module){NULL, linked_dirty, linked_wrong};
}

static void expect_fresh(const struct module *module) {
    const char *wrong = module->wrong();
    CHECK(!wrong, "stale: %s", wrong);
}

// What a thread does: looks at the module, then dirties it.
static void *use(void *arg) {
    struct module *module = arg;
    expect_fresh(module);
    module->dirty();
    return NULL;
}

static void use_in_turn(struct module *module, int threads) {
    pid_t last = 0;
    for (int i = 0; i < threads; i++) {
        pid_t tid = run_thread(use, module);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static void program(void) {
    struct module module = program_itself();
    use_in_turn(&module, 3);
    CHECK(!tls_wrong(), "main's own variables changed");
}

static void linked(void) {
    struct module module = linked_library();
    use_in_turn(&module, 3);
}

static void opened(void) {
    struct module module = open_module("librow-tls-opened.so");
    use_in_turn(&module, 3);
    close_module(&module);
}

// The kernel thread allocates the module's block only on its third life.
static void opened_and_used_late(void) {
    struct module module = open_module("librow-tls-opened.so");
    pid_t first = run_thread(do_nothing, NULL), second = run_thread(do_nothing, NULL);
    pid_t third = run_thread(use, &module), fourth = run_thread(use, &module);
    expect_reused(first, second);
    expect_reused(second, third);
    expect_reused(third, fourth);
}

static void opened_while_idle(void) {
    pid_t first = run_thread(do_nothing, NULL);
    struct module module = open_module("librow-tls-opened.so");
    pid_t second = run_thread(use, &module), third = run_thread(use, &module);
    expect_reused(first, second);
    expect_reused(second, third);
}

static void initial_exec(void) {
    struct module module = open_module("librow-tls-initial-exec.so");
    use_in_turn(&module, 3);
}

// The module's variables lie in the static block, where code finds them without the loader's help: for a thread older
// than the module, dl_iterate_phdr says that it has none. Whether the cache puts them back all the same or gives such
// a thread up is its own affair.
static void in_static_block_opened_while_idle(const char *name) {
    run_thread(do_nothing, NULL);
    run_thread(do_nothing, NULL);
    struct module module = open_module(name);
    for (int i = 0; i < 4; i++)
        run_thread(use, &module);
}

static void initial_exec_opened_while_idle(void) {
    in_static_block_opened_while_idle("librow-tls-initial-exec.so");
}

// By TLS descriptors, which the loader may resolve to the static block as well.
static void descriptors_opened_while_idle(void) {
    in_static_block_opened_while_idle("librow-tls-descriptors.so");
}

static void *open_in_static_block_and_use(void *arg) {
    struct module *module = arg;
    *module = open_module("librow-tls-initial-exec.so");
    return use(module);
}

static void initial_exec_opened_by_the_thread(void) {
    struct module module;
    run_thread(do_nothing, NULL);
    run_thread(open_in_static_block_and_use, &module);
    for (int i = 0; i < 3; i++)
        run_thread(use, &module);
}

static void *open_and_use(void *arg) {
    struct module *module = arg;
    *module = open_module("librow-tls-opened.so");
    return use(module);
}

static void opened_by_the_thread(void) {
    struct module module;
    pid_t first = run_thread(open_and_use, &module), second = run_thread(use, &module);
    expect_reused(first, second);
    close_module(&module);
}

// Another library takes the place (and the module number) of one that the kernel thread used.
static void closed_and_replaced(void) {
    struct module model = open_module("librow-tls-opened.so");
    struct module module = open_copy(&model);
    pid_t tid = run_thread(use, &module);
    for (int i = 0; i < 5; i++) {
        close_module(&module);
        module = open_copy(&model);
        for (int j = 0; j < 2; j++) {
            pid_t next = run_thread(use, &module);
            expect_reused(tid, next);
            tid = next;
        }
    }
}

static void closed_while_idle(void) {
    struct module module = open_module("librow-tls-opened.so");
    pid_t first = run_thread(use, &module);
    close_module(&module);
    struct module other = program_itself();
    pid_t second = run_thread(use, &other);
    module = open_module("librow-tls-opened.so");
    pid_t third = run_thread(use, &module), fourth = run_thread(use, &module);
    expect_reused(first, second);
    expect_reused(second, third);
    expect_reused(third, fourth);
}

enum { MANY = 12 };

static struct module many[MANY];

static void *use_many(void *arg) {
    uint32_t which = *(uint32_t *)arg;
    for (int i = 0; i < MANY; i++) {
        if (!many[i].handle)
            continue;
        if (which >> i & 1)
            continue; // leave some untouched, so that blocks appear late
        expect_fresh(&many[i]);
        many[i].dirty();
    }
    return NULL;
}

// Libraries come and go in no order between the lives of a kernel thread. One that leaves a new library untouched may
// be given up, but not every time.
static void many_come_and_go(void) {
    struct module model = open_module("librow-tls-small.so");
    uint32_t random = 12345;
    pid_t last = 0;
    int reused = 0;
    for (int round = 0; round < 80; round++) {
        for (int changes = 0; changes < 3; changes++) {
            random = random * 1664525 + 1013904223;
            struct module *module = &many[(random >> 16) % MANY];
            if (module->handle)
                close_module(module);
            else
                *module = open_copy(&model);
        }
        uint32_t which = random >> 8;
        pid_t tid = run_thread(use_many, &which);
        reused += tid == last;
        last = tid;
    }
    if (under_thrum())
        PREMISE(reused >= 20, "only %d of 80 threads were reused", reused);
}

// A library in a namespace of its own: not seen by an iteration over the program's libraries. Whether the cache
// resets it or stops reusing threads is its own affair, so reuse is not asked for.
static void other_namespace(void) {
    struct module module = {dlmopen(LM_ID_NEWLM, "librow-tls-small.so", RTLD_NOW), NULL, NULL};
    bind(&module, "librow-tls-small.so in a new namespace");
    for (int i = 0; i < 3; i++)
        run_thread(use, &module);
}

static void other_namespace_opened_while_idle(void) {
    run_thread(do_nothing, NULL);
    other_namespace();
}

enum { TOGETHER = 6 };

// Several kernel threads at once, reused in any order.
static void several_at_once(void) {
    struct module module = open_module("librow-tls-opened.so");
    for (int round = 0; round < 20; round++) {
        int64_t busy = busy_threads();
        pthread_t threads[TOGETHER];
        for (int i = 0; i < TOGETHER; i++)
            CHECK_OK(pthread_create(&threads[i], NULL, use, &module));
        for (int i = 0; i < TOGETHER; i++)
            CHECK_OK(pthread_join(threads[i], NULL));
        wait_until_settled(busy);
    }
    const volatile struct thrum_cache_counters *c = counters();
    if (c)
        PREMISE(c->reused > 50, "only %ju threads were reused", (uintmax_t)c->reused);
}

static const struct check_case cases[] = {
    {"program", program, FAILS_WHEN_SKIPPED},
    {"linked", linked, FAILS_WHEN_SKIPPED},
    {"opened", opened, FAILS_WHEN_SKIPPED},
    {"opened-and-used-late", opened_and_used_late, FAILS_WHEN_SKIPPED},
    {"opened-while-idle", opened_while_idle, FAILS_WHEN_SKIPPED},
    {"initial-exec", initial_exec, FAILS_WHEN_SKIPPED},
    {"initial-exec-opened-while-idle", initial_exec_opened_while_idle, FAILS_WHEN_SKIPPED},
    {"initial-exec-opened-by-the-thread", initial_exec_opened_by_the_thread, FAILS_WHEN_SKIPPED},
    {"descriptors-opened-while-idle", descriptors_opened_while_idle, FAILS_WHEN_SKIPPED},
    {"opened-by-the-thread", opened_by_the_thread, FAILS_WHEN_SKIPPED},
    {"closed-and-replaced", closed_and_replaced, FAILS_WHEN_SKIPPED},
    {"closed-while-idle", closed_while_idle, FAILS_WHEN_SKIPPED},
    {"many-come-and-go", many_come_and_go, FAILS_WHEN_SKIPPED},
    {"other-namespace", other_namespace, FAILS_WHEN_SKIPPED},
    {"other-namespace-opened-while-idle", other_namespace_opened_while_idle, FAILS_WHEN_SKIPPED},
    {"several-at-once", several_at_once, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
