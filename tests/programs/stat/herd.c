// SPDX-License-Identifier: Apache-2.0
//
// Disease: each thread has an epoll set of its own, and one socket is in all of them. A message wakes every thread, and one of them
// finds it. (Of one set for all threads the kernel wakes one thread after another, and only until the message is read.) With the
// word poll behind the number of threads they poll() that socket instead.
// Cure: a set tells its waiter only if no other one was told (EPOLLEXCLUSIVE).
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crew.h"

enum { REQUESTS = 100000, STEPS = 500, AHEAD = 4 };

static int ends[2]; // of the socket: the threads read from the first
#ifdef CURED
static const unsigned EVENTS = EPOLLIN | EPOLLEXCLUSIVE;
#else
static const unsigned EVENTS = EPOLLIN;
#endif

static int polled; // instead of epoll sets

static SEEN int await_message(int set) {
    struct epoll_event event;
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    if (polled)
        return poll(&one, 1, -1);          /* HERE: herd */
    return epoll_wait(set, &event, 1, -1); /* HERE: herd */
}

static void *serve(void *arg) {
    struct hand *hand = arg;
    struct epoll_event event = {.events = EVENTS};
    const int set = epoll_create1(EPOLL_CLOEXEC);
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) != 0)
        exit(1);
    char message = 1;
    while (message != 0) {
        if (await_message(set) != 1)
            exit(1);
        const ssize_t got = recv(ends[0], &message, 1, MSG_DONTWAIT);
        if (got == 1 && message == 0 && send(ends[1], &message, 1, 0) != 1) // the others end by it, too
            exit(1);
        if (got == 1 && message != 0) {
            hand->result = chew(hand->result, STEPS);
            if (send(ends[0], &message, 1, 0) != 1)
                exit(1);
        }
    }
    close(set);
    return NULL;
}

static SEEN void take_answer(void) {
    char answer;
    if (recv(ends[1], &answer, 1, 0) != 1)
        exit(1);
}

// Some messages are always on their way: of one that is answered before the next is sent, the time depends on where the scheduler has
// put the two threads.
static void *ask(void *arg) {
    char message = 1;
    for (int sent = 0; sent < REQUESTS; sent++) {
        if (sent >= AHEAD)
            take_answer();
        if (send(ends[1], &message, 1, 0) != 1)
            exit(1);
    }
    for (int i = 0; i < AHEAD; i++)
        take_answer();
    message = 0;
    if (send(ends[1], &message, 1, 0) != 1)
        exit(1);
    return arg;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    polled = argc > 2 && strcmp(argv[2], "poll") == 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return 1;
    crew_serve(size, ask, serve);
    return 0;
}
