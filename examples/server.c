// SPDX-License-Identifier: Apache-2.0
// A server over plain TCP whose requests sleep: each is a thread of its own, so that thousands sleep at a time on as
// many workers as there are CPUs. A request is a line "NUMBER MILLISECONDS"; "NUMBER" is the answer, when it has slept so
// long. client.c asks.
//     server [PORT [CONNECTIONS]]      a free port unless told, or 0; so many connections and then the end; 0: for ever
// cc server.c -o server $(pkg-config --cflags --libs thrum)
#include <arpa/inet.h>
#include <stdatomic.h>

#include "lines.h"

struct connection {
    struct lines lines;
    atomic_uint users; /* its reader, and requests without an answer; the last one closes it */
};

struct request {
    struct connection *connection;
    long number, milliseconds;
};

static thrum_sem_t ended; /* connections */
static atomic_ulong served;

static void leave(struct connection *connection) {
    if (atomic_fetch_sub(&connection->users, 1) > 1)
        return;
    close(connection->lines.socket);
    free(connection);
    thrum_sem_post(&ended);
}

/* --- threads ------------------------------------------------------------------------------------------------ */

static void *answer(void *arg) {
    struct request *request = arg;
    char line[24];
    thrum_sleep((uint64_t)request->milliseconds * THRUM_MS);
    snprintf(line, sizeof line, "%ld\n", request->number);
    if (!lines_send(&request->connection->lines, line))
        shutdown(request->connection->lines.socket, SHUT_RDWR); /* its reader shall not wait for more */
    atomic_fetch_add(&served, 1);
    leave(request->connection);
    free(request);
    return NULL;
}

/* What is wrong with it; NULL: nothing. */
static const char *begin_request(struct connection *connection, const char *line) {
    struct request *request = malloc(sizeof *request);
    if (request == NULL)
        return "no memory";
    request->connection = connection;
    atomic_fetch_add(&connection->users, 1);
    const char *wrong = NULL;
    if (sscanf(line, "%ld %ld", &request->number, &request->milliseconds) != 2 || request->milliseconds < 0)
        wrong = "it is not \"NUMBER MILLISECONDS\"";
    else if (thrum_spawn(NULL, NULL, answer, request) != 0) /* detached */
        wrong = "no memory for a thread";
    if (wrong != NULL) {
        leave(connection);
        free(request);
    }
    return wrong;
}

static void *serve(void *arg) {
    struct connection *connection = arg;
    const char *line, *wrong = NULL;
    while (wrong == NULL && (line = lines_read(&connection->lines)) != NULL)
        wrong = begin_request(connection, line);
    if (wrong != NULL)
        fprintf(stderr, "server: a request is refused, and its connection closed: %s\n", wrong);
    shutdown(connection->lines.socket, SHUT_RD);
    leave(connection);
    return NULL;
}

/* --- connections -------------------------------------------------------------------------------------------- */

static int listen_on(long *port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        fprintf(stderr, "server: port %ld: %s\n", *port, strerror(errno));
        exit(1);
    }
    *port = ntohs(address.sin_port);
    return listener;
}

static void *accept_one(void *listener) {
    return (void *)(long)accept(*(int *)listener, NULL, NULL);
}

/* An errno value. */
static int welcome_one(int listener) {
    void *accepted;
    int error = thrum_blocking(accept_one, &listener, &accepted);
    if (error != 0)
        return error;
    if ((long)accepted < 0)
        return errno;
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return ENOMEM;
    connection->lines.socket = (int)(long)accepted;
    connection->users = 1;
    return thrum_spawn(NULL, NULL, serve, connection);
}

int main(int argc, char **argv) {
    if (argc > 3) {
        fprintf(stderr, "usage: server [PORT [CONNECTIONS]]\n");
        return 2;
    }
    long port = argc > 1 ? number("server: PORT", argv[1], 0, 65535) : 0;
    long connections = argc > 2 ? number("server: CONNECTIONS", argv[2], 0, 1000000) : 0;
    int listener = listen_on(&port), error = thrum_init(NULL);
    printf("listening on port %ld\n", port);
    fflush(stdout);
    for (long i = 0; error == 0 && (connections == 0 || i < connections); i++)
        error = welcome_one(listener);
    for (long i = 0; error == 0 && i < connections; i++)
        thrum_sem_wait(&ended);
    if (error != 0) {
        fprintf(stderr, "server: %s\n", strerror(error));
        return 1;
    }
    printf("%lu requests were served\n", atomic_load(&served));
    return thrum_fini();
}
