// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads wait at one epoll set, level triggered. A message wakes them one after another until one has read it.
// Each prepares for a message before it reads, so that several are woken, and do that for nothing.
// Cure: the set tells one thread of a message (EPOLLONESHOT), and that one arms it again after it has read.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crew.h"

enum { REQUESTS = 30000, PREPARE = 10000, STEPS = 500 };

static int set, ends[2]; // of the socket: the threads read from the first
#ifdef CURED
static const unsigned EVENTS = EPOLLIN | EPOLLONESHOT;
#else
static const unsigned EVENTS = EPOLLIN;
#endif

static SEEN int await_message(void) {
    struct epoll_event event;
    return epoll_wait(set, &event, 1, -1); /* HERE: herd */
}

static void arm(int how) {
    struct epoll_event event = {.events = EVENTS};
    if (epoll_ctl(set, how, ends[0], &event) != 0)
        exit(1);
}

static void *serve(void *arg) {
    struct hand *hand = arg;
    char message = 1;
    while (message != 0) {
        if (await_message() != 1)
            exit(1);
        hand->result = chew(hand->result, PREPARE);
        const ssize_t got = recv(ends[0], &message, 1, MSG_DONTWAIT);
        if (got == 1 && message == 0 && send(ends[1], &message, 1, 0) != 1) // the others end by it, too
            exit(1);
        if (got == 1 && message != 0) {
            hand->result = chew(hand->result, STEPS);
            if (send(ends[0], &message, 1, 0) != 1)
                exit(1);
        }
#ifdef CURED
        arm(EPOLL_CTL_MOD);
#endif
    }
    return NULL;
}

static void *ask(void *arg) {
    for (int i = 0; i <= REQUESTS; i++) {
        char message = i < REQUESTS;
        if (send(ends[1], &message, 1, 0) != 1 || (message != 0 && recv(ends[1], &message, 1, 0) != 1))
            exit(1);
    }
    return arg;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    set = epoll_create1(EPOLL_CLOEXEC);
    if (set < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return 1;
    arm(EPOLL_CTL_ADD);
    crew_serve(size, ask, serve);
    return 0;
}
