// SPDX-License-Identifier: Apache-2.0
//
// What the cache does with idle threads as time passes, one policy a case; CMakeLists.txt says which variables are set.
// Nothing is said of how long anything takes: a case waits for the state that the policy promises.
//
//   policy default      without any variable they end, and the memory of a burst is returned
//   policy keep         no policy: idle threads stay, and stay as they are
//   policy max-age      they end when no thread has needed them for a while, all of them
//   policy decay        the threads of one burst do not all end at once
//   policy one-thread   a thread that ends by itself is gone for a call that wants a process of one thread
//   policy copies       nor is it inside libc when the process is copied without libc's knowing
//   policy seconds      they end so that the sum of their idle times stays within the bound
//   policy seconds-sum  the same of many threads: it is the sum that counts, not how long one has been idle
//   policy trim         they give their stacks back
//   policy trim-tls     and large thread-locals; a job that does not use them does not have their pages either
//   policy pressure FILE  they end when memory is short (debug builds read FILE for it)
//   policy pressure-together FILE  those of two processes do
//   policy pressure-wait  they end when memory is short, whichever process makes it so
//   policy late-joins   threads that no thread joins for long do not pile up
//   policy detached     nor do detached ones
//   policy few-tasks    still fewer are kept of a user's few tasks
//   policy max-idle     a limit above the default is what holds, for threads that are joined
//   policy max-idle-detached  and for detached ones
//   policy max-idle-few a limit below it, too
//   policy kinds        threads of forty kinds asked for in turns are all of use: none of them is ended
//   policy rest         those that rest are kept until they are of use, however many they are
//   policy rest-limit   the same with a limit: that many, and they are of use
//   policy never-joined  more than are kept are never joined: once they have ended, new ones are kept again
//   policy unjoined     ended threads that are not joined are not idle: their results stay, but not their tasks
#include <link.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "../unit/rows/child.h"

enum { THREADS = 12, PATIENCE_MS = 20000 };

static const volatile struct thrum_cache_counters *cache(void) {
    const volatile struct thrum_cache_counters *c = counters();
    PREMISE(c != NULL, "the cache is not loaded");
    return c;
}

static void await_idle(uint64_t most) {
    int64_t end = now_ms() + PATIENCE_MS;
    while (cache()->idle > most && now_ms() < end)
        sleep_ms(5);
    CHECK(cache()->idle <= most, "%llu threads are still idle", (unsigned long long)cache()->idle);
}

// After all that the cache works as at first. Where idle threads end after 100 ms, one may be gone before the next is
// asked for.
static void still_works(void) {
    uint64_t reused = cache()->reused;
    for (int64_t end = now_ms() + PATIENCE_MS; cache()->reused == reused && now_ms() < end;)
        run_thread(do_nothing, NULL);
    CHECK(cache()->reused > reused, "no thread is reused any more");
}

static long resident_kb(void);

// Seven blocks of each size that malloc keeps for a thread.
static void *use_much(void *barrier) {
    enum { EACH = 7, SIZES = 64 };
    void *blocks[SIZES * EACH];
    for (size_t i = 0; i < SIZES * EACH; i++) {
        size_t size = 24 + i / EACH * 16;
        memset(blocks[i] = malloc(size), 1, size);
    }
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    for (size_t i = SIZES * EACH; i > 0; i--)
        free(blocks[i - 1]);
    return NULL;
}

static void run_at_once(pthread_t *threads, unsigned count, void *(*fn)(void *)) {
    pthread_barrier_t barrier;
    CHECK_OK(pthread_barrier_init(&barrier, NULL, count));
    for (unsigned i = 0; i < count; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, fn, &barrier));
    for (unsigned i = 0; i < count; i++)
        CHECK_OK(pthread_join(threads[i], NULL));
    CHECK_OK(pthread_barrier_destroy(&barrier));
}

// What malloc keeps for a thread is out of malloc_trim's reach; what the thread has given back is not. By how much the
// arenas shrink by themselves differs from run to run, without the cache as well.
static void by_default(void) {
    enum { MANY = 200 };
    static pthread_t threads[MANY];
    long before = resident_kb();
    run_at_once(threads, MANY, use_much);
    long burst = resident_kb();
    await_idle(0);
    CHECK_EQ(cache()->culled, MANY);
    expect_threads_at_most(1);
    malloc_trim(0);
    CHECK(resident_kb() - before < (burst - before) / 2, "%ld KiB are left of %ld", resident_kb() - before,
          burst - before);
    still_works();
}

