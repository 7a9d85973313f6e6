// SPDX-License-Identifier: Apache-2.0
//
// A program whose threads wait in a way that is known, for stat_sampler_test.cpp: until it is ended, but for the modes
// `end` and `exec`, and those for stat_usage_test.cpp: `crowd`, `daemon`, `confined`. The mode `elsewhere` is told after the
// number of threads where the mutex lies that they want: `stack`, `thread-stack`, `heap`, `arena`, `mapping`. The test finds
// lines by the words behind "HERE". Built several times, with and without frame pointers.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../keep.h"
#include "../../refuse_call.h"

pthread_mutex_t the_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t none;
static volatile long sink;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "sampled: %s\n", what);
    exit(1);
}

static KEEP int draw(void) {
    return (int)(random() % 365); /* HERE draw */
}

static void *draw_for_ever(void *unused) {
    for (;;)
        sink += draw();
    return unused;
}

static KEEP int ask_hour(void) {
    const time_t moment = 1500000000 + (sink & 0xffff);
    struct tm parts;
    if (localtime_r(&moment, &parts) == NULL) /* HERE hour */
        return -1;
    return parts.tm_hour;
}

static void *ask_for_ever(void *unused) {
    for (;;)
        sink += ask_hour();
    return unused;
}

static KEEP int change(void) {
    if (setenv("SAMPLED", sink % 2 != 0 ? "one" : "other", 1) != 0) /* HERE change */
        return -1;
    return 1;
}

static void *change_for_ever(void *unused) {
    for (;;)
        sink += change();
    return unused;
}

static KEEP void put(void) {
    putc('x', stdout); /* HERE put */
    sink++;
}

static void *put_one(void *unused) {
    put();
    return unused;
}

static inline __attribute__((always_inline)) void take(void) {
    pthread_mutex_lock(&the_mutex); /* HERE take */
    sink++;
    pthread_mutex_unlock(&the_mutex);
}

static KEEP long inner(long n) {
    take(); /* HERE inner */
    return n + sink;
}

static KEEP long middle(long n) {
    char text[64];
    snprintf(text, sizeof text, "%ld", n);
    long result = inner(n + text[0]); /* HERE middle */
    return result + text[1];
}

static KEEP long outer(long n) {
    return middle(n + 1) * 2; /* HERE outer */
}

static void *take_for_ever(void *unused) {
    for (;;)
        sink += outer(sink); /* HERE thread */
    return unused;
}

// A mutex that is no symbol's: where it lies, the mode says.
static pthread_mutex_t *elsewhere;

static KEEP void take_elsewhere(void) {
    pthread_mutex_lock(elsewhere); /* HERE elsewhere */
    sink++;
    pthread_mutex_unlock(elsewhere);
}

static void *take_elsewhere_for_ever(void *unused) {
    for (;;)
        take_elsewhere();
    return unused;
}

static KEEP void wait_for_work(void) {
    pthread_mutex_lock(&other_mutex);
    for (;;)
        pthread_cond_wait(&never, &other_mutex); /* HERE condition */
}

static void *wait_at_condition(void *unused) {
    wait_for_work();
    return unused;
}

static void *wait_at_semaphore(void *unused) {
    sem_wait(&none);
    return unused;
}

// One thread at a time gets past, and sleeps with it.
static sem_t one_place;
static int set_of_one = -1;

static KEEP void ask_slowly(void) {
    if (usleep(5000) != 0) // no jump into it: its frame is to be seen
        fail("usleep");
}

static void *lock_by_semaphore(void *unused) {
    for (;;) {
        while (sem_wait(&one_place) != 0)
            continue;
        ask_slowly();
        sem_post(&one_place);
    }
    return unused;
}

static void move_of_set(short by) {
    struct sembuf operation = {.sem_num = 0, .sem_op = by};
    if (semop(set_of_one, &operation, 1) != 0)
        fail("semop");
}

static void *lock_by_set(void *unused) {
    for (;;) {
        move_of_set(-1);
        ask_slowly();
        move_of_set(1);
    }
    return unused;
}

// A pool with one task at a time, which the first thread brings once the one before is done.
static sem_t work, is_done;

static void *serve_in_pool(void *unused) {
    static int players;
    const bool brings = __atomic_fetch_add(&players, 1, __ATOMIC_RELAXED) == 0;
    for (;;) {
        if (brings)
            sem_post(&work);
        while (sem_wait(brings ? &is_done : &work) != 0)
            continue;
        if (!brings) {
            ask_slowly();
            sem_post(&is_done);
        }
    }
    return unused;
}

