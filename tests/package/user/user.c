// SPDX-License-Identifier: Apache-2.0
/* A program as a user of an installed thrum might write it; it uses every static initialiser. Also read by a C++
 * compiler, through user.cpp. Ends with 0 if all is as it should be. */
#include <stddef.h>
#include <thrum/pool.h>
#include <thrum/thrum.h>

enum { COUNT = 100 };

static thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER, recursive = THRUM_MUTEX_RECURSIVE_INITIALIZER;
static thrum_cond_t changed = THRUM_COND_INITIALIZER;
static thrum_rwlock_t rwlock = THRUM_RWLOCK_INITIALIZER;
static thrum_sem_t sem = THRUM_SEM_INITIALIZER(1);
static thrum_barrier_t barrier = THRUM_BARRIER_INITIALIZER(2);
static thrum_event_t event = THRUM_EVENT_INITIALIZER;
static thrum_latch_t latch = THRUM_LATCH_INITIALIZER(COUNT);
static thrum_eventual_t eventual = THRUM_EVENTUAL_INITIALIZER;
static void *values[2];
static thrum_future_t future = THRUM_FUTURE_INITIALIZER(values, 2);
static thrum_once_t once = THRUM_ONCE_INITIALIZER;
static long held[4];
static thrum_channel_t buffered = THRUM_CHANNEL_INITIALIZER(held);
static thrum_channel_t unbuffered = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(long));
static thrum_channel_t unbounded = THRUM_CHANNEL_UNBOUNDED_INITIALIZER(sizeof(long));
static long count, calls;

static void call(void *number) {
    ++*(long *)number;
}

/* One of many, under a lock. */
static void *add(void *number) {
    thrum_mutex_lock(&mutex);
    count += *(long *)number;
    thrum_cond_signal(&changed);
    thrum_mutex_unlock(&mutex);
    thrum_once_call(&once, call, &calls);
    thrum_latch_count_down(&latch, 1);
    return number;
}

/* The other side of what other_side() does. */
static void *one_side(void *arg) {
    long number;
    thrum_barrier_wait(&barrier);
    thrum_event_set(&event);
    thrum_eventual_set(&eventual, arg);
    thrum_future_set(&future, arg);
    thrum_future_set(&future, arg);
    while (thrum_channel_receive(&unbuffered, &number) == 0)
        thrum_channel_send(&buffered, &number);
    thrum_channel_close(&buffered);
    return arg;
}

static int other_side(thrum_t thread, void *arg) {
    void *result = NULL;
    long sum = 0, number;
    thrum_barrier_wait(&barrier);
    thrum_event_wait(&event);
    if (thrum_eventual_get(&eventual) != arg)
        return 10;
    thrum_future_wait(&future);
    if (values[0] != arg || values[1] != arg)
        return 11;
    for (number = 1; number <= 3; number++)
        if (thrum_channel_send(&unbuffered, &number) != 0)
            return 12;
    thrum_channel_close(&unbuffered);
    while (thrum_channel_receive(&buffered, &number) == 0)
        sum += number;
    if (sum != 6 || thrum_channel_send(&unbounded, &sum) != 0 || thrum_channel_count(&unbounded) != 1)
        return 13;
    thrum_channel_destroy(&unbounded);
    return thrum_join_until(thread, &result, thrum_now() + 60 * THRUM_S) == 0 && result == arg ? 0 : 14;
}

static int locks(void) {
    thrum_mutex_lock(&recursive);
    thrum_mutex_lock(&recursive);
    thrum_rwlock_read_lock(&rwlock);
    thrum_sem_wait(&sem);
    return thrum_mutex_unlock(&recursive) | thrum_mutex_unlock(&recursive) | thrum_rwlock_unlock(&rwlock) |
           thrum_sem_post(&sem);
}

static int many(void) {
    static long one = 1;
    static thrum_t threads[COUNT];
    int i;
    if (thrum_spawn_many(COUNT, threads, NULL, add, &one, 0) != 0)
        return 20;
    thrum_mutex_lock(&mutex);
    while (count < COUNT)
        thrum_cond_wait(&changed, &mutex);
    thrum_mutex_unlock(&mutex);
    thrum_latch_wait(&latch);
    for (i = 0; i < COUNT; i++)
        if (thrum_join(threads[i], NULL) != 0)
            return 21;
    return calls == 1 ? 0 : 22;
}

int main(void) {
    static int thing;
    thrum_attr_t attr;
    thrum_pool_t pool;
    thrum_t thread;
    int wrong;
    thrum_attr_init(&attr);
    if (thrum_init(NULL) != 0 || thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED) != 0 ||
        thrum_pool_create(&pool, THRUM_POOL_FIFO) != 0)
        return 1;
    if (thrum_spawn(&thread, &attr, one_side, &thing) != 0)
        return 2;
    wrong = other_side(thread, &thing);
    if (wrong == 0)
        wrong = locks();
    if (wrong == 0)
        wrong = many();
    if (wrong == 0)
        wrong = thrum_pool_destroy(pool);
    return wrong != 0 ? wrong : thrum_fini();
}