// Half of max_age lies between the first and the last.
static void decay(void) {
    enum { MANY = 64 };
    static pthread_t threads[MANY];
    run_at_once(threads, MANY, use_much);
    bool seen[MANY + 1] = {false};
    unsigned steps = 0;
    for (int64_t end = now_ms() + PATIENCE_MS; cache()->idle > 0 && now_ms() < end; sleep_ms(1)) {
        uint64_t idle = cache()->idle;
        steps += !seen[idle];
        seen[idle] = true;
    }
    await_idle(0);
    CHECK(steps > MANY / 8, "%d threads were gone after %u steps", MANY, steps);
    expect_threads_at_most(1);
}

// Those that end by themselves end somewhere between two of these calls.
static void one_thread(void) {
    for (int i = 0; i < 60; i++) {
        run_together(64);
        struct timespec wait = {0, 9000000 + i % 12 * 1000000};
        nanosleep(&wait, NULL);
        CHECK_SYS(unshare(CLONE_FS)); // ends the idle ones
        CHECK_EQ(kernel_threads(), 1);
    }
}

static int no_module(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    return 0;
}

// In a copy whose other threads are not there: whatever lock they had stays taken.
static int use_libc(void *unused) {
    (void)unused;
    void *blocks[64];
    for (int i = 0; i < 64; i++)
        blocks[i] = malloc(4096);
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return dl_iterate_phdr(no_module, NULL);
}

static void copies(void) {
    enum { STACK = 256 * 1024, MANY = 200 };
    static pthread_t threads[MANY];
    char *stack = malloc(STACK);
    CHECK(stack != NULL, "no memory");
    for (int i = 0; i < 30; i++) {
        run_at_once(threads, MANY, use_much);
        struct timespec wait = {0, 1000000 + i * 500000};
        nanosleep(&wait, NULL);
        pid_t pid = clone(use_libc, stack + STACK, SIGCHLD, NULL);
        CHECK_SYS(pid);
        expect_exit(wait_child_for(pid, 20), 0);
    }
    free(stack);
}

static void keep(void) {
    warm_threads(THREADS);
    CHECK_EQ(cache()->idle, THREADS);
    sleep_ms(1500);
    CHECK_EQ(cache()->idle, THREADS);
    CHECK_EQ(cache()->culled, 0);
    still_works();
}

static void max_age(void) {
    warm_threads(THREADS);
    await_idle(0);
    CHECK_EQ(cache()->culled, THREADS);
    expect_threads_at_most(1);
    still_works();
    // One that is needed again and again is not old, the others are.
    for (int64_t end = now_ms() + PATIENCE_MS; cache()->idle > 1 && now_ms() < end;) {
        run_thread(do_nothing, NULL);
        sleep_ms(1);
    }
    CHECK_EQ(cache()->idle, 1);
    await_idle(0);
}

static void seconds(void) {
    warm_threads(THREADS);
    await_idle(THREADS - 1); // after a second in all, not each
    await_idle(1);
    await_idle(0);
    still_works();
}

// After 120 seconds in all. One thread alone would be idle for two minutes before it ends; of 64 the first ends after two
// seconds, and k of them can only be left when k + 1 have been idle for more than 120 seconds together.
static void seconds_sum(void) {
    enum { MANY = 64, LEFT = 48, BOUND_MS = 120000 };
    int64_t begin = now_ms();
    warm_threads(MANY);
    for (uint64_t left = MANY, end = (uint64_t)begin + PATIENCE_MS;
         left > LEFT && (uint64_t)now_ms() < end;) {
        left = cache()->idle;
        int64_t since = now_ms() - begin + 1;
        CHECK(left == MANY || (int64_t)(left + 1) * since >= BOUND_MS, "%d threads are left after %d ms",
              (int)left, (int)since);
        sleep_ms(5);
    }
    CHECK(cache()->idle <= LEFT, "%d threads are still idle", (int)cache()->idle);
    still_works();
}

