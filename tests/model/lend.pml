// SPDX-License-Identifier: Apache-2.0
/* Thread control blocks that are lent to preempted units (src/preempt/lend.c, spares.c, preempt_for() in give_way.c,
 * switch_slow() in src/sched/switch.c; src/sched/tcb.h). Run by run-spin.sh; README.md says what is covered and what is
 * left out.
 *
 * Each unit takes a lock of libc's, lets it go, and ends; before, it may give way. A tick may come at any time, also while it
 * waits for the lock; then any unit of the queue may be the one that it is to be preempted for. Unit 0 is the
 * primary: it runs on worker 0 only, on that one's home block. OWNERS - 1 more have a block for life, from when they begin. The
 * last CHILDREN units are spawned by these: called, or queued. With JOINER these need not take the lock, and a unit without such a
 * block may wait for the end of unit 1, and runs next then. The provider needs the same lock to make another block, and there are EXTRA more to be had.
 *
 * Checked: no block is in two places; whoever runs, runs on the block that is his; when all have ended each block is a
 * worker's, its reserve, a spare, or home. And a preempted unit that has the lock gets its turn though nobody else goes on:
 * if a worker cannot change to it, another can, or is in the middle of something. (That it will is a matter of the queue's
 * order.)
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_RESERVE       to change to one that has taken a block along needs a spare, too
 *   NO_KEEP          the last spare is for anybody
 *   OWNER_UNCHECKED  the primary is preempted for whoever comes, though the last spare stayed behind it
 *   WAITS            who lacks a spare waits until there is one
 *   NO_WAIT          who goes on with a unit does not wait until it has left its worker
 *   NOT_PUT_DOWN     who leaves a unit that has a block of its own goes on with that
 *   PUT_DOWN_LATE    ... until the unit's stack may be another's
 *   NOT_GIVEN_BACK   a worker that has both blocks forgets the one that comes free
 *   RESERVE_TWICE    who goes on with the reserve, without a spare for its place, keeps it as the reserve, too
 *   CALLS_ANYHOW     a unit with a block for life calls its child, also without a spare behind it
 *   PICKS_ANYHOW     ... or gives way to one without a block
 *   ENDS_ANYHOW      ... or ends before such a joiner
 *   ENDS_EARLY       it may be preempted when it has put its block down, before its end
 */
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef UNITS
#define UNITS 3
#endif
#ifndef EXTRA
#define EXTRA 0
#endif

#ifndef OWNERS
#define OWNERS 1
#endif
#ifndef CHILDREN
#define CHILDREN 0
#endif

#define FREE     UNITS /* the lock */
#define PROVIDER (UNITS + 1)
#define NONE     0
#define HOME     1 /* then those of the other owners */
#define MINE     (1 + OWNERS) /* the workers' */
#define FIRST    (1 + OWNERS + 2 * WORKERS) /* of the spares */
#define LOW      2

#define BEGINS 0 /* at */
#define WANTS  1
#define HAS    2
#define DONE   3

byte lock = FREE;
byte at[UNITS];
byte tcb[UNITS];
bool took[UNITS], queued[UNITS], on_cpu[UNITS];
byte owners = 1, spawned, joiner;
bool owes[WORKERS]; /* what it runs has a block for life, and no spare behind it */
byte installed[WORKERS], present[WORKERS], reserve[WORKERS]; /* present: worker->tcb */
bool stable[WORKERS];                                        /* it runs a unit that waits for the lock */
bool spare_is[FIRST + 1 + EXTRA]; /* in the list */
byte count = 1, made = 1;
bool asked;

#define me      _pid
#define AT_ONCE (1 + (owners > 1 && WORKERS > 1))

#ifdef NO_KEEP
#define KEEP 0
#else
#define KEEP AT_ONCE
#endif

/* What may_change_to would say. */
#ifdef NO_RESERVE
#define enough_for(u) (count > (took[u] || tcb[u] != NONE -> 0 : KEEP))
#else
#define enough_for(u) (took[u] || count > (tcb[u] != NONE -> 0 : KEEP))
#endif
#define may_change(w, u) (((u) != 0 || (w) == 0) && (enough_for(u) || (tcb[u] != NONE && installed[w] != present[w])))

