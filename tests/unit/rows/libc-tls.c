// SPDX-License-Identifier: Apache-2.0
//
// Row "libc-tls": what libc itself keeps per thread: errno, h_errno, the last dlerror, the thread's locale and the
// character tables that go with it, the resolver's state.

#include <ctype.h>
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sched.h>
#include <wchar.h>
#include <wctype.h>

#include "check.h"

static void expect_fresh_after(void *(*dirty)(void *), void *(*look)(void *)) {
    pid_t first = run_thread(dirty, NULL), second = run_thread(look, NULL);
    expect_reused(first, second);
}

static void *set_errno(void *arg) {
    errno = ENOTTY;
    return arg;
}

static void *look_errno(void *arg) {
    CHECK_EQ(errno, 0);
    return arg;
}

static void errno_is_zero(void) {
    expect_fresh_after(set_errno, look_errno);
}

static void *set_h_errno(void *arg) {
    h_errno = NO_RECOVERY;
    return arg;
}

static void *look_h_errno(void *arg) {
    CHECK_EQ(h_errno, 0);
    return arg;
}

static void h_errno_is_zero(void) {
    expect_fresh_after(set_h_errno, look_h_errno);
}

static void *fail_dlopen(void *arg) {
    CHECK(!dlopen("no-such-library.so", RTLD_NOW), "it exists");
    return arg;
}

static void *look_dlerror(void *arg) {
    const char *error = dlerror();
    CHECK(!error, "an error that this thread did not make: %s", error);
    return arg;
}

static void dlerror_is_clear(void) {
    expect_fresh_after(fail_dlopen, look_dlerror);
}

static void *fail_dlopen_and_read(void *arg) {
    fail_dlopen(arg);
    CHECK(strstr(dlerror(), "no-such-library.so"), "wrong text");
    return arg;
}

// The text that a thread has read belongs to it; freeing it with the next thread must not be done twice.
static void dlerror_text_is_freed_once(void) {
    for (int i = 0; i < 20; i++)
        run_thread(i % 2 ? fail_dlopen : fail_dlopen_and_read, NULL);
}

static locale_t utf8(void) {
    locale_t locale = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (!locale)
        CANNOT("there is no locale C.UTF-8");
    return locale;
}

static locale_t used_locale;

static void *use_utf8(void *arg) {
    CHECK(uselocale(used_locale) == LC_GLOBAL_LOCALE, "a new thread has a locale of its own");
    CHECK(strcmp(nl_langinfo(CODESET), "UTF-8") == 0, "uselocale did nothing");
    return arg;
}

static void *look_locale(void *arg) {
    CHECK(uselocale((locale_t)0) == LC_GLOBAL_LOCALE, "the previous thread's locale is still in use");
    CHECK(MB_CUR_MAX == 1, "MB_CUR_MAX is %zu", MB_CUR_MAX);
    CHECK(!iswalpha(0xe9), "characters are those of another locale");
    CHECK(strcmp(nl_langinfo(CODESET), "UTF-8") != 0, "the code set is UTF-8");
    return arg;
}

static void uselocale_is_undone(void) {
    used_locale = utf8();
    expect_fresh_after(use_utf8, look_locale);
}

// As above, and the locale is freed while the kernel thread is idle.
static void freed_locale_is_not_touched(void) {
    used_locale = utf8();
    pid_t first = run_thread(use_utf8, NULL);
    freelocale(used_locale);
    pid_t second = run_thread(look_locale, NULL);
    expect_reused(first, second);
}

static const unsigned short *table_of_main;

static void *look_tables(void *arg) {
    CHECK(*__ctype_b_loc() == table_of_main, "the character table is not the global locale's");
    CHECK(isalpha('a') && !isalpha('1'), "the table is wrong");
    return arg;
}

static void tables_follow_uselocale(void) {
    used_locale = utf8();
    table_of_main = *__ctype_b_loc();
    expect_fresh_after(use_utf8, look_tables);
}

static void *look_global_utf8(void *arg) {
    look_tables(NULL);
    wchar_t wide = 0;
    mbstate_t state = {0};
    CHECK_EQ(mbrtowc(&wide, "\xc3\xa9", 2, &state), 2);
    CHECK_EQ(wide, 0xe9);
    CHECK(iswalpha(0xe9), "not a letter");
    return arg;
}

