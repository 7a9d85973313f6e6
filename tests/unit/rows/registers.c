// SPDX-License-Identifier: Apache-2.0
//
// Row registers: what a thread sets in its processor's state, beside the floating-point environment and protection
// keys, is its own: a new thread has its creator's. And none of it harms the library.
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "child.h"

#ifdef __x86_64__
#include <asm/prctl.h>

int arch_prctl(int code, unsigned long address);

// ---- the base of GS ----------------------------------------------------------------------------------------------

static char area[2][64];

static unsigned long gs_base(void) {
    unsigned long base = 0;
    CHECK_SYS(syscall(SYS_arch_prctl, ARCH_GET_GS, &base));
    return base;
}

static void by_instruction(void *base) {
    __asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
}
static void by_function(void *base) {
    CHECK_SYS(arch_prctl(ARCH_SET_GS, (unsigned long)base));
}
static void by_system_call(void *base) {
    CHECK_SYS(syscall(SYS_arch_prctl, ARCH_SET_GS, base));
}

static void (*set_gs)(void *);

static void *set_gs_in_thread(void *base) {
    set_gs(base);
    return NULL;
}
static void *look_at_gs(void *unused) {
    (void)unused;
    return (void *)gs_base();
}
static void expect_gs(const void *expected, const char *when) {
    void *seen;
    run_thread_result(look_at_gs, NULL, &seen);
    CHECK(seen == expected, "%s: GS base %p, expected %p", when, seen, expected);
}

static void gs_of_each(void (*set)(void *)) {
    if (set == by_instruction && !(getauxval(AT_HWCAP2) & 2))
        CANNOT("no instruction for it");
    set_gs = set;
    run_thread(do_nothing, NULL);
    run_thread(set_gs_in_thread, area[0]);
    expect_gs(NULL, "after a thread that set its own");
    set(area[1]);
    expect_gs(area[1], "of a creator that set its own");
    run_thread(set_gs_in_thread, area[0]);
    expect_gs(area[1], "of that creator, after another thread");
    set(NULL);
    expect_gs(NULL, "of a creator that put its own back");
}
static void gs_by_instruction(void) {
    gs_of_each(by_instruction);
}
static void gs_by_function(void) {
    gs_of_each(by_function);
}
static void gs_by_system_call(void) {
    gs_of_each(by_system_call);
}

static unsigned selectors(void) {
    unsigned short ds, es, gs;
    __asm__ volatile("movw %%ds, %0; movw %%es, %1; movw %%gs, %2" : "=m"(ds), "=m"(es), "=m"(gs));
    return ds | es << 8 | gs << 16;
}
static void *load_selectors(void *arg) {
    __asm__ volatile("movw %0, %%ds; movw %0, %%es; movw %0, %%gs" : : "r"((unsigned short)0x2b));
    return arg;
}
static void *look_at_selectors(void *arg) {
    (void)arg;
    return (void *)(uintptr_t)selectors();
}
static void selectors_left(void) {
    void *seen;
    pid_t first = run_thread(load_selectors, NULL);
    pid_t second = run_thread_result(look_at_selectors, NULL, &seen);
    expect_reused(first, second);
    CHECK_EQ((uintptr_t)seen, selectors());
}

// ---- flags ---------------------------------------------------------------------------------------------------------

enum { AC = 1 << 18, ID = 1 << 21 };

static unsigned long flags(void) {
    return __builtin_ia32_readeflags_u64() & (AC | ID);
}
static void *set_flags(void *which) {
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | (unsigned long)which);
    return NULL;
}
static void *look_at_flags(void *unused) {
    (void)unused;
    return (void *)flags();
}
// As its last action, so that none of the program's code runs with it. Ends are of every kind.
static void flags_left(unsigned long which) {
    void *seen;
    run_thread(do_nothing, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        int64_t busy = busy_threads();
        CHECK_OK(pthread_create(&thread, NULL, set_flags, (void *)which));
        CHECK_OK(i % 2 ? pthread_detach(thread) : pthread_join(thread, NULL));
        wait_until_settled(busy);
        run_thread_result(look_at_flags, NULL, &seen);
        CHECK_EQ((unsigned long)seen, flags());
    }
}
static void flag_ac_left(void) {
    flags_left(AC);
}
static void flag_id_left(void) {
    flags_left(ID);
}
static void flag_id_of_the_creator(void) {
    void *seen;
    run_thread(do_nothing, NULL);
    set_flags((void *)ID);
    run_thread_result(look_at_flags, NULL, &seen);
    CHECK_EQ((unsigned long)seen, ID);
}

// ---- the time stamp counter, and CPUID --------------------------------------------------------------------------------