#if WORKERS > 1
#define no_other_resumes (stable[1 - me] && !may_change(1 - me, lock))
#else
#define no_other_resumes true
#endif

/* spares_give */
inline give(b) {
    d_step { assert(!spare_is[b]); spare_is[b] = true; count++; b = NONE }
}

/* spares_take: the first, if there are more than `keep`; else x is NONE. */
inline take(x, keep) {
    d_step {
        x = NONE;
        if
        :: count > keep ->
            x = MINE;
            do
            :: spare_is[x] -> break
            :: else -> x++
            od;
            spare_is[x] = false;
            count--
        :: else
        fi;
        asked = asked || (made <= EXTRA && count < LOW + keep)
    }
}

/* No two of those that this worker and what it runs have are the same, nor another's. */
inline check() {
    d_step {
        assert(installed[me] == (tcb[self] != NONE -> tcb[self] : present[me]));
        assert(present[me] != NONE && present[me] != reserve[me]);
        assert(!spare_is[present[me]] && !spare_is[reserve[me]] && !spare_is[installed[me]]);
#if WORKERS > 1
        assert(installed[0] != installed[1] && present[0] != present[1]);
        assert(present[0] != reserve[1] && present[1] != reserve[0]);
        assert(reserve[0] == NONE || reserve[0] != reserve[1]);
#endif
        i = 0;
        do
        :: i == UNITS -> i = 0; break
        :: i < UNITS ->
            assert(tcb[i] == NONE || (tcb[i] != present[me] && tcb[i] != reserve[me] && !spare_is[tcb[i]]));
            assert(i == self || tcb[i] == NONE || tcb[i] != installed[me]);
            i++
        od
    }
}

/* From the queue. */
inline pick(u) {
    if
    :: me == 0 && queued[0] -> u = 0
    :: queued[1] -> u = 1
#if UNITS > 2
    :: queued[2] -> u = 2
#endif
#if UNITS > 3
    :: queued[3] -> u = 3
#endif
    fi;
    queued[u] = false
}

#define keeps(u) (queued[u] && tcb[u] != NONE)
#if UNITS > 3
#define keeps_some ((me == 0 && keeps(0)) || keeps(1) || keeps(2) || keeps(3))
#elif UNITS > 2
#define keeps_some ((me == 0 && keeps(0)) || keeps(1) || keeps(2))
#else
#define keeps_some ((me == 0 && keeps(0)) || keeps(1))
#endif

/* pick_slow: from the queue; while the worker owes one that has a block, if there is such a one. */
inline pick_next(u) {
    if
#ifndef PICKS_ANYHOW
    :: owes[me] && keeps_some ->
        if
        :: me == 0 && keeps(0) -> u = 0
        :: keeps(1) -> u = 1
#if UNITS > 2
        :: keeps(2) -> u = 2
#endif
#if UNITS > 3
        :: keeps(3) -> u = 3
#endif
        fi;
        queued[u] = false;
        owes[me] = !took[u]
#endif
    :: else -> owes[me] = false; pick(u)
    fi
}

#if UNITS > 3
#define is_queued ((me == 0 && queued[0]) || queued[1] || queued[2] || queued[3])
#elif UNITS > 2
#define is_queued ((me == 0 && queued[0]) || queued[1] || queued[2])
#else
#define is_queued ((me == 0 && queued[0]) || queued[1])
#endif

#define to_be_owner (self != 0 && self < OWNERS)
#define has_begun   (!to_be_owner || tcb[self] != NONE)

#ifdef CALLS_ANYHOW
#define can_call true
#else
#define can_call (!owes[me])
#endif

#ifdef ENDS_ANYHOW
#define may_end_before(u) true
#else
#define may_end_before(u) (!owes[me] || tcb[u] != NONE)
#endif