// Another thread sets the process's locale while the kernel thread is idle: a thread started then has its tables.
static void tables_follow_setlocale(void) {
    freelocale(utf8());
    pid_t first = run_thread(do_nothing, NULL);
    CHECK(setlocale(LC_ALL, "C.UTF-8"), "setlocale failed");
    const unsigned short *before = table_of_main;
    table_of_main = *__ctype_b_loc();
    PREMISE(before != table_of_main, "both locales have the same table");
    pid_t second = run_thread(look_global_utf8, NULL);
    expect_reused(first, second);
}

static void *set_resolver(void *arg) {
    CHECK_EQ(res_init(), 0);
    CHECK(_res.options & RES_INIT, "res_init did nothing");
    _res.options |= RES_USEVC | RES_NOALIASES;
    _res.ndots = 7;
    return arg;
}

static void *look_resolver(void *arg) {
    CHECK_EQ(_res.options, 0);
    CHECK_EQ(res_init(), 0);
    CHECK(!(_res.options & RES_USEVC), "the previous thread's option is set");
    CHECK(_res.ndots != 7, "the previous thread's ndots is set");
    return arg;
}

static void resolver_starts_anew(void) {
    expect_fresh_after(set_resolver, look_resolver);
}

static void *resolve(void *arg) {
    set_resolver(NULL);
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found = NULL;
    CHECK_EQ(getaddrinfo("127.0.0.1", "80", &hints, &found), 0);
    freeaddrinfo(found);
    CHECK(gethostbyname("127.0.0.1"), "gethostbyname");
    return arg;
}

static size_t heap_in_use(void) {
    return mallinfo2().uordblks;
}

// The resolver's, the error texts' and the allocator's own memory is not lost with every logical thread.
static void *everything(void *arg) {
    resolve(NULL);
    fail_dlopen(NULL);
    void *block = malloc(3000);
    CHECK(block, "malloc");
    free(block);
    return arg;
}

static void memory_does_not_grow(void) {
    check_with_env("MALLOC_ARENA_MAX", "1");
    for (int i = 0; i < 50; i++)
        run_thread(everything, NULL);
    size_t before = heap_in_use();
    for (int i = 0; i < 500; i++)
        run_thread(everything, NULL);
    size_t after = heap_in_use();
    CHECK(after < before + 500 * 100, "the heap grew from %zu to %zu bytes in 500 threads", before, after);
}

static void *look_errorcheck(void *arg) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    CHECK_OK(pthread_mutexattr_init(&attributes));
    CHECK_OK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK));
    CHECK_OK(pthread_mutex_init(&mutex, &attributes));
    CHECK_EQ(pthread_mutex_unlock(&mutex), EPERM);
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_EQ(pthread_mutex_lock(&mutex), EDEADLK);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    int cpu = sched_getcpu(); // by way of the thread's rseq area
    CHECK(cpu >= 0, "sched_getcpu gave %d", cpu);
    return arg;
}

// The thread's identity in libc (mutex ownership, rseq area) is intact after reuse.
static void identity_is_intact(void) {
    expect_fresh_after(everything, look_errorcheck);
}

static const struct check_case cases[] = {
    {"errno-is-zero", errno_is_zero, FAILS_WHEN_SKIPPED},
    {"h-errno-is-zero", h_errno_is_zero, FAILS_WHEN_SKIPPED},
    {"dlerror-is-clear", dlerror_is_clear, FAILS_WHEN_SKIPPED},
    {"dlerror-text-is-freed-once", dlerror_text_is_freed_once, HOLDS_WHEN_SKIPPED},
    {"uselocale-is-undone", uselocale_is_undone, FAILS_WHEN_SKIPPED},
    {"freed-locale-is-not-touched", freed_locale_is_not_touched, FAILS_WHEN_SKIPPED},
    {"tables-follow-uselocale", tables_follow_uselocale, FAILS_WHEN_SKIPPED},
    {"tables-follow-setlocale", tables_follow_setlocale, FAILS_WHEN_SKIPPED},
    {"resolver-starts-anew", resolver_starts_anew, FAILS_WHEN_SKIPPED},
    {"memory-does-not-grow", memory_does_not_grow, HOLDS_WHEN_SKIPPED},
    {"identity-is-intact", identity_is_intact, HOLDS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