// A set outlives its process, which is killed: another process removes it then.
static void remove_set_at_end(void) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        fail("pipe");
    if (fork() != 0)
        return;
    close(ends[1]);
    if (read(ends[0], &byte, 1) == 0)
        semctl(set_of_one, 0, IPC_RMID);
    _exit(0);
}

static void make_semaphores(const char *mode) {
    if (sem_init(&one_place, 0, 1) != 0 || sem_init(&work, 0, 0) != 0 || sem_init(&is_done, 0, 0) != 0)
        fail("no semaphore");
    if (strcmp(mode, "set-lock") != 0)
        return;
    set_of_one = semget(IPC_PRIVATE, 1, 0600);
    if (set_of_one < 0)
        fail("no set");
    remove_set_at_end();
    move_of_set(1);
}

static void *wait_at_barrier(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *sleep_long(void *unused) {
    for (;;)
        usleep(1000000);
    return unused;
}

static void *read_input(void *unused) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || read(ends[0], &byte, 1) != 0)
        fail("a pipe without a writer");
    return unused;
}

static void *spin(void *unused) {
    for (;;)
        sink++;
    return unused;
}

static void *end(void *unused) {
    return unused;
}

static pthread_t start(void *(*function)(void *)) {
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, 64 << 10) != 0 ||
        pthread_create(&thread, &attributes, function, NULL) != 0)
        fail("no thread");
    return thread;
}

static void hold_for_ever(pthread_mutex_t *mutex) {
    for (;;) {
        pthread_mutex_lock(mutex);
        usleep(20000);
        pthread_mutex_unlock(mutex);
    }
}

static void make_elsewhere(void *memory) {
    if (memory == NULL || pthread_mutex_init(memory, NULL) != 0)
        fail("no mutex");
    __atomic_store_n(&elsewhere, memory, __ATOMIC_RELEASE);
}

// By another thread than the first: from there malloc() takes memory of an arena of its own.
static void *hold_from_arena(void *unused) {
    make_elsewhere(malloc(sizeof(pthread_mutex_t)));
    hold_for_ever(elsewhere);
    return unused;
}

static void *hold_in_frame(void *unused) {
    pthread_mutex_t mutex;
    make_elsewhere(&mutex);
    hold_for_ever(elsewhere);
    return unused;
}

