// SPDX-License-Identifier: Apache-2.0
// Asks server.c for so many answers at once over one connection, each after so many milliseconds, and says how long they
// took: a thread a request, which waits for its answer, and one that reads the answers and wakes them.
//     client PORT REQUESTS MILLISECONDS
// cc client.c -o client $(pkg-config --cflags --libs thrum)
#include <arpa/inet.h>

#include "lines.h"

struct request {
    thrum_t thread;
    thrum_event_t answered;
    double latency; /* ms */
};

static struct lines server;
static struct request *requests;
static long count, milliseconds;

static void fail(const char *what, int error) {
    fprintf(stderr, "client: %s: %s\n", what, strerror(error));
    exit(1);
}

/* --- threads ------------------------------------------------------------------------------------------------ */

static void *ask(void *arg) {
    struct request *request = arg;
    uint64_t begun = thrum_now();
    char line[64];
    snprintf(line, sizeof line, "%ld %ld\n", (long)(request - requests), milliseconds);
    if (!lines_send(&server, line))
        fail("asking", EPIPE);
    thrum_event_wait(&request->answered);
    request->latency = (double)(thrum_now() - begun) / 1e6;
    return NULL;
}

static void *hear(void *unused) {
    for (long i = 0; i < count; i++) {
        const char *line = lines_read(&server);
        long answered = line != NULL ? strtol(line, NULL, 10) : -1;
        if (answered < 0 || answered >= count) {
            fprintf(stderr, "client: after %ld of %ld answers came %s\n", i, count,
                    line != NULL ? line : "no more");
            exit(1);
        }
        thrum_event_set(&requests[answered].answered);
    }
    return unused;
}

/* Seconds. */
static double ask_all(void) {
    uint64_t begun = thrum_now();
    thrum_t listener;
    int error = thrum_spawn(&listener, NULL, hear, NULL);
    for (long i = 0; i < count && error == 0; i++)
        error = thrum_spawn(&requests[i].thread, NULL, ask, &requests[i]);
    if (error != 0)
        fail("a thread for each request", error);
    for (long i = 0; i < count; i++)
        thrum_join(requests[i].thread, NULL);
    thrum_join(listener, NULL);
    return (double)(thrum_now() - begun) / 1e9;
}

/* --- beginning and end -------------------------------------------------------------------------------------- */

static int connect_to(long port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fprintf(stderr, "client: no server on port %ld: %s\n", port, strerror(errno));
        exit(1);
    }
    return fd;
}

static int by_latency(const void *a, const void *b) {
    double one = ((const struct request *)a)->latency, other = ((const struct request *)b)->latency;
    return (one > other) - (one < other);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: client PORT REQUESTS MILLISECONDS\n");
        return 2;
    }
    long port = number("client: PORT", argv[1], 1, 65535);
    count = number("client: REQUESTS", argv[2], 1, 1000000);
    milliseconds = number("client: MILLISECONDS", argv[3], 0, 1000000);
    server.socket = connect_to(port);
    requests = calloc((size_t)count, sizeof *requests);
    int error = requests != NULL ? thrum_init(NULL) : ENOMEM;
    if (error != 0)
        fail("beginning", error);
    double seconds = ask_all();
    qsort(requests, (size_t)count, sizeof *requests, by_latency);
    printf("%ld requests of %ld ms in %.4f s, %.0f a second; latency %.2f ms, 99th percentile %.2f\n", count,
           milliseconds, seconds, (double)count / seconds, requests[count / 2].latency,
           requests[(count - 1) * 99 / 100].latency);
    return thrum_fini();
}
