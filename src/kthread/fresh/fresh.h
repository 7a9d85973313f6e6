// SPDX-License-Identifier: Apache-2.0
/* Making a used kernel thread indistinguishable from a new one: what the creator hands on, what is remembered
 * of the thread, and the pieces in the order in which kthread.c calls them. One file a row or a few of
 * docs/internals/soundness.md. `kthread.h` includes this header; the pieces take what they need, not the descriptor.
 */
#ifndef THRUM_KTHREAD_FRESH_FRESH_H
#define THRUM_KTHREAD_FRESH_FRESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "arch_fpenv.h"
#include "arch_pkeys.h"
#include "arch_registers.h"
#include "os/signals.h"

struct robust_list_head;

enum { FRESH_NAME = 16, FRESH_CPU_WORDS = 128 };

/* A CPU mask as the kernel gives it: `length` bytes, 0 when unknown. Up to 8192 CPUs (FRESH_CPU_WORDS), but `bits` points
 * to room for as many as this machine can have: creator_masks_place. */
struct fresh_affinity {
    uint32_t length;
    unsigned long few;   /* that is here, where one word is enough */
    unsigned long *bits; /* r/o */
};

/* What a new thread has from its creator, as it is when the creator asks for the thread. What is written each time comes
 * first: it is in two cache lines of struct kthread, with the job. */
struct fresh_creator {
    sigbits mask;
    struct arch_fpenv fpenv;
    arch_pkeys pkeys;
    bool has_name;
    struct arch_registers registers;
    struct fresh_affinity affinity;
    char name[FRESH_NAME];
};

/* Policy, nice value and priority; policy UINT32_MAX when unknown. */
struct fresh_scheduling {
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
};

/* What is remembered of a kernel thread from job to job. */
struct fresh_state {
    struct fresh_affinity affinity;       /* as last set or inherited; length 0: changed since */
    uint64_t cpu_base_ns;                 /* CPU time used by earlier jobs, as last asked for... */
    struct rusage usage_base;             /* likewise */
    uint64_t cpu_base_ticks;              /* ... then */
    uint64_t cpu_start_ticks;             /* when the present job began: the same or later */
    uint32_t cpu_base_pending;            /* between two jobs: not known yet */
    bool cpu_asked;                       /* since the last job's end */
    struct robust_list_head *robust_head; /* libc's; NULL until asked for */
    bool robust_replaced;                 /* this job registered another one */
    void *tid_address;  /* libc's, that the kernel clears at a real exit; NULL until it was moved */
    char *stack_low;    /* lowest usable byte of its stack; NULL until asked for */
    unsigned jobs;      /* done so far */
    bool has_tls_dtors; /* this job registered a C++ thread_local destructor */
    struct fresh_scheduling scheduling; /* as the kernel thread began */
    uint64_t scheduling_asked;          /* ticks */
};

/* --- creator.c: what the creator hands on ------------------------------------------------------------ */

void creator_init(void); /* once, before the first thread */

/* The masks of a creator and of a state that are longer than a word stand together outside the two, in memory of this size in
 * bytes (a multiple of 64, r/o after creator_init) and alignment 64. Without a place, or before creator_init, every mask
 * is unknown. */
size_t creator_masks_size(void);
void creator_masks_place(struct fresh_creator *creator, struct fresh_state *state, void *memory);

/* In the creator. `names`/`pkeys` say whether any thread ever had its name or key rights changed: while none
 * has, they are all alike and nothing needs to be asked. */
void creator_capture(struct fresh_creator *creator);
void creator_fork_child(void);

/* In a creator that has time to spare: what others may have changed is asked for anew. */
void creator_look_again(void);
/* In the reused thread, before its mask is opened. */
void creator_apply(const struct fresh_creator *creator, struct fresh_state *state);
/* In a thread that the kernel has just made: it has everything already; only remembers. */
void creator_inherited(struct fresh_state *state);

void creator_names_differ(void);  /* a thread was renamed */
void creator_look_at_name(void);  /* the caller may have been, in a way that is not seen */
void creator_pkeys_used(void);    /* a protection key was allocated, or rights can be changed without one */
bool creator_has_registers(void); /* what arch_registers.h names is handed on, all of it */
/* A call of this process changed the affinity of a thread; `state` is that thread's if it is one of ours, else
 * NULL. What was known of it is not known any more. Any thread may say so. */
void creator_affinity_changed(struct fresh_state *state);
void creator_affinity_changes(void); /* before such a call, each time */

/* --- keys.c: pthread_key_t and tss_t ------------------------------------------------------------------ */
void keys_init(void); /* once, before the first thread */
void keys_created(unsigned key, void (*destructor)(void *));
void keys_deleted(unsigned key);
/* `spared`: a key whose value stays, or KEYS_NONE_SPARED. _run_destructors: false if there was none to run. */
enum { KEYS_NONE_SPARED = -1 };
bool keys_run_destructors(unsigned spared);
void keys_clear(unsigned spared);