static int tsc(void) {
    int mode = 0;
    CHECK_SYS(prctl(PR_GET_TSC, &mode));
    return mode;
}
static void *look_at_tsc(void *unused) {
    (void)unused;
    return (void *)(intptr_t)tsc();
}
static void *forbid_tsc(void *by_system_call) {
    if (by_system_call)
        CHECK_SYS(syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
    else
        CHECK_SYS(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    return NULL;
}
static void expect_tsc(int expected) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        void *seen = NULL;
        CHECK_OK(pthread_create(&thread, NULL, look_at_tsc, NULL));
        CHECK_OK(pthread_join(thread, &seen));
        CHECK_EQ((intptr_t)seen, expected);
    }
}
// Not through usleep or clock_gettime from here on: the kernel's own code for them reads the counter.
static void *wait_for_end(void *end) {
    while (!__atomic_load_n((int *)end, __ATOMIC_ACQUIRE))
        sched_yield();
    return end;
}
static void tsc_forbidden(int by_system_call) {
    int end = 0;
    pthread_t older;
    void *result;
    warm_threads(2);
    CHECK_OK(pthread_create(&older, NULL, wait_for_end, &end));
    forbid_tsc(by_system_call ? area : NULL);
    expect_tsc(PR_TSC_SIGSEGV);
    set_flag(&end);
    CHECK_OK(pthread_join(older, &result));
    CHECK(result == &end, "the older thread ended with %p", result);
    expect_tsc(PR_TSC_SIGSEGV);
}
static void tsc_forbidden_by_function(void) {
    tsc_forbidden(0);
}
static void tsc_forbidden_by_system_call(void) {
    tsc_forbidden(1);
}
static void *forbid_tsc_and_create(void *arg) {
    forbid_tsc(arg);
    expect_tsc(PR_TSC_SIGSEGV);
    return arg;
}
static void tsc_forbidden_in_a_thread(void) {
    pthread_t thread;
    warm_threads(2);
    CHECK_OK(pthread_create(&thread, NULL, forbid_tsc_and_create, NULL));
    CHECK_OK(pthread_join(thread, NULL));
    expect_tsc(PR_TSC_ENABLE);
}

static long cpuid_allowed(void) {
    return syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0);
}
static void *look_at_cpuid(void *unused) {
    (void)unused;
    return (void *)cpuid_allowed();
}
static void *forbid_cpuid(void *arg) {
    CHECK_SYS(arch_prctl(ARCH_SET_CPUID, 0));
    return arg;
}
static void cpuid_forbidden(void) {
    void *seen;
    if (cpuid_allowed() != 1 || arch_prctl(ARCH_SET_CPUID, 1) != 0)
        CANNOT("this processor cannot forbid CPUID");
    warm_threads(2);
    run_thread(forbid_cpuid, NULL);
    run_thread_result(look_at_cpuid, NULL, &seen);
    CHECK_EQ((long)seen, 1);
    forbid_cpuid(NULL);
    pkey_alloc(0, 0);
    for (int i = 0; i < 3; i++) {
        run_thread_result(look_at_cpuid, NULL, &seen);
        CHECK_EQ((long)seen, 0);
    }
}
// Before there is any thread: whatever the library looks at as it sets itself up.
static void cpuid_forbidden_first(void) {
    void *seen;
    if (cpuid_allowed() != 1 || arch_prctl(ARCH_SET_CPUID, 0) != 0)
        CANNOT("this processor cannot forbid CPUID");
    run_thread_result(look_at_cpuid, NULL, &seen);
    CHECK_EQ((long)seen, 0);
    expect_reused(run_thread(do_nothing, NULL), run_thread(do_nothing, NULL));
}

// ---- the base of FS, which libc's thread-locals hang on ---------------------------------------------------------------

// In the block that is used meanwhile nothing of libc's holds: no thread-locals, no value of the stack protector.
static unsigned long *other_block;

__attribute__((noinline)) static void swap_fs(int by_syscall) {
    unsigned long own = 0;
    CHECK_SYS(syscall(SYS_arch_prctl, ARCH_GET_FS, &own));
    if (by_syscall) {
        syscall(SYS_arch_prctl, ARCH_SET_FS, other_block);
        syscall(SYS_arch_prctl, ARCH_SET_FS, own);
    } else {
        arch_prctl(ARCH_SET_FS, (unsigned long)other_block);
        arch_prctl(ARCH_SET_FS, own);
    }
}
static void *swap_fs_in_thread(void *by_syscall) {
    swap_fs(by_syscall != NULL);
    return NULL;
}
static void fs_swapped(void) {
    // Below the block, where thread-locals would be, there is nothing at all.
    enum { PAGE = 4096 };
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED, "mmap: %s", strerror(errno));
    CHECK_SYS(mprotect(pages, PAGE, PROT_NONE));
    other_block = (unsigned long *)(pages + PAGE);
    for (int i = 0; i < 4; i++) {
        swap_fs(i % 2);
        pid_t first = run_thread(swap_fs_in_thread, i % 2 ? other_block : NULL);
        pid_t second = run_thread(do_nothing, NULL);
        expect_not_reused(first, second);
    }
}

// ---- rights to protection keys, without a key -----------------------------------------------------------------------