static long resident_kb(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%*s %ld", &pages) == 1, "no statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

enum { STACK_KB = 56 };
static void *use_stack(void *barrier) {
    volatile char stack[STACK_KB * 1024];
    for (size_t i = 0; i < sizeof stack; i += 512)
        stack[i] = 1;
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    return NULL;
}

static void trim(void) {
    enum { MANY = 64 };
    pthread_t threads[MANY];
    pthread_barrier_t barrier;
    long before = resident_kb();
    for (int round = 0; round < 2; round++) {
        int wanted = MANY - round; // a thread that does its chores is passed over, and not missed
        CHECK_OK(pthread_barrier_init(&barrier, NULL, (unsigned)wanted));
        for (int i = 0; i < wanted; i++)
            CHECK_OK(pthread_create(&threads[i], NULL, use_stack, &barrier));
        for (int i = 0; i < wanted; i++)
            CHECK_OK(pthread_join(threads[i], NULL));
        CHECK_OK(pthread_barrier_destroy(&barrier));
        wait_until_settled(0);
        int64_t end = now_ms() + PATIENCE_MS;
        while (resident_kb() > before + MANY * STACK_KB / 2 && now_ms() < end)
            sleep_ms(5);
        CHECK(resident_kb() <= before + MANY * STACK_KB / 2, "%ld KiB instead of %ld and a little",
              resident_kb(), before);
        CHECK_EQ(cache()->idle, MANY);
    }
    run_thread(do_nothing, NULL);
}

static const char *pressure_file;
static void write_total(unsigned long long us) {
    FILE *file = fopen(pressure_file, "w");
    CHECK(file != NULL, "%s: %s", pressure_file, strerror(errno));
    fprintf(file, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\n", us);
    fclose(file);
}

static void pressure(void) {
    warm_threads(THREADS);
    sleep_ms(2500);
    CHECK_EQ(cache()->idle, THREADS);
    unsigned long long total = 1000;
    for (int64_t end = now_ms() + PATIENCE_MS; cache()->idle > 0 && now_ms() < end; sleep_ms(50))
        write_total(total += 1000000);
    await_idle(0);
    still_works();
}

// Says that it is ready, by its standard output.
static void pressure_wait(void) {
    warm_threads(THREADS);
    CHECK_SYS(write(STDOUT_FILENO, "\n", 1));
    await_idle(0);
}

// A process of its own with idle threads of its own. Where its standard output can be read is *ready.
static pid_t start_waiter(int *ready) {
    int ends[2];
    CHECK_SYS(pipe(ends));
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "policy", "pressure-wait", (char *)NULL);
        _exit(CHECK_EXIT_CANNOT);
    }
    close(ends[1]);
    *ready = ends[0];
    return pid;
}

static void pressure_together(void) {
    int ready;
    char byte;
    pid_t waiter = start_waiter(&ready);
    warm_threads(THREADS);
    CHECK_EQ(read(ready, &byte, 1), 1);
    siginfo_t info = {.si_pid = 0};
    unsigned long long total = 1000;
    for (int64_t end = now_ms() + PATIENCE_MS; (cache()->idle > 0 || info.si_pid == 0) && now_ms() < end;
         sleep_ms(50)) {
        write_total(total += 1000000);
        CHECK_SYS(waitid(P_PID, (id_t)waiter, &info, WEXITED | WNOHANG | WNOWAIT));
    }
    await_idle(0);
    expect_exit(wait_child_for(waiter, 1), 0);
}

#ifdef POLICY_TLS // a program of its own: the others have threads with small stacks
static __thread char large[1 << 20];
static void *use_large(void *barrier) {
    for (size_t i = 0; i < sizeof large; i += 512)
        CHECK(large[i] == 0, "byte %zu is %d", i, large[i]);
    memset(large, 1, sizeof large);
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    return NULL;
}
static void *only_wait(void *barrier) {
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    return NULL;
}

static void trim_tls(void) {
    enum { MANY = 32, ALL_KB = MANY * (sizeof large >> 10) };
    static pthread_t threads[MANY];
    long before = resident_kb();
    for (int round = 0; round < 2; round++) {
        run_at_once(threads, MANY, use_large);
        wait_until_settled(0);
        int64_t end = now_ms() + PATIENCE_MS;
        while (resident_kb() > before + ALL_KB / 4 && now_ms() < end)
            sleep_ms(5);
        CHECK(resident_kb() <= before + ALL_KB / 4, "%ld KiB instead of %ld and a little", resident_kb(),
              before);
        CHECK_EQ(cache()->idle, MANY);
    }
    run_at_once(threads, MANY, only_wait);
    CHECK_EQ(cache()->created, MANY);
    CHECK(resident_kb() <= before + ALL_KB / 4, "%ld KiB instead of %ld and a little", resident_kb(), before);
}
#endif

static void *tell(void *number) {
    return number;
}

static void unjoined(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, tell, (void *)(i + 1)));
    expect_threads_at_most(1);
    CHECK_EQ(cache()->idle, 0);
    CHECK_EQ(cache()->retired, THREADS);
    for (intptr_t i = 0; i < THREADS; i++) {
        void *result;
        CHECK_EQ(pthread_kill(threads[i], 0), 0);
        CHECK_OK(pthread_join(threads[i], &result));
        CHECK_EQ((intptr_t)result, i + 1);
    }
    // Joined while they are about to leave.
    for (int round = 0; round < 40; round++) {
        for (intptr_t i = 0; i < THREADS; i++)
            CHECK_OK(pthread_create(&threads[i], NULL, tell, (void *)(i + 1)));
        sleep_ms(45 + round);
        for (intptr_t i = 0; i < THREADS; i++) {
            void *result;
            CHECK_OK(i % 2 == 0 ? pthread_join(threads[i], &result) : pthread_detach(threads[i]));
            CHECK(i % 2 != 0 || (intptr_t)result == i + 1, "another thread's result");
        }
    }
    await_idle(0);
    still_works();
}

