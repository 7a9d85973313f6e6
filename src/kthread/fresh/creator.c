// SPDX-License-Identifier: Apache-2.0
/* What a new thread has from its creator: signal mask, floating-point environment, protection key rights, CPU
 * affinity, name, further registers. Captured when the thread is asked for, applied by the reused thread before user code runs.
 * Rows sigmask (in part), fpenv, pkeys, registers, inherit. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/atomic.h"
#include "base/rows.h"
#include "kthread/fresh/fresh.h"
#include "os/ticks.h"

static bool names_differ, pkeys_used;

void creator_names_differ(void) {
    store_relaxed(&names_differ, true);
}

/* Names are also written to files of /proc, which is not seen. Until one differs, all threads have the one that the
 * process had when its first thread was asked for. */
static char usual_name[FRESH_NAME]; /* r/o after creator_init */

void creator_look_at_name(void) {
    char name[FRESH_NAME];
    if (load_relaxed(&names_differ) || skipped(ROW_INHERIT) || sys(SYS_prctl, PR_GET_NAME, name) != 0)
        return;
    if (strncmp(name, usual_name, FRESH_NAME) != 0)
        creator_names_differ();
}

void creator_pkeys_used(void) {
    if (ARCH_PKEYS)
        store_relaxed(&pkeys_used, true);
}

static arch_registers_known registers_known; /* r/o after creator_init */

static uint32_t mask_room; /* bytes of a mask on this machine; r/o after creator_init */

/* The kernel refuses (EINVAL) what is too short for the CPUs that the machine can have, which are more than it has now. If
 * there is more room it may give more, which says nothing. */
static void find_mask_room(void) {
    unsigned long bits[FRESH_CPU_WORDS];
    long length = -EINVAL;
    for (size_t size = sizeof *bits; size <= sizeof bits && length == -EINVAL; size *= 2)
        length = sys(SYS_sched_getaffinity, 0, size, bits);
    bool whole = length > 0 && (size_t)length <= sizeof bits && (size_t)length % sizeof *bits == 0;
    mask_room = whole ? (uint32_t)length : 0; /* a filter that traps may have anything returned */
}

static bool is_short(void) {
    return mask_room <= sizeof(unsigned long);
}

size_t creator_masks_size(void) {
    return is_short() ? 0 : (2 * (size_t)mask_room + 63) & ~(size_t)63;
}

void creator_masks_place(struct fresh_creator *creator, struct fresh_state *state, void *memory) {
    if (mask_room == 0)
        return;
    creator->affinity.bits = is_short() ? &creator->affinity.few : memory;
    state->affinity.bits =
        is_short() ? &state->affinity.few : creator->affinity.bits + mask_room / sizeof(unsigned long);
}

void creator_init(void) {
    registers_known = arch_registers_find();
    sys(SYS_prctl, PR_GET_NAME, usual_name);
    find_mask_room();
}

bool creator_has_registers(void) {
    return arch_registers_all(registers_known);
}

/* A thread that creates one after another need not ask for its own affinity each time: changes by this process are
 * seen by the epoch. Changes by other processes are seen if they are older than a few microseconds, less than it
 * takes to tell the creator of them. A joiner asks anew while it waits, where it costs nothing (creator_look_again). */
enum { AFFINITY_GOOD_FOR_US = 20, AFFINITY_LOOK_AGAIN_US = 10 };
static uint32_t affinity_epoch = 1;
static __thread struct {
    const struct fresh_affinity *mask; /* of `masks` */
    uint64_t asked;                    /* ticks */
    uint32_t epoch;                    /* 0: nothing is known */
} own_affinity;

/* Each mask once: a thread's note of its own is a pointer, for a thread-local takes its room from every thread's stack.
 * Most processes have one mask. Written in the order claim, bits, length (release); a reader that finds a length
 * (acquire) has the bits. Two threads may enter the same mask at once. Where there are more, each creation asks. */
enum { MASKS_MAX = 64 };
static struct fresh_affinity masks[MASKS_MAX];
static unsigned long mask_bits[MASKS_MAX * FRESH_CPU_WORDS]; /* one after another, `mask_room` each */
static uint32_t masks_claimed;

static bool is_mask(const struct fresh_affinity *mask, const unsigned long *bits, uint32_t length) {
    /* Pairs with mask_enter. */
    return mask != NULL && load_acquire(&mask->length) == length && memcmp(mask->bits, bits, length) == 0;
}

static const struct fresh_affinity *mask_enter(const unsigned long *bits, uint32_t length) {
    if (load_relaxed(&masks_claimed) >= MASKS_MAX)
        return NULL;
    uint32_t at = fetch_add_relaxed(&masks_claimed, 1);
    if (at >= MASKS_MAX)
        return NULL;
    masks[at].bits = mask_bits + at * (mask_room / sizeof *bits);
    memcpy(masks[at].bits, bits, length);
    store_release(&masks[at].length, length); /* pairs with is_mask: the bits are there */
    return &masks[at];
}

