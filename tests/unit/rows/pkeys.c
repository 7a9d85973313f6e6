// SPDX-License-Identifier: Apache-2.0
//
// Row "pkeys": a thread starts with its creator's rights to memory protection keys.

#include <sys/mman.h>

#include "check.h"

static int key = -1;
static volatile char *page;

static void prepare(void) {
    key = pkey_alloc(0, 0);
    if (key == -1)
        CANNOT("no memory protection keys: %s", strerror(errno));
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "mmap: %s", strerror(errno));
    CHECK_SYS(pkey_mprotect((void *)page, 4096, PROT_READ | PROT_WRITE, key));
}

static void *deny(void *arg) {
    CHECK_SYS(pkey_set(key, PKEY_DISABLE_ACCESS));
    return arg;
}

static void *allow(void *arg) {
    CHECK_SYS(pkey_set(key, 0));
    page[0] = 1;
    return arg;
}

static void *expect_rights(void *rights) {
    CHECK_EQ(pkey_get(key), *(int *)rights);
    if (*(int *)rights == 0)
        page[0] = 1;
    return NULL;
}

static void rights_left(void) {
    prepare();
    int rights = 0;
    pid_t first = run_thread(deny, NULL), second = run_thread(expect_rights, &rights);
    expect_reused(first, second);
}

static void rights_taken_while_idle(void) {
    prepare();
    pid_t first = run_thread(allow, NULL);
    int rights = PKEY_DISABLE_WRITE;
    CHECK_SYS(pkey_set(key, (unsigned)rights));
    pid_t second = run_thread(expect_rights, &rights);
    expect_reused(first, second);
}

static void rights_of_the_creator(void) {
    prepare();
    static const int all[] = {0, PKEY_DISABLE_WRITE, PKEY_DISABLE_ACCESS, 0, PKEY_DISABLE_ACCESS};
    pid_t last = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int rights = all[i];
        CHECK_SYS(pkey_set(key, (unsigned)rights));
        pid_t tid = run_thread(expect_rights, &rights);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static const struct check_case cases[] = {
    {"rights-left", rights_left, FAILS_WHEN_SKIPPED},
    {"rights-taken-while-idle", rights_taken_while_idle, FAILS_WHEN_SKIPPED},
    {"rights-of-the-creator", rights_of_the_creator, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