active [WORKERS] proctype worker() {
    byte i, self, next, spare;
    bool has_block;

    atomic {
        present[me] = MINE + 2 * me;
        reserve[me] = MINE + 2 * me + 1;
        if
        :: me == 0 -> tcb[0] = HOME;
            spare_is[FIRST] = true;
            installed[0] = HOME;
            on_cpu[0] = true;
            queued[1] = true;
#if UNITS - CHILDREN > 2
            queued[2] = true;
#endif
#if UNITS - CHILDREN > 3
            queued[3] = true;
#endif
            goto running
#if WORKERS > 1
        :: me != 0 -> installed[me] = present[me]
#endif
        fi
    }
end_loop:
    atomic { is_queued -> assert(installed[me] == present[me]); pick_next(self) }
resume: /* wait_and_take */
#ifdef NO_WAIT
    on_cpu[self] = true;
#else
    atomic { !on_cpu[self] -> on_cpu[self] = true }
#endif
#ifdef PUT_DOWN_LATE
    installed[me] = present[me];
#endif
    atomic { /* install_units_tcb, return_tcb; who looks at this one looks when it runs */
        if
        :: tcb[self] != NONE -> installed[me] = tcb[self]
        :: tcb[self] == NONE -> goto running
        fi;
#if WORKERS > 1
        assert(installed[0] != installed[1]);
#endif
        if
        :: took[self] ->
            spare = present[me];
            present[me] = tcb[self];
            tcb[self] = NONE;
            took[self] = false
        :: !took[self] -> goto running
        fi
        if
        :: reserve[me] == NONE -> reserve[me] = spare; spare = NONE; goto running
        :: else
        fi
    }
#ifdef NOT_GIVEN_BACK
    spare = NONE;
#else
    give(spare);
#endif

running:
    check();
again:
    if
#if OWNERS > 1
    :: atomic { to_be_owner && tcb[self] == NONE && at[self] == BEGINS ->
            tcb[self] = HOME + self;
            installed[me] = tcb[self];
            owners++;
            owes[me] = owes[me] || count < AT_ONCE
        } goto again
#endif
#if CHILDREN > 0
    /* spawn() of one with a block for life */
    :: atomic { tcb[self] != NONE && at[self] == BEGINS && spawned < CHILDREN ->
            next = UNITS - 1 - spawned;
            spawned++;
            has_block = true;
            if
            :: can_call -> goto change
            :: !can_call -> queued[next] = true; next = 0; has_block = false
            fi
        } goto again
#endif
#ifdef JOINER
    :: atomic { self >= OWNERS && at[self] == BEGINS && at[1] != DONE && joiner == NONE ->
            joiner = self;
            on_cpu[self] = false;
            self = 0
        } goto end_loop
    /* it needs no lock to end */
    :: atomic { to_be_owner && has_begun && at[self] == BEGINS -> at[self] = DONE } goto again
#endif
#ifdef ENDS_EARLY
    /* own_leave, and then a tick */
    :: atomic { to_be_owner && tcb[self] != NONE && at[self] == DONE ->
            tcb[self] = NONE;
            installed[me] = present[me];
            owners--
        } goto again
    :: atomic { to_be_owner && tcb[self] == NONE && is_queued && at[self] == DONE -> pick(next); has_block = false } goto tick
#endif
    :: atomic { at[self] == BEGINS && has_begun -> at[self] = WANTS; stable[me] = true } goto again
    :: atomic { at[self] == WANTS && lock == FREE -> lock = self; at[self] = HAS; stable[me] = false } goto again
    :: atomic { at[self] == HAS -> lock = FREE; at[self] = DONE } goto again
    :: atomic { at[self] == DONE -> has_block = (tcb[self] != NONE) } goto leave
    /* it gives way, without a signal */
    :: atomic { at[self] == BEGINS && has_begun && is_queued -> pick_next(next); has_block = (tcb[self] != NONE) } goto change
    /* a tick: preempt_for */
    :: atomic { is_queued && at[self] != DONE -> stable[me] = false; pick(next); has_block = (tcb[self] != NONE) }
    fi;
tick:
    if
    :: has_block ->
#ifdef OWNER_UNCHECKED
        goto change
#endif
    :: !has_block
    fi;

    /* lend_choose_next */
#ifdef WAITS
    enough_for(next);
#endif
    if
    :: atomic { has_block && tcb[next] != NONE -> skip } /* nothing */
    :: atomic { !has_block && (took[next] || tcb[next] != NONE) -> skip }
        take(spare, 0)
    :: atomic { !took[next] && tcb[next] == NONE && !has_block -> skip }
        take(spare, KEEP)
    :: atomic { tcb[next] == NONE && has_block -> skip }
        take(spare, AT_ONCE - 1) /* to see whether it is there */
    fi;
    atomic {
        if
#ifdef NO_RESERVE
        :: spare == NONE && !(has_block && tcb[next] != NONE) ->
#else
        :: spare == NONE && !took[next] && !(has_block && tcb[next] != NONE) ->
#endif
            assert(next != lock || !no_other_resumes || at[self] != WANTS);
            queued[next] = true;
            next = 0;
            has_block = false;
            stable[me] = (at[self] == WANTS);
            goto again
        :: else -> /* note_debt */
            owes[me] = owes[me] || (tcb[next] != NONE && !took[next] && count <= AT_ONCE)
        fi
    }
    if
    :: has_block ->
        if
        :: spare != NONE -> give(spare)
        :: spare == NONE
        fi
    :: !has_block -> /* take_tcb */
        atomic {
            assert(reserve[me] != NONE);
            tcb[self] = present[me];
            took[self] = true;
            has_block = true;
            present[me] = reserve[me];
#ifdef RESERVE_TWICE
            if
            :: spare != NONE -> reserve[me] = spare
            :: else
            fi;
#else
            reserve[me] = spare;
#endif
            spare = NONE
        }
    fi;

change: /* unit_announce, unit_requeue; switch_slow with install_workers_tcb; arch_switch */
    queued[self] = true;
#if !defined(NOT_PUT_DOWN) && !defined(PUT_DOWN_LATE)
    if
    :: has_block -> installed[me] = present[me]
    :: !has_block
    fi;
#endif
    atomic { has_block = false; on_cpu[self] = false; self = next; next = 0 }
    goto resume;

leave: /* the primary waits for the others; they end */
    atomic {
        if
        :: has_block -> installed[me] = present[me]
        :: !has_block
        fi;
        has_block = false;
        if
        :: to_be_owner && tcb[self] != NONE -> tcb[self] = NONE; owners--
        :: else
        fi;
#ifdef JOINER
        if
        :: self == 1 && joiner != NONE -> next = joiner; joiner = NONE
        :: else
        fi;
#endif
        self = next;
        next = 0;
        if
        :: self != 0 && may_end_before(self) -> goto resume
        :: self != 0 && !may_end_before(self) -> queued[self] = true; self = 0
        :: self == 0
        fi
    }
    goto end_loop
} /* unreached: fine */

#if EXTRA > 0
active proctype provider() {
    byte b;
end_asleep:
    do
    :: atomic { asked -> asked = false }
        do
        :: atomic { count < LOW * 2 + AT_ONCE && made < 1 + EXTRA && lock == FREE -> lock = PROVIDER; b = FIRST + made; made++ }
            give(b);
            lock = FREE
        :: atomic { count >= LOW * 2 + AT_ONCE || made == 1 + EXTRA -> break }
        od
    od
} /* unreached: fine */
#endif

#define is_done(u) (at[u] == DONE || (u >= UNITS - CHILDREN && u < UNITS - spawned))

#if UNITS > 3
#define all_done (is_done(1) && is_done(2) && is_done(3))
#elif UNITS > 2
#define all_done (is_done(1) && is_done(2))
#else
#define all_done is_done(1)
#endif

active proctype verdict() {
    atomic {
        timeout;
        assert(at[0] == DONE && all_done && lock == FREE);
        assert(count == made && reserve[0] != NONE && reserve[WORKERS - 1] != NONE)
    }
}
