// SPDX-License-Identifier: Apache-2.0
// Lines of text over a socket, for threads of libthrum; what server.c and client.c share. A thread that would have to
// wait in the kernel calls thrum_blocking: it waits on a kernel thread kept for that, and its worker runs others.
#ifndef LINES_H
#define LINES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <thrum/thrum.h>
#include <thrum/worker.h>
#include <unistd.h>

struct lines {
    int socket;
    thrum_mutex_t sending; /* one line at a time */
    size_t begin, end;     /* of what was read from the socket and has not been asked for */
    char bytes[4096];
};

/* --- reading ------------------------------------------------------------------------------------------------ */

static void *lines_fill(void *arg) {
    struct lines *lines = arg;
    ssize_t more;
    do
        more = read(lines->socket, lines->bytes + lines->end, sizeof lines->bytes - lines->end);
    while (more < 0 && errno == EINTR);
    lines->end += more > 0 ? (size_t)more : 0;
    return (void *)(long)(more > 0);
}

/* The next line, which ends with a 0 in place of its newline and is there until the next call. NULL: that was all, or it
 * is longer than any that is meant. By one thread at a time. */
static char *lines_read(struct lines *lines) {
    for (;;) {
        char *line = lines->bytes + lines->begin, *end = memchr(line, '\n', lines->end - lines->begin);
        if (end != NULL) {
            *end = '\0';
            lines->begin = (size_t)(end + 1 - lines->bytes);
            return line;
        }
        memmove(lines->bytes, line, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
        void *more;
        if (thrum_blocking(lines_fill, lines, &more) != 0 || more == NULL)
            return NULL;
    }
}

/* --- sending ------------------------------------------------------------------------------------------------ */

struct lines_rest {
    int socket;
    const char *bytes;
    size_t count;
};

static void *lines_send_rest(void *arg) {
    struct lines_rest *rest = arg;
    while (rest->count > 0) {
        ssize_t sent = send(rest->socket, rest->bytes, rest->count, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return NULL;
        rest->bytes += sent > 0 ? sent : 0;
        rest->count -= sent > 0 ? (size_t)sent : 0;
    }
    return arg;
}

/* Sends a line, with its newline; 0: the other side has gone. Mostly the kernel takes it at once. */
static int lines_send(struct lines *lines, const char *line) {
    struct lines_rest rest = {lines->socket, line, strlen(line)};
    void *done = &rest;
    thrum_mutex_lock(&lines->sending);
    ssize_t sent = send(rest.socket, rest.bytes, rest.count, MSG_DONTWAIT | MSG_NOSIGNAL);
    rest.bytes += sent > 0 ? sent : 0;
    rest.count -= sent > 0 ? (size_t)sent : 0;
    if (rest.count > 0 && thrum_blocking(lines_send_rest, &rest, &done) != 0)
        done = NULL; /* no kernel thread available */
    thrum_mutex_unlock(&lines->sending);
    return done != NULL;
}

/* --- the command line --------------------------------------------------------------------------------------- */

static long number(const char *what, const char *text, long least, long most) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "%s is a number from %ld to %ld, not '%s'\n", what, least, most, text);
        exit(2);
    }
    return value;
}

#endif
