// SPDX-License-Identifier: Apache-2.0
/* See trace_file.h. */
#include "runtime/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "os/lock.h"
#include "os/memory.h"
#include "os/syscall.h"
#include "os/ticks.h"
#include "sched/worker.h"

enum { EVENTS_DEFAULT = 1000000, EVENTS_LEAST = 16, EVENTS_MOST = 1000000000 };

static struct {
    struct lock lock;    /* held while it is written: workers' rings must stay as long */
    bool wanted;         /* a trace was requested, or is being written */
    bool appends;        /* an earlier runtime of this process has written to it */
    pid_t owner;         /* the process whose it is; 0: there was none yet */
    uint64_t events;     /* of each ring */
    char path[PATH_MAX]; /* absolute: the program may go to another folder */
    struct ticks_moment begin;
} file;

/* --- what the environment says ------------------------------------------------------------------------ */

/* What goes wrong with files mostly. */
static const char *reason(int error) {
    switch (error) {
    case ENOENT: return "there is no such folder";
    case EACCES:
    case EPERM: return "permission denied";
    case EISDIR: return "it is a folder";
    case ENOTDIR: return "a part of the path is a file, not a folder";
    case EROFS: return "read-only file system";
    case ENOSPC:
    case EDQUOT: return "no space left";
    case EFBIG: return "it would be too large";
    case ENAMETOOLONG: return "its name is too long";
    default: return NULL;
    }
}

static void complain(const char *path, int error) {
    struct text text;
    text_start(&text);
    text_add(&text, "the trace cannot be written to ");
    text_add(&text, path);
    text_add(&text, ": ");
    if (reason(error) != NULL) {
        text_add(&text, reason(error));
    } else {
        text_add(&text, "error ");
        text_add_number(&text, (uint64_t)error);
    }
    text_finish(&text);
}

static int parse_events(void) {
    const char *variable = secure_getenv("THRUM_TRACE_EVENTS");
    uint64_t number = 0;
    file.events = EVENTS_DEFAULT;
    if (variable == NULL || *variable == '\0')
        return 0;
    for (const char *at = variable; number <= EVENTS_MOST; at++) {
        if (*at == '\0' && number >= EVENTS_LEAST) {
            file.events = number;
            return 0;
        }
        if (*at < '0' || *at > '9')
            break;
        number = number * 10 + (uint64_t)(*at - '0');
    }
    text_line("THRUM_TRACE_EVENTS is '", variable, "'; it takes a number from 16 to 1000000000");
    return EINVAL;
}

struct path {
    size_t length; /* with its end */
    char bytes[PATH_MAX];
};

static void append(struct path *path, const char *text, size_t length) {
    if (length > sizeof path->bytes - path->length)
        length = sizeof path->bytes - path->length;
    memcpy(path->bytes + path->length, text, length);
    path->length += length;
}

static void append_number(struct path *path, uint64_t number) {
    char digits[20], *at = digits + sizeof digits;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    append(path, at, (size_t)(digits + sizeof digits - at));
}

/* `pattern` made absolute, "%p" in it the number of the process. 0 or an errno. */
static int expand(struct path *path, const char *pattern) {
    path->length = 0;
    if (*pattern != '/') {
        long length = sys(SYS_getcwd, path->bytes, sizeof path->bytes);
        if (length < 0)
            return (int)-length;
        path->length = (size_t)length - 1; /* without its end */
        append(path, "/", 1);
    }
    for (; *pattern != '\0'; pattern++) {
        if (pattern[0] != '%' || pattern[1] != 'p') {
            append(path, pattern, 1);
            continue;
        }
        append_number(path, (uint64_t)getpid());
        pattern++;
    }
    append(path, "", 1);
    return path->bytes[path->length - 1] == '\0' ? 0 : ENAMETOOLONG;
}

static long open_file(const char *path, int flags) {
    return sys(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
}

/* The file is created now so that an error is reported now, and so that an empty one means that the process did not
 * end as it should. A second runtime appends to it; but a child of fork leaves its parent's alone. */
static int claim_file(const struct path *path) {
    bool same = file.owner != 0 && strcmp(path->bytes, file.path) == 0;
    if (same && file.owner != getpid()) {
        file.wanted = false;
        return 0;
    }
    file.appends = same;
    file.owner = getpid();
    memcpy(file.path, path->bytes, path->length);
    long fd = open_file(file.path, same ? O_APPEND : O_TRUNC);
    if (fd < 0)
        return (int)-fd;
    sys(SYS_close, fd);
    return 0;
}

/* A process with more privileges than its caller writes no file on the caller's behalf. */
int trace_file_configure(void) {
    const char *variable = secure_getenv("THRUM_TRACE");
    file.wanted = variable != NULL && *variable != '\0';
    if (!file.wanted)
        return 0;
    int error = parse_events();
    if (error != 0)
        return error;
    struct path path;
    error = expand(&path, variable);
    if (error == 0)
        error = claim_file(&path);
    if (error != 0) {
        complain(variable, error);
        file.wanted = false;
    }
    return 0;
}

void trace_file_start(void) {
    if (!file.wanted)
        return;
    file.begin = ticks_now();
    trace_start(file.events);
}

void trace_file_fork_child(void) {
    file.wanted = false;
    lock_reset(&file.lock);
    trace_fork_child();
}

/* --- writing ------------------------------------------------------------------------------------------ */

/* 0 or an errno. */
static int write_all(long fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        long written = sys(SYS_write, fd, at, bytes);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return written == 0 ? ENOSPC : (int)-written;
        at += written;
        bytes -= (size_t)written;
    }
    return 0;
}

