// SPDX-License-Identifier: Apache-2.0
/* What the threads of a process do, read from its memory without its help. Nothing there stops for it, no lock is
 * taken, and no freed memory is touched, as all is copied through a function that may fail. So the same code serves
 * thrum_dump, also in a signal handler, and the command, which inspects another process.
 *
 * What it reports is true of each thread by itself at some time, not of all of them at the same time. Addresses are
 * those of the inspected process.
 *
 * For C++, too. Depends only on what it includes. */
#ifndef THRUM_INSPECT_INSPECT_H
#define THRUM_INSPECT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct inspect_kernel_thread;

struct inspect_source {
    /* Copies `size` bytes; false where that is impossible. */
    bool (*read)(void *context, uint64_t address, void *to, size_t size);
    void *context;
    uint64_t image; /* where the process has THRUM_IMAGE */
    /* Asks the kernel about a thread of the process. False: it does not tell. May be NULL. */
    bool (*kernel_thread)(void *context, int32_t tid, struct inspect_kernel_thread *told);
    uint64_t now; /* CLOCK_MONOTONIC of the process, ns; 0: it is not known */
};

struct inspect_kernel_thread {
    char state;       /* as in proc_pid_stat(5) */
    uint64_t blocked; /* signals: bit n - 1 is signal n */
};

#define INSPECT_IMAGE "thrum_image" /* the symbol */

enum inspect_state {
    INSPECT_RUNS,
    INSPECT_NEW, /* it has not begun */
    INSPECT_READY,
    INSPECT_WAITS,
    INSPECT_ENDED, /* it has not been joined */
    INSPECT_STATES
};

enum inspect_worker_state {
    INSPECT_AT_WORK,
    INSPECT_SEARCHING,
    INSPECT_PARKED,
    INSPECT_STOPPED,
    INSPECT_RELIEF
};

/* What interrupts a worker at the end of a time slice. */
enum inspect_ticks {
    INSPECT_TICKS_NONE, /* no preemption */
    INSPECT_TICKS_OFF,  /* it searches or sleeps */
    INSPECT_TICKS_ON,
    INSPECT_TICKS_REST, /* no other thread is runnable */
    INSPECT_TICKS_MASKED, /* on; but the last one found another signal mask than the worker's: no preemption then */
    INSPECT_TICKS_BLOCKED, /* on; but the kernel thread blocks their signal */
};

enum { INSPECT_NOWHERE = -1, INSPECT_NAME_SIZE = 16, INSPECT_REGISTERS = 33 };

struct inspect_thread {
    uint64_t handle; /* its thrum_t */
    uint64_t id;     /* 0: it has none yet */
    char name[INSPECT_NAME_SIZE];
    enum inspect_state state;
    bool is_tasklet, is_main, is_external;
    int32_t worker;  /* INSPECT_RUNS: where; else the one that it is bound to, or INSPECT_NOWHERE */
    uint64_t pool;   /* 0: none */
    int32_t own_tid; /* of the kernel thread that only it runs on (thrum_kthread_lock); 0: it has none */
    uint8_t priority;
    uint64_t function; /* that it began with; 0: not known */
    uint64_t argument; /* that this got */
    int32_t tid;       /* of the kernel thread that runs it, or that it has kept under it; 0: none */
    uint64_t stack_low, stack_top;
    uint64_t stack_pointer; /* 0: it is in registers of that kernel thread, or there is none */
    /* INSPECT_WAITS: */
    uint8_t awaits;  /* enum awaits; inspect_awaits says it in words */
    uint64_t object; /* what it waits for; 0: nothing with an address */
    /* the thread that it waits for: the one that must end, or the object's owner; 0: unknown */
    uint64_t owner;
    bool has_deadline; /* the wait ends by itself */
};

struct inspect_worker {
    uint32_t number;
    int32_t tid;
    enum inspect_worker_state state;
    uint64_t current; /* INSPECT_AT_WORK: the thread that it runs */
    uint64_t switches, steals, parks, migrations;
    uint64_t queued; /* in its run queue and its inbox */
    enum inspect_ticks ticks;
    uint64_t
        since_tick; /* ns since the last one, or since they were turned on; 0: they are not on, or it is not known */
    /* They are on, none has come for INSPECT_SILENCE_NS, and the thread that it runs may be preempted: it is not preempted
     * at the end of its time slice. By one look; inspect_silent_workers takes two. */
    bool is_silent;
    char kernel_state; /* as in proc_pid_stat(5) if ticks are on; 0: not known */
};

/* What preemption and blocking calls have in reserve, and use. */
struct inspect_resources {
    const char *mode;    /* as in THRUM_PREEMPT */
    int32_t signal;      /* of ticks; 0: there are none */
    bool carries;        /* the spares are carriers: kernel threads */
    uint64_t preempted;  /* threads that were preempted and have not resumed */
    uint64_t own_blocks; /* thread control blocks that threads have for life, main's too */
    uint64_t own_spare;  /* ... that wait for such threads */
    uint64_t spare;      /* blocks to lend, or carriers, that are unused */
    uint64_t donors;     /* kernel threads that have the blocks, or are the carriers */
    uint64_t blocking_threads,
        blocking_calls; /* kernel threads for thrum_blocking, and those of them that make a call */
};