enum { SPARE_NEW = 512, SPARE_OTHER_KINDS = 64 }; // of src/kthread/how_many.h

static void late_joins(void) {
    enum { MANY = 1200, MOST = SPARE_NEW + 16 };
    static pthread_t threads[MANY];
    for (int wave = 0; wave < 6; wave++) {
        for (intptr_t i = 0; i < MANY; i++)
            CHECK_OK(pthread_create(&threads[i], NULL, tell, (void *)(i + 1)));
        sleep_ms(50);
        uint64_t reused = cache()->reused;
        expect_threads_at_most((int)(MOST + 2 * reused)); // those reused just now, and as many more
        for (intptr_t i = 0; i < MANY; i++) {
            void *result;
            CHECK_OK(pthread_join(threads[i], &result));
            CHECK_EQ((intptr_t)result, i + 1);
        }
    }
    // Waves that come again are worth more and more of them.
    CHECK(cache()->reused > 3 * MANY, "only %llu were reused", (unsigned long long)cache()->reused);
}

static void never_joined(void) {
    enum { MANY = SPARE_NEW + 100 };
    pthread_t thread;
    for (int i = 0; i < MANY; i++)
        CHECK_OK(pthread_create(&thread, NULL, do_nothing, NULL));
    expect_threads_at_most(1);
    still_works();
}

static void *wait_for_all(void *barrier) {
    pthread_barrier_wait((pthread_barrier_t *)barrier);
    return NULL;
}

static void run_detached(unsigned count) {
    static pthread_barrier_t barrier; // the threads may still be in it when this returns
    pthread_t thread;
    pthread_attr_t attributes;
    CHECK_OK(pthread_barrier_init(&barrier, NULL, count + 1));
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setstacksize(&attributes, 64 * 1024));
    CHECK_OK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED));
    for (unsigned i = 0; i < count; i++)
        CHECK_OK(pthread_create(&thread, &attributes, wait_for_all, &barrier));
    CHECK_OK(pthread_attr_destroy(&attributes));
    pthread_barrier_wait(&barrier);
    wait_until_settled(0);
}

static uint64_t retired_by_limit(void) {
    typedef const char *(*reason_function)(unsigned);
    const reason_function reason = (reason_function)dlsym(RTLD_DEFAULT, "thrum_cache_retire_reason");
    unsigned i = 0;
    while (reason(i) != NULL && strcmp(reason(i), "idle limit reached") != 0)
        i++;
    PREMISE(reason(i) != NULL, "there is no such reason any more");
    return cache()->retired_by[i];
}

static void detached(void) {
    enum { MANY = 1200, MOST = SPARE_NEW + 16 };
    run_detached(MANY);
    expect_threads_at_most(MOST + 1);
    CHECK(cache()->idle <= MOST, "%llu are idle", (unsigned long long)cache()->idle);
    CHECK_EQ(retired_by_limit(), cache()->retired); // none waits to be joined
    run_detached(MANY);
    CHECK(cache()->reused >= 400, "only %llu were reused", (unsigned long long)cache()->reused);
    expect_threads_at_most((int)(MOST + 2 * cache()->reused + 1)); // those reused just now, and as many more
}

// The limit is one for all of the user's processes.
static void few_tasks(void) {
    enum { LIMIT = 320, MANY = 100 };
    struct rlimit limit;
    CHECK_SYS(getrlimit(RLIMIT_NPROC, &limit));
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < LIMIT)
        CANNOT("the limit on processes is %llu already", (unsigned long long)limit.rlim_max);
    limit.rlim_cur = LIMIT;
    CHECK_SYS(setrlimit(RLIMIT_NPROC, &limit));
    run_detached(MANY);
    expect_threads_at_most(1 + LIMIT / 16 + 1);
}

// Exactly so many are kept of a first burst, and all of them are of use for the next.
static void expect_kept(uint64_t limit, uint64_t burst) {
    wait_until_settled(0);
    CHECK_EQ(cache()->created, burst);
    CHECK_EQ(cache()->idle, limit);
    CHECK_EQ(cache()->retired, burst - limit);
}

