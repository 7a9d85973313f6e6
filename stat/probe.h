// SPDX-License-Identifier: Apache-2.0
/* The memory that `thrum stat` shares with the program that it looks at: what libthrum-stat.so writes and
 * cli/stat/collect.cpp reads. The command makes the file, fills in what it asks for and names it in the
 * environment (PROBE_VARIABLE); a process that is not the one asked about leaves it alone.
 *
 * Fields that several threads write are counted with atomic additions. Those of an entry or a slot are written by
 * one thread and are there for the command to read when `ready` or the slot's state says so. */
#ifndef THRUM_STAT_PROBE_H
#define THRUM_STAT_PROBE_H

#include <stdint.h>

#define PROBE_VARIABLE "THRUM_STAT"

enum {
    PROBE_VERSION = 5,
    PROBE_STACK = 8192,     /* bytes of a stack that are copied at most */
    PROBE_FINE = 3584,      /* entries for waits by stack and address */
    PROBE_COARSE = 512,     /* more entries, by stack only, for when those are full */
    PROBE_OPEN = 8192,      /* slots for waits that have not ended */
    PROBE_SAMPLES = 1024,   /* slots for CPU samples */
    PROBE_MAPS = 1 << 20,   /* bytes of /proc/self/maps at most */
    PROBE_MAKERS = 32,      /* places that threads are made at */
    PROBE_SITES = 1024,     /* places that allocate memory */
    PROBE_BLOCKS = 1 << 19, /* blocks of memory */
    PROBE_CALLS = 512,      /* system calls have smaller numbers */
    PROBE_FUTEX = 16,       /* and operations of futex(2), too */
    PROBE_PATH = 256,       /* bytes of a program's path that are kept */
};

/* PROBE_MAKERS_ONLY: where threads are made, which the others note as well. PROBE_ALLOCATIONS: where memory is. */
enum probe_mode { PROBE_EXACT = 1, PROBE_TIMER = 2, PROBE_MAKERS_ONLY = 3, PROBE_ALLOCATIONS = 4 };

/* What kept the library from its work. */
enum probe_trouble {
    PROBE_NO_TROUBLE,
    PROBE_NO_FILTER, /* seccomp was refused; `error` has why */
    PROBE_FIXED,     /* this process has no address-space randomization */
    PROBE_NO_SIGNAL, /* each real-time signal is used by the program */
    PROBE_NO_TIMER,  /* timer_create was refused; `error` has why */
    PROBE_OWN_CALLS, /* the program stands at a fixed address and makes system calls without libc */
};

/* As a signal handler found it; `length` bytes from sp up. */
struct probe_stack {
    uint64_t pc, sp, bp, length;
    unsigned char bytes[PROBE_STACK];
};

/* Waits for one futex from one place: threads whose stacks hold the same return addresses. */
struct probe_wait {
    uint64_t address;            /* 0 in coarse entries: several */
    uint64_t waits, nanoseconds; /* begun; of those that have ended */
    uint32_t ready;              /* the stack and the address are there */
    uint32_t unused;
    struct probe_stack stack; /* of the first such wait */
};

/* A thread that waits now; of those that a handler does on top of one another the innermost. One that the program's end
 * finds waiting stays there. */
struct probe_open {
    int32_t thread;     /* as from gettid; 0: not in use */
    int32_t process;    /* the program, or a child that it forked */
    uint64_t entry;     /* index into `entries` */
    uint64_t begin;     /* nanoseconds of CLOCK_MONOTONIC; 0: there is nothing to be read */
    uint64_t unused[5]; /* cache lines of their own */
};

/* A place that makes threads: a stack of a call of pthread_create or thrd_create. */
struct probe_maker {
    uint64_t threads;
    uint32_t ready; /* the stack is there */
    uint32_t unused;
    struct probe_stack stack; /* of the first of them */
};

/* A place that allocates memory: a stack of a call of malloc() or its kin. */
struct probe_site {
    uint32_t ready; /* the stack is there */
    uint32_t unused;
    struct probe_stack stack;
};

/* A block of memory, by what allocated it last. */
struct probe_block {
    uint64_t address, size; /* 0: not in use */
    uint64_t at;            /* nanoseconds of CLOCK_MONOTONIC */
    uint32_t site;          /* index into `sites` */
    uint32_t busy;          /* it is being written */
};

enum probe_slot { PROBE_EMPTY, PROBE_WRITING, PROBE_FULL };

struct probe_sample {
    uint64_t at;    /* nanoseconds of CLOCK_MONOTONIC */
    int32_t thread; /* as from gettid */
    uint32_t ticks; /* of the timer that it stands for: 1 or more */
    struct probe_stack stack;
};

struct probe {
    /* written by the command before the program starts */
    uint32_t version, size; /* PROBE_VERSION, sizeof(struct probe) */
    uint32_t mode;          /* enum probe_mode */
    int32_t program;        /* the process that it is for */
    uint64_t period;        /* nanoseconds of a thread's CPU time between samples */

    /* written by the library */
    uint32_t loaded;  /* how often, as a process may execute several programs */
    uint32_t trouble; /* enum probe_trouble */
    int32_t error;
    uint32_t no_new_privileges; /* it had to be set */
    int32_t signal;             /* PROBE_TIMER: the one that is used */
    uint32_t maps_length;       /* of `maps`, when the program has ended by exit or executes another */
    uint64_t created, joined;   /* threads */
    uint64_t waits;             /* futex waits, those without an entry too */
    uint64_t unplaced;          /* waits and allocations without an entry, as the table was full */
    uint64_t lost;              /* samples without a slot */
    uint64_t untimed;           /* threads that have no timer */
    uint64_t untrapped;         /* threads that libraries had made before, and that have no filter */
    uint64_t next_slot;

    /* and in PROBE_EXACT; executed_at: when the program executed another one (nanoseconds of CLOCK_MONOTONIC), from before
     * it does so until that has loaded us; 0 also where it could not */
    uint64_t executed_at;
    char executed[PROBE_PATH];        /* that one */
    char unseen[PROBE_PATH];          /* the first that has executed another one without having loaded us */
    uint64_t held_back;               /* programs that did not gain rights, as no_new_privileges is set */
    char first_held_back[PROBE_PATH]; /* of these */
    uint64_t calls[PROBE_CALLS];      /* those that are trapped, by number */
    uint64_t futex[PROBE_FUTEX];      /* and calls of futex by operation */

    uint64_t maker_keys[PROBE_MAKERS]; /* 0: not in use */
    struct probe_maker makers[PROBE_MAKERS];

    uint64_t keys[PROBE_FINE + PROBE_COARSE]; /* of the entries; 0: not in use */
    uint32_t states[PROBE_SAMPLES];           /* enum probe_slot */
    char maps[PROBE_MAPS];
    struct probe_open open[PROBE_OPEN];
    union {
        struct probe_wait entries[PROBE_FINE + PROBE_COARSE];
        struct probe_sample samples[PROBE_SAMPLES];
        struct {
            uint64_t keys[PROBE_SITES]; /* 0: not in use */
            struct probe_site sites[PROBE_SITES];
            struct probe_block blocks[PROBE_BLOCKS];
        } heap;
    } in;
};

#endif