/* Oldest first. Of a full ring not the oldest, which may be overwritten just now: see trace.h. */
static int write_ring(long fd, uint32_t worker, bool relieves, const struct trace_ring *ring) {
    uint64_t count = load_acquire(&ring->count); /* pairs with put() of trace.c */
    uint64_t kept = ring->events == NULL ? 0 : count < ring->size ? count : ring->size - 1;
    struct thrum_trace_ring head = {
        .worker = worker, .relief = relieves, .events = kept, .lost = count - kept};
    int error = write_all(fd, &head, sizeof head);
    if (kept == 0 || error != 0)
        return error;
    uint64_t first = (count - kept) % ring->size, to_end = ring->size - first;
    uint64_t before = kept < to_end ? kept : to_end;
    error = write_all(fd, ring->events + first, before * sizeof *ring->events);
    return error != 0 ? error : write_all(fd, ring->events, (kept - before) * sizeof *ring->events);
}

static size_t read_all(long fd, char *memory, size_t size) {
    size_t length = 0;
    long got;
    while (length < size && (got = sys(SYS_read, fd, memory + length, size - length)) > 0)
        length += (size_t)got;
    return length;
}

struct maps {
    char *text; /* NULL: there is none, or no memory for it */
    size_t length, size;
};

/* From the beginning into memory that is twice as large until there is room to spare. */
static struct maps read_maps(void) {
    struct maps maps = {.size = 64 * 1024};
    for (;; maps.size *= 2) {
        long fd = sys(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
        maps.text = fd >= 0 ? memory_map(maps.size, 0) : NULL;
        maps.length = maps.text != NULL ? read_all(fd, maps.text, maps.size) : 0;
        if (fd >= 0)
            sys(SYS_close, fd);
        if (maps.length < maps.size)
            return maps;
        munmap(maps.text, maps.size);
    }
}

static int write_rings(long fd, uint32_t workers) {
    int error = 0;
    for (uint32_t i = 0; i < workers && error == 0; i++)
        error = write_ring(fd, i, worker_relieves(runtime.workers[i]), &runtime.workers[i]->trace);
    return error != 0 ? error : write_ring(fd, THRUM_TRACE_EXTERNAL, false, trace_outside());
}

static int write_section(long fd, const struct maps *maps) {
    struct ticks_moment end = ticks_now();
    uint32_t workers = load_acquire(&runtime.count);
    struct thrum_trace_header header = {
        .version = THRUM_TRACE_VERSION,
        .header_bytes = sizeof header,
        .event_bytes = sizeof(struct thrum_trace_event),
        .rings = workers + 1,
        .pid = (uint64_t)file.owner,
        .begin = {file.begin.ticks, file.begin.ns},
        .end = {end.ticks, end.ns},
        .maps_bytes = maps->length,
    };
    memcpy(header.magic, THRUM_TRACE_MAGIC, sizeof header.magic);
    int error = write_all(fd, &header, sizeof header);
    if (error == 0)
        error = write_rings(fd, workers);
    return error != 0 ? error : write_all(fd, maps->text, maps->length);
}

/* Under the lock. */
static void write_file(void) {
    trace_stop();
    file.wanted = false;
    long fd = open_file(file.path, file.appends ? O_APPEND : O_TRUNC);
    if (fd < 0) {
        complain(file.path, (int)-fd);
        return;
    }
    struct maps maps = read_maps();
    int error = write_section(fd, &maps);
    if (maps.text != NULL)
        munmap(maps.text, maps.size);
    int closed = (int)-sys(SYS_close, fd);
    if (error != 0 || closed != 0)
        complain(file.path, error != 0 ? error : closed);
}

/* Not in a child that has come about without the handlers of fork (vfork, clone). */
static bool is_mine(void) {
    return file.wanted && trace_is_on() && file.owner == getpid();
}

void trace_file_write(void) {
    if (!file.wanted)
        return;
    lock_acquire(&file.lock);
    if (is_mine())
        write_file();
    lock_release(&file.lock);
}

/* After all of the program's own exit handlers and destructors. Workers still run, and a thread may be about to stop
 * the runtime. It must wait for ever: for the lock, which is not released. Nor is the caller preempted any more,
 * which may be a thread of ours: it does not leave. */
INSIDE_UNCHECKED static __attribute__((destructor)) void write_at_exit(void) {
    if (!is_mine())
        return;
    enter();
    lock_acquire(&file.lock);
    if (is_mine())
        write_file();
}