enum { LIMIT = 900, ABOVE = LIMIT + 100, FEW = 8, ABOVE_FEW = FEW + 100 };

static void max_idle(void) {
    static pthread_t threads[ABOVE];
    run_at_once(threads, ABOVE, wait_for_all);
    expect_kept(LIMIT, ABOVE);
    run_at_once(threads, LIMIT, wait_for_all);
    CHECK_EQ(cache()->reused, LIMIT);
}

static void max_idle_detached(void) {
    run_detached(ABOVE);
    expect_kept(LIMIT, ABOVE);
    CHECK_EQ(retired_by_limit(), ABOVE - LIMIT);
    run_detached(LIMIT);
    CHECK_EQ(cache()->reused, LIMIT);
}

static void max_idle_few(void) {
    static pthread_t threads[ABOVE_FEW];
    run_at_once(threads, ABOVE_FEW, wait_for_all);
    expect_kept(FEW, ABOVE_FEW);
    CHECK_EQ(retired_by_limit(), ABOVE_FEW - FEW);
    run_at_once(threads, ABOVE_FEW, wait_for_all);
    CHECK_EQ(cache()->reused, FEW);
}

// One after the other; a thread stands on the idle list before the next is asked for.
static void run_one(size_t stack_size) {
    pthread_t thread;
    pthread_attr_t attributes;
    int64_t busy = busy_threads();
    CHECK_OK(pthread_attr_init(&attributes));
    CHECK_OK(pthread_attr_setstacksize(&attributes, stack_size));
    CHECK_OK(pthread_create(&thread, &attributes, do_nothing, NULL));
    CHECK_OK(pthread_attr_destroy(&attributes));
    CHECK_OK(pthread_join(thread, NULL));
    wait_until_settled(busy);
}

enum { STACK = 1 << 20 };

static void kinds(void) {
    enum { KINDS = 40, ROUNDS = 20 };
    for (size_t i = 0; i < KINDS * ROUNDS; i++)
        run_one(STACK + i % KINDS * 4096);
    CHECK_EQ(cache()->created, KINDS);
    CHECK_EQ(cache()->reused, KINDS * (ROUNDS - 1));
    CHECK_EQ(cache()->culled, 0);
    // Kinds without end do not pile up.
    for (size_t i = 0; i < 200; i++)
        run_one(STACK + (KINDS + i) * 4096);
    CHECK(cache()->idle <= SPARE_OTHER_KINDS + 1, "%llu are idle", (unsigned long long)cache()->idle);
}

// With a rest of 500 ms.
static void rest(void) {
    enum { MANY = 150 };
    for (int i = 0; i < MANY; i++)
        run_one(STACK);
    uint64_t made = cache()->created;
    CHECK_EQ(cache()->culled, 0);
    CHECK_EQ(cache()->idle, made);
    sleep_ms(600);
    for (uint64_t i = 0; i < made; i++)
        run_one(STACK);
    CHECK_EQ(cache()->created, made);
    CHECK_EQ(cache()->culled, 0);
}

// With a rest of 500 ms and at most 50 idle.
static void rest_limit(void) {
    enum { LIMIT = 50, MANY = 3 * LIMIT };
    for (int i = 0; i < MANY; i++)
        run_one(STACK);
    CHECK_EQ(cache()->idle, LIMIT);
    CHECK_EQ(cache()->culled, 0);
    sleep_ms(600);
    uint64_t reused = cache()->reused;
    for (int i = 0; i < LIMIT; i++)
        run_one(STACK);
    CHECK_EQ(cache()->reused, reused + LIMIT);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"default", by_default},
             {"keep", keep},
             {"decay", decay},
             {"one-thread", one_thread},
             {"copies", copies},
#ifdef POLICY_TLS
             {"trim-tls", trim_tls},
#endif
             {"detached", detached},
             {"few-tasks", few_tasks},
             {"max-idle", max_idle},
             {"max-idle-detached", max_idle_detached},
             {"max-idle-few", max_idle_few},
             {"max-age", max_age},
             {"seconds", seconds},
             {"seconds-sum", seconds_sum},
             {"trim", trim},
             {"pressure", pressure},
             {"pressure-together", pressure_together},
             {"pressure-wait", pressure_wait},
             {"late-joins", late_joins},
             {"unjoined", unjoined},
             {"never-joined", never_joined},
             {"kinds", kinds},
             {"rest", rest},
             {"rest-limit", rest_limit}};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, argv[1]) == 0) {
            pressure_file = argc > 2 ? argv[2] : NULL;
            cases[i].run();
            return 0;
        }
    fprintf(stderr, "usage: policy CASE [FILE]\n");
    return 2;
}