/* --- libc_state.c: libc's own thread-locals ----------------------------------------------------------- */
bool libc_state_end(void); /* false: there was nothing to free */
void libc_state_begin(void);

/* --- tls.c: every module's thread-locals but libc's, the loader's and our own ------------------------- */
bool tls_init(void); /* false: this libc is not understood */
void tls_reimage(void);
/* The user's, set before tls_init, or NULL: called for each module, under the loader's lock, when some have been loaded. */
struct dl_phdr_info;
extern void (*tls_module_seen)(const struct dl_phdr_info *info);
/* The same without the lock that a fork waits for, and mostly without looking at each module again: for libthrum, whose threads
 * may be preempted in it. */
void tls_reimage_often(void);
void tls_often_init(void); /* once, after tls_init */
/* While the thread is idle: gives back the pages of large blocks. tls_reimage must follow before user code runs. */
void tls_trim(void);
/* True while the caller is inside its own dl_iterate_phdr callback, which holds the loader's lock. */
bool tls_lock_held_by_caller(void);
/* Around a fork, with all signals blocked, in this order: before, then one of the others. */
void tls_fork_before(void);
void tls_fork_parent(void);
void tls_fork_child(void);
const void *tls_callback_entered(const void *frame); /* returns what tls_callback_left wants back */
void tls_callback_left(const void *outer);

/* --- robust.c ----------------------------------------------------------------------------------------- */
bool robust_held(struct fresh_state *state);
void robust_list_changes(struct fresh_state *state);

/* --- cpu_time.c --------------------------------------------------------------------------------------- */
/* In the thread, in this order: the job is over; optionally the kernel is asked what has been used so far; the next
 * job begins. */
enum { CPU_TIME_UNASKED_US = 1000 }; /* for so long nothing is asked; see cpu_time.c */
void cpu_time_end(struct fresh_state *state);
void cpu_time_ask(struct fresh_state *state);
void cpu_time_begin(struct fresh_state *state);
/* The program reads such clocks: from now on the kernel has to be asked after each job. Any thread. */
bool cpu_time_wanted(void);
void cpu_time_want(void);
/* CPU time of earlier jobs. Any thread; waits where a thread that was handed its next job already has still to
 * begin it (its gate says so: then it is surely on its way). `gate` is NULL for the thread itself. */
uint64_t cpu_time_base(const struct fresh_state *state, const uint32_t *gate);
void cpu_time_adjust_usage(const struct fresh_state *state, struct rusage *usage);

/* --- stack.c ------------------------------------------------------------------------------------------ */
/* All in the thread itself, on a stack that libc allocated with this size attribute. */
void stack_init(size_t static_tls_size); /* once */
size_t stack_least(void); /* what libc and thread-locals take of a stack, and the checks below */
void stack_measure(struct fresh_state *state); /* exactly, at the price of a malloc */
/* At a job's end: gives back what was used deeper than is usual. */
void stack_give_back(struct fresh_state *state, size_t stack_size);
/* While the thread is idle: gives all of it back but the page that the caller stands on. */
void stack_trim(struct fresh_state *state, size_t stack_size);
/* Before a job: nothing of an earlier one is left below the caller's frame. */
void stack_wipe(struct fresh_state *state, size_t stack_size);

/* --- pointers.c: what the kernel reads or writes by an address that the thread gave it ------------------ */
/* Before the thread parks: no restartable sequence is under way. */
void rseq_forget(void);

/* --- unseen.c: what system calls made by inline assembly have left --------------------------------------- */
/* In the thread, at a job's end. True if it has used an io_uring, whose requests the kernel cancels when it ends. */
bool uring_used(void);
void uring_permitted(void); /* once, before the first thread: the kernel may be asked; until then it is not */
long uring_ask(void); /* -EINVAL if the calling thread never used one; else what the kernel says to that */
/* As the thread begins; and at a job's end: whether its scheduling was changed since. Asked once a millisecond at most. */
void scheduling_note(struct fresh_state *state);
bool scheduling_changed(struct fresh_state *state);

/* --- lineage.c ---------------------------------------------------------------------------------------- */
/* The lineage stands for kernel state that new threads inherit and that cannot be put back: scheduling policy,
 * nice value, namespaces, capabilities, seccomp filters ... Two threads of one lineage have the same such
 * state, because a lineage is only ever passed on by creation, and every change makes a new one. */
uint64_t lineage_new(uint64_t from);
/* A lineage also says of which generation its rights are: those that the main thread has had since it last changed
 * them, or earlier ones. A new lineage has its predecessor's; this is one for the main thread. */
uint64_t lineage_new_rights(void);
bool lineage_has_rights_of_main(uint64_t lineage); /* sequentially consistent: see keep.c */
/* Whether anything was ever changed; until then every thread is of lineage 0. */
bool lineage_ever_changed(void);

#endif
