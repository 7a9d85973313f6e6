// SPDX-License-Identifier: Apache-2.0
//
// Row kernel-ties: an io_uring that a thread registered for itself (IORING_REGISTER_RING_FDS) is no later thread's.
#include <linux/io_uring.h>

#include "child.h"

enum { ENTRIES = 4 };

static int ring_fd;

// Enters the ring by the number that it was registered under.
static int enter_registered(void) {
    return syscall(SYS_io_uring_enter, 0, 0, 0, IORING_ENTER_REGISTERED_RING, NULL, 0) == -1 ? errno : 0;
}

static void *register_ring(void *arg) {
    struct io_uring_rsrc_update place = {.offset = 0, .data = (uint64_t)ring_fd};
    if (syscall(SYS_io_uring_register, ring_fd, IORING_REGISTER_RING_FDS, &place, 1) != 1)
        CANNOT("no ring registration: %s", strerror(errno));
    PREMISE(enter_registered() == 0, "the registered ring cannot be entered: %s", strerror(errno));
    return arg;
}

static void *enter(void *arg) {
    CHECK(enter_registered() != 0, "the ring of a thread that ended is registered with a later one");
    return arg;
}

static void ring_of_ended_thread(void) {
    struct io_uring_params params = {0};
    ring_fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &params);
    if (ring_fd == -1)
        CANNOT("io_uring_setup: %s", strerror(errno));
    warm_threads(2);
    run_thread(register_ring, NULL);
    for (int i = 0; i < 3; i++)
        run_thread(enter, NULL);
}

static const struct check_case cases[] = {{"ring_of_ended_thread", ring_of_ended_thread, FAILS_WHEN_SKIPPED}};
CHECK_MAIN(cases)
