// SPDX-License-Identifier: Apache-2.0
//
// Disease, if it is one: threads wait for answers of another process that gives one a millisecond, as of a database or a
// disk. More threads do not make that faster; no lock is to blame.
// Cure: all answers are asked for at once, by one thread, before the others compute.
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"

enum { REQUESTS = 500 };

static int line_to_server; // datagrams: a request and an answer each are whole

static void serve(int line) {
    const struct timespec pause = {0, 1000000};
    char request;
    while (read(line, &request, 1) == 1 && request != 0) {
        nanosleep(&pause, NULL);
        if (write(line, &request, 1) != 1)
            _exit(1);
    }
    _exit(0);
}

static SEEN void receive_answer(void) {
    char answer;
    if (read(line_to_server, &answer, 1) != 1) /* HERE: io-bound */
        exit(1);
}

static void send_request(char request) {
    if (write(line_to_server, &request, 1) != 1)
        exit(1);
}

static void *ask(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
#ifndef CURED
        send_request(1);
        receive_answer();
#endif
        hand->result = chew(hand->result, 20000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return 1;
    const pid_t server = fork();
    if (server < 0)
        return 1;
    if (server == 0) {
        close(ends[1]);
        serve(ends[0]);
    }
    close(ends[0]);
    line_to_server = ends[1];
#ifdef CURED
    send_request(1);
    receive_answer();
    crew_work(size, 50 * REQUESTS, ask);
#else
    crew_work(size, REQUESTS, ask);
#endif
    send_request(0);
    int status;
    return waitpid(server, &status, 0) == server && status == 0 ? 0 : 1;
}