static const struct fresh_affinity *mask_find(const unsigned long *bits, uint32_t length) {
    for (uint32_t i = 0; i < MASKS_MAX && i < load_relaxed(&masks_claimed); i++)
        if (is_mask(&masks[i], bits, length))
            return &masks[i];
    return mask_enter(bits, length);
}

static uint32_t
    affinities_changing; /* calls that are under way: their effect may be there, the epoch's change not yet */

void creator_affinity_changes(void) {
    fetch_add_seq_cst(&affinities_changing, 1); /* before the call's effect; pairs with affinity_known */
}

void creator_affinity_changed(struct fresh_state *state) {
    if (state != NULL)
        store_relaxed(&state->affinity.length, 0);
    /* This and the next pair with affinity_known. */
    fetch_add_seq_cst(&affinity_epoch, 1);
    fetch_sub_seq_cst(&affinities_changing, 1);
}

static bool affinity_known(uint64_t for_us) {
    /* Pairs with creator_affinity_changed: the epoch is the new one. */
    return load_acquire(&affinities_changing) == 0 && own_affinity.epoch == load_relaxed(&affinity_epoch) &&
           arch_ticks() - own_affinity.asked < for_us * ticks_per_us();
}

/* Into `bits`, of this size in bytes; the length, or 0. */
static uint32_t affinity_ask(unsigned long *bits, size_t size) {
    uint32_t epoch = load_relaxed(&affinity_epoch);
    uint64_t asked = arch_ticks();
    long answer = sys(SYS_sched_getaffinity, 0, size, bits);
    uint32_t length = answer > 0 && (size_t)answer <= size ? (uint32_t)answer : 0;
    own_affinity.epoch = 0; /* a signal handler may create a thread in between */
    if (length != 0 && !is_mask(own_affinity.mask, bits, length))
        own_affinity.mask = mask_find(bits, length);
    own_affinity.asked = asked;
    own_affinity.epoch = length != 0 && own_affinity.mask != NULL ? epoch : 0;
    return length;
}

/* A call that was under way in another thread ends in the parent only. */
void creator_fork_child(void) {
    store_relaxed(&affinities_changing, 0);
}

void creator_look_again(void) {
    if (own_affinity.epoch == 0 || affinity_known(AFFINITY_LOOK_AGAIN_US))
        return;
    uint32_t length = own_affinity.mask->length; /* the kernel's own, the same each time */
    affinity_ask(__builtin_alloca(length), length);
}

static bool affinity_same(const struct fresh_affinity *a, const struct fresh_affinity *b) {
    return load_relaxed(&a->length) == b->length && memcmp(a->bits, b->bits, b->length) == 0;
}

static void affinity_copy(struct fresh_affinity *to, const struct fresh_affinity *from) {
    memcpy(to->bits, from->bits, from->length);
    store_relaxed(&to->length, from->length);
}

static void affinity_capture(struct fresh_affinity *to) {
    if (affinity_known(AFFINITY_GOOD_FOR_US)) {
        affinity_copy(to, own_affinity.mask);
        return;
    }
    to->length = to->bits != NULL ? affinity_ask(to->bits, mask_room) : 0;
    creator_look_at_name();
}

void creator_capture(struct fresh_creator *creator) {
    arch_fpenv_save(&creator->fpenv);
    affinity_capture(&creator->affinity);
    arch_registers_save(&creator->registers, registers_known);
    if (load_relaxed(&pkeys_used))
        creator->pkeys = arch_pkeys_save();
    creator->has_name = load_relaxed(&names_differ);
    if (creator->has_name)
        sys(SYS_prctl, PR_GET_NAME, creator->name);
}

void creator_apply(const struct fresh_creator *creator, struct fresh_state *state) {
    if (own_affinity.epoch != 0) /* it shares a cache line with what joiners read */
        own_affinity.epoch = 0;
    if (!skipped(ROW_FPENV))
        arch_fpenv_load(&creator->fpenv);
    if (load_relaxed(&pkeys_used) && !skipped(ROW_PKEYS))
        arch_pkeys_load(creator->pkeys);
    if (!skipped(ROW_REGISTERS))
        arch_registers_load(&creator->registers, registers_known);
    if (skipped(ROW_INHERIT))
        return;
    if (creator->affinity.length != 0 && !affinity_same(&state->affinity, &creator->affinity)) {
        if (sys(SYS_sched_setaffinity, 0, creator->affinity.length, creator->affinity.bits) == 0)
            affinity_copy(&state->affinity, &creator->affinity);
        else /* those CPUs have just been taken from the process: again at the next job */
            store_relaxed(&state->affinity.length, 0);
    }
    if (creator->has_name)
        sys(SYS_prctl, PR_SET_NAME, creator->name);
}

/* What it has now is not known for certain: the creator's mask may have been changed between the look at it and the
 * thread's creation. Its next job asks for its creator's anyway. */
void creator_inherited(struct fresh_state *state) {
    store_relaxed(&state->affinity.length, 0);
}
