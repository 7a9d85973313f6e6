// SPDX-License-Identifier: Apache-2.0
//
// Row unseen: what a thread has done by system calls that no library can see, and that the kernel can be asked about:
// io_uring, and its scheduling.
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "child.h"
#include "raw.h"

enum { ENTRIES = 4, LONG_MS = 5 };

static long raw3(long number, long a, long b, long c) {
    return raw_call(number, a, b, c, 0, 0, 0);
}

// ---- io_uring: requests that are pending die with the thread that made them -----------------------------------------

static struct {
    int fd, pipe[2];
    struct io_uring_params params;
    char *sq, *cq;
    struct io_uring_sqe *entries;
    char buffer[64];
} ring;

static char *map_ring(size_t size, long offset) {
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, offset);
    CHECK(at != MAP_FAILED, "mmap: %s", strerror(errno));
    return at;
}

static void make_ring(void) {
    CHECK_SYS(pipe(ring.pipe));
    ring.fd = (int)raw_call(SYS_io_uring_setup, ENTRIES, (long)&ring.params, 0, 0, 0, 0);
    if (ring.fd < 0)
        CANNOT("io_uring_setup: %s", strerror(-ring.fd));
    // A ring that is not registered is refused as a bad descriptor: the kernel is new enough to be asked.
    if (raw_call(SYS_io_uring_enter, 0, 0, 0, IORING_ENTER_REGISTERED_RING, 0, 0) != -EBADF)
        CANNOT("this kernel has no registered rings");
    ring.sq = map_ring(ring.params.sq_off.array + ENTRIES * sizeof(unsigned), IORING_OFF_SQ_RING);
    ring.cq =
        map_ring(ring.params.cq_off.cqes + 2 * ENTRIES * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.entries = (struct io_uring_sqe *)map_ring(ENTRIES * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
}

static void *submit_read(void *arg) {
    ring.entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                            .fd = ring.pipe[0],
                                            .addr = (uintptr_t)ring.buffer,
                                            .len = sizeof ring.buffer,
                                            .off = (uint64_t)-1};
    ((unsigned *)(ring.sq + ring.params.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(ring.sq + ring.params.sq_off.tail), 1, __ATOMIC_RELEASE);
    CHECK_EQ(raw_call(SYS_io_uring_enter, ring.fd, 1, 0, 0, 0, 0), 1);
    return arg;
}

static unsigned completions(void) {
    return __atomic_load_n((unsigned *)(ring.cq + ring.params.cq_off.tail), __ATOMIC_ACQUIRE);
}

static void pending_request(void) {
    make_ring();
    warm_threads(2);
    run_thread(submit_read, NULL);
    sleep_ms(20);
    CHECK_SYS(write(ring.pipe[1], "late", 4)); // the kernel may find the request dead only now
    for (int i = 0; i < 500 && completions() == 0; i++)
        sleep_ms(1);
    CHECK_EQ(completions(), 1);
    const struct io_uring_cqe *done = (struct io_uring_cqe *)(ring.cq + ring.params.cq_off.cqes);
    CHECK_EQ(done->res, -ECANCELED);
    CHECK(ring.buffer[0] == '\0', "an ended thread read '%s'", ring.buffer);
}

// ---- scheduling, in threads that live for a while --------------------------------------------------------------------

static void *renice(void *arg) {
    CHECK_EQ(raw3(SYS_setpriority, PRIO_PROCESS, 0, 7), 0);
    sleep_ms(LONG_MS);
    return arg;
}
static void *nice_value(void *arg) {
    (void)arg;
    return (void *)(intptr_t)getpriority(PRIO_PROCESS, 0);
}
static void priority(void) {
    void *seen;
    int own = getpriority(PRIO_PROCESS, 0);
    warm_threads(2);
    run_thread(renice, NULL);
    for (int i = 0; i < 4; i++) {
        run_thread_result(nice_value, NULL, &seen);
        CHECK_EQ((intptr_t)seen, own);
    }
}

static void *set_batch(void *arg) {
    struct sched_param none = {0};
    CHECK_EQ(raw3(SYS_sched_setscheduler, 0, SCHED_BATCH, (long)&none), 0);
    sleep_ms(LONG_MS);
    return arg;
}
static void *policy_value(void *arg) {
    (void)arg;
    return (void *)(intptr_t)sched_getscheduler(0);
}
static void policy(void) {
    void *seen;
    int own = sched_getscheduler(0);
    warm_threads(2);
    run_thread(set_batch, NULL);
    for (int i = 0; i < 4; i++) {
        run_thread_result(policy_value, NULL, &seen);
        CHECK_EQ((intptr_t)seen, own);
    }
}

static const struct check_case cases[] = {
    {"pending_request", pending_request, FAILS_WHEN_SKIPPED},
    {"priority", priority, FAILS_WHEN_SKIPPED},
    {"policy", policy, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