struct inspect_summary {
    char version[16];
    uint64_t workers;
    uint64_t threads[INSPECT_STATES];
    uint64_t
        /* of the waiting ones: until a time, for a call, or with a deadline: not for threads */
        waiting_for_outside;
    bool is_whole; /* false: memory was freed during the inspection, so that threads are missing */
};

/* NULL, or why this process cannot be inspected. */
const char *inspect_check(const struct inspect_source *source);

/* Calls `tell` for each; false from it ends that. False: there is no runtime. `summary` may be NULL. */
bool inspect_workers(const struct inspect_source *source,
                     bool (*tell)(void *context, const struct inspect_worker *worker), void *context);

/* Likewise for each that is silent, at two looks with one pause in between. There is no pause if none is at the first. */
bool inspect_silent_workers(const struct inspect_source *source,
                            bool (*tell)(void *context, const struct inspect_worker *worker), void *context);
bool inspect_threads(const struct inspect_source *source, struct inspect_summary *summary,
                     bool (*tell)(void *context, const struct inspect_thread *thread), void *context);

/* False: there is no runtime. */
bool inspect_get_resources(const struct inspect_source *source, struct inspect_resources *resources);

/* From the text of /proc/PID/task/TID/status, ended by a zero byte. False: it is none. */
bool inspect_parse_status(const char *status, struct inspect_kernel_thread *told);

/* So long a worker is silent at least, ns. */
enum { INSPECT_SILENCE_NS = 1000000000 };

/* Where a worker keeps the events of its trace (<thrum/trace.h>): a ring that it writes to meanwhile. */
struct inspect_ring {
    uint32_t worker; /* its number, or THRUM_TRACE_EXTERNAL */
    bool is_relief;
    uint64_t
        events; /* the address of `size` of them, the one with the number n at n % size; 0: there is no memory for them */
    uint64_t size;
    uint64_t count; /* that there ever were: so many are whole. At most one more is being written just now */
};

/* Calls `tell` for each, that of kernel threads that are no workers last. False: it has no runtime, or keeps no trace. */
bool inspect_rings(const struct inspect_source *source,
                   bool (*tell)(void *context, const struct inspect_ring *ring), void *context);

/* The counter that stamps the events, now; all processes of the machine read the same. */
uint64_t inspect_ticks(void);

/* One thread by its handle; false where none is there. */
bool inspect_find(const struct inspect_source *source, uint64_t handle, struct inspect_thread *thread);

/* The thread that this one waits for; 0: none that is known, or it does not wait. Asks less than inspect_find.
 * *has_deadline is set if the wait has one. */
uint64_t inspect_awaited(const struct inspect_source *source, uint64_t handle, bool *has_deadline);

/* Is this thread one that inspect_threads does not report, a kernel thread that is no worker? */
bool inspect_is_external(const struct inspect_source *source, uint64_t handle);

/* All wait, and none for a time, a call or a deadline: only an external thread can wake one. */
bool inspect_all_wait(const struct inspect_summary *summary);

/* "a mutex", "the end of", ... */
const char *inspect_awaits(uint8_t awaits);

/* "runs", "parked", ... */
const char *inspect_state_word(enum inspect_state state);
const char *inspect_worker_state_word(enum inspect_worker_state state);
const char *inspect_ticks_word(enum inspect_ticks ticks);

/* A search for cycles: threads that wait, by way of owners, for themselves. `steps` is counted down to 0, where it is
 * given up; INSPECT_STEPS are enough for all of most processes. */
enum { INSPECT_STEPS = 1000000, INSPECT_CYCLE_MAX = 4096 };
struct inspect_search {
    const struct inspect_source *source;
    uint64_t steps;
    bool is_whole; /* false: a chain was longer than INSPECT_CYCLE_MAX, or the steps were too few */
};

static inline struct inspect_search inspect_search_begin(const struct inspect_source *source) {
    struct inspect_search search = {source, INSPECT_STEPS, true};
    return search;
}

/* If this thread is in a cycle: the members of the cycle, it first, at most `max` of them; returns how many there
 * are. 0: it is not in one; or another member has the lower handle, is not external, and will report it. Looks twice,
 * with a pause in between: only what has stayed is reported. *has_deadline: one of those waits has one, so that the
 * cycle will not stay. */
size_t inspect_cycle(struct inspect_search *search, const struct inspect_thread *thread, uint64_t *members,
                     size_t max, bool *has_deadline);

/* Its registers when it was switched out, by their DWARF numbers, as far as known: bits of *known. The last,
 * INSPECT_REGISTERS - 1, is the address where it resumes. False: it runs, or its stack cannot be read. */
bool inspect_registers(const struct inspect_source *source, const struct inspect_thread *thread,
                       uint64_t registers[INSPECT_REGISTERS], uint64_t *known);

/* The DWARF number of the stack pointer. */
unsigned inspect_stack_register(void);

#ifdef __cplusplus
}
#endif

#endif