// As processes share it.
static void *map_memory(void) {
    void *const memory =
        mmap(NULL, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// The first thread holds it, or one that is started for that does.
static void hold_elsewhere(const char *where, int threads) {
    pthread_mutex_t mutex; // in this frame
    const bool is_frame = strcmp(where, "thread-stack") == 0;
    if (strcmp(where, "stack") == 0)
        make_elsewhere(&mutex);
    else if (strcmp(where, "heap") == 0)
        make_elsewhere(malloc(sizeof mutex));
    else if (strcmp(where, "mapping") == 0)
        make_elsewhere(map_memory());
    else
        start(is_frame ? hold_in_frame : hold_from_arena);
    while (__atomic_load_n(&elsewhere, __ATOMIC_ACQUIRE) == NULL)
        usleep(1000);
    for (int i = 0; i < threads; i++)
        start(take_elsewhere_for_ever);
    if (is_frame || strcmp(where, "arena") == 0)
        sleep_long(NULL);
    hold_for_ever(elsewhere);
}

static KEEP void join(pthread_t thread) {
    pthread_join(thread, NULL); /* HERE join */
    sink++;
}

// Two that wake each other, each in turns at two places, at semaphores of its own.
static sem_t first_place[2], second_place[2];
static int players;

static KEEP void wait_first(int player) {
    sem_wait(&first_place[player]);
    sink++;
}

static KEEP void wait_second(int player) {
    sem_wait(&second_place[player]);
    sink++;
}

static void *take_turns(void *unused) {
    const int player = __atomic_fetch_add(&players, 1, __ATOMIC_RELAXED) % 2;
    for (;;) {
        wait_first(player);
        sem_post(player == 0 ? &first_place[1] : &second_place[0]);
        wait_second(player);
        sem_post(player == 0 ? &second_place[1] : &first_place[0]);
    }
    return unused;
}

static void storm(int threads) {
    for (;;) {
        pthread_t created[64];
        for (int i = 0; i < threads && i < 64; i++)
            created[i] = start(end);
        for (int i = 0; i < threads && i < 64; i++)
            pthread_join(created[i], NULL);
    }
}

// All of them wait for the lock of stdout, for some seconds: on a busy machine it takes long to look at so many.
static void crowd(int threads) {
    flockfile(stdout);
    for (int i = 0; i < threads; i++)
        start(put_one);
    usleep(4000000);
    printf("%d threads\n", threads);
    exit(3);
}

// Continues in the background, without the first process and its streams, until it is killed; a minute at most. The
// first one prints its number.
static void go_to_background(void) {
    usleep(200000);
    const pid_t other = fork();
    if (other != 0) {
        printf("%d\n", (int)other);
        fflush(stdout);
        _exit(4);
    }
    setsid();
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    sleep(60);
    _exit(0);
}

// A program as in a container that allows no looking at others' memory and no perf events.
static void be_confined(char **words) {
    if (!refuse_call(SYS_process_vm_readv, EPERM) || !refuse_call(SYS_perf_event_open, EPERM) ||
        !refuse_call(SYS_ptrace, EPERM))
        fail("no filter");
    execv(words[0], words);
    fail("exec");
}

// Each has a lock and wants another's; the owners are known. In the mode `ended` a holder has ended with its lock.
static pthread_mutex_t own_lock[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static KEEP void want(int whose) {
    pthread_mutex_lock(&own_lock[whose]); /* HERE want */
    sink++;
}

static void *want_each_others(void *unused) {
    const int player = __atomic_fetch_add(&players, 1, __ATOMIC_RELAXED) % 2;
    pthread_mutex_lock(&own_lock[player]);
    while (__atomic_load_n(&players, __ATOMIC_RELAXED) < 2)
        usleep(1000);
    usleep(50000);
    want(1 - player);
    return unused;
}

static void *end_with_lock(void *unused) {
    if (__atomic_fetch_add(&players, 1, __ATOMIC_RELAXED) == 0) {
        pthread_mutex_lock(&own_lock[0]);
        usleep(200000); // so that it is seen
        return unused;
    }
    usleep(100000);
    want(0);
    return unused;
}

static void *(*function_of(const char *mode))(void *) {
    static const struct {
        const char *mode;
        void *(*function)(void *);
    } modes[] = {{"random", draw_for_ever},
                 {"localtime", ask_for_ever},
                 {"setenv", change_for_ever},
                 {"stream", put_one},
                 {"mutex", take_for_ever},
                 {"condition", wait_at_condition},
                 {"semaphore", wait_at_semaphore},
                 {"semaphore-lock", lock_by_semaphore},
                 {"set-lock", lock_by_set},
                 {"pool", serve_in_pool},
                 {"barrier", wait_at_barrier},
                 {"sleep", sleep_long},
                 {"read", read_input},
                 {"spin", spin},
                 {"turns", take_turns},
                 {"deadlock", want_each_others},
                 {"ended", end_with_lock},
                 {"main-ends", sleep_long}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i].mode) == 0)
            return modes[i].function;
    return NULL;
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "";
    const int threads = count > 2 ? atoi(words[2]) : 1;
    if (strcmp(mode, "end") == 0)
        return 0;
    if (strcmp(mode, "exec") == 0) {
        usleep(100000);
        execl(words[0], words[0], "stream", "2", (char *)NULL);
        fail("exec");
    }
    if (strcmp(mode, "crowd") == 0)
        crowd(threads);
    if (strcmp(mode, "daemon") == 0)
        go_to_background();
    if (strcmp(mode, "confined") == 0 && count > 2)
        be_confined(words + 2);
    if (strcmp(mode, "fork") == 0 && fork() == 0) {
        usleep(500000);
        _exit(0);
    }
    if (strcmp(mode, "storm") == 0)
        storm(threads);
    if (strcmp(mode, "elsewhere") == 0 && count > 3)
        hold_elsewhere(words[3], threads);
    if (strcmp(mode, "fork") == 0)
        sleep_long(NULL);
    void *(*function)(void *) = function_of(mode);
    if (function == NULL)
        fail("which mode?");
    if (pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1) != 0 || sem_init(&none, 0, 0) != 0)
        fail("no barrier");
    make_semaphores(mode);
    if (strcmp(mode, "stream") == 0)
        flockfile(stdout);
    for (int i = 0; i < 2; i++)
        if (sem_init(&first_place[i], 0, i == 0) != 0 || sem_init(&second_place[i], 0, 0) != 0)
            fail("no places");
    pthread_t last = 0;
    for (int i = 0; i < threads; i++) {
        last = start(function);
        while (function == end_with_lock && __atomic_load_n(&players, __ATOMIC_RELAXED) <= i)
            usleep(1000); // the last one is not to be the one that ends
    }
    if (strcmp(mode, "main-ends") == 0)
        pthread_exit(NULL);
    if (strcmp(mode, "mutex") == 0)
        hold_for_ever(&the_mutex);
    join(last);
    return 0;
}