static int has_pkeys(void) {
    int key = pkey_alloc(0, 0);
    if (key >= 0)
        pkey_free(key);
    return key >= 0;
}
static unsigned pkru(void) {
    unsigned rights, zero;
    __asm__ volatile(".byte 0x0f,0x01,0xee" : "=a"(rights), "=d"(zero) : "c"(0));
    return rights;
}
static void *set_pkru(void *rights) {
    __asm__ volatile(".byte 0x0f,0x01,0xef" : : "a"((unsigned)(uintptr_t)rights), "c"(0), "d"(0) : "memory");
    return NULL;
}
static void *look_at_pkru(void *unused) {
    (void)unused;
    return (void *)(uintptr_t)pkru();
}
static void pkru_without_a_key(void) {
    void *seen;
    pid_t child = fork(); // which alone calls pkey_alloc
    CHECK_SYS(child);
    if (child == 0)
        _exit(has_pkeys() ? 0 : CHECK_EXIT_CANNOT);
    wait_child(child);
    unsigned own = pkru();
    pid_t first = run_thread(set_pkru, (void *)(uintptr_t)(own ^ 3u << 30));
    pid_t second = run_thread_result(look_at_pkru, NULL, &seen);
    expect_reused(first, second);
    CHECK_EQ((uintptr_t)seen, own);
}

// Without thrum a thread may do any of these; and where a row's handling is left out, none needs to show in each run.
static const struct check_case cases[] = {
    {"gs_by_instruction", gs_by_instruction, FAILS_WHEN_SKIPPED},
    {"gs_by_function", gs_by_function, FAILS_WHEN_SKIPPED},
    {"gs_by_system_call", gs_by_system_call, FAILS_WHEN_SKIPPED},
    {"selectors_left", selectors_left, FAILS_WHEN_SKIPPED},
    {"flag_ac_left", flag_ac_left, FAILS_WHEN_SKIPPED},
    {"flag_id_left", flag_id_left, FAILS_WHEN_SKIPPED},
    {"flag_id_of_the_creator", flag_id_of_the_creator, FAILS_WHEN_SKIPPED},
    {"tsc_forbidden_by_function", tsc_forbidden_by_function, FAILS_WHEN_SKIPPED},
    {"tsc_forbidden_by_system_call", tsc_forbidden_by_system_call, FAILS_WHEN_SKIPPED},
    {"tsc_forbidden_in_a_thread", tsc_forbidden_in_a_thread, FAILS_WHEN_SKIPPED},
    {"cpuid_forbidden", cpuid_forbidden, FAILS_WHEN_SKIPPED},
    {"cpuid_forbidden_first", cpuid_forbidden_first, HOLDS_WHEN_SKIPPED},
    {"fs_swapped", fs_swapped, FAILS_WHEN_SKIPPED},
    {"pkru_without_a_key", pkru_without_a_key, HOLDS_WHEN_SKIPPED}, // row pkeys
};
#else

// ---- bits of PSTATE ------------------------------------------------------------------------------------------------

enum { HAS_DIT = 1 << 24, HAS_SSBS = 1 << 28 };

#define BIT(name, number)                                                                                    \
    static unsigned long name(void) {                                                                        \
        unsigned long value;                                                                                 \
        __asm__ volatile("mrs %0, " number : "=r"(value));                                                   \
        return value;                                                                                        \
    }                                                                                                        \
    static void *toggle_##name(void *arg) {                                                                  \
        __asm__ volatile("msr " number ", %0" : : "r"(name() == 0 ? ~0ul : 0ul));                            \
        return arg;                                                                                          \
    }                                                                                                        \
    static void *look_at_##name(void *unused) {                                                              \
        (void)unused;                                                                                        \
        return (void *)name();                                                                               \
    }

BIT(dit, "s3_3_c4_c2_5")
BIT(ssbs, "s3_3_c4_c2_6")

static void bit(int capability, unsigned long (*get)(void), void *(*toggle)(void *), void *(*look)(void *)) {
    void *seen;
    if (!(getauxval(AT_HWCAP) & (unsigned long)capability))
        CANNOT("this processor does not have it");
    pid_t first = run_thread(toggle, NULL), second = run_thread_result(look, NULL, &seen);
    expect_reused(first, second);
    CHECK_EQ((unsigned long)seen, get());
    toggle(NULL);
    run_thread_result(look, NULL, &seen);
    CHECK_EQ((unsigned long)seen, get());
}
static void bit_dit(void) {
    bit(HAS_DIT, dit, toggle_dit, look_at_dit);
}
static void bit_ssbs(void) {
    bit(HAS_SSBS, ssbs, toggle_ssbs, look_at_ssbs);
}

static const struct check_case cases[] = {
    {"bit_dit", bit_dit, FAILS_WHEN_SKIPPED},
    {"bit_ssbs", bit_ssbs, FAILS_WHEN_SKIPPED},
};
#endif
CHECK_MAIN(cases)
