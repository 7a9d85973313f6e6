// SPDX-License-Identifier: Apache-2.0
/* How threads are begun, switched, joined, detached and ended (src/sched/unit.h, spawn.c, end.c, join.c; arch_switch and
 * arch_call in src/arch): the words `sp` and `join` of a unit, and when its descriptor may be used again. Run by run-spin.sh;
 * README.md says what is covered and what is left out.
 *
 * Makers, who never end before all is spawned, make children, at once or queued, and join them, join them until a
 * deadline and then do something else, detach them, or give the handle to a stranger, an external kernel thread, who
 * joins. Children yield, give their own handle to the stranger, end. One step is one atomic operation of the code.
 *
 * The run queues are one bag: pick() takes any of it, or nothing. So stealing, fairness and order are all there at
 * once. Whoever goes on with a unit that is not saved yet waits for it. Timers are timer.pml's: here one fires in two
 * steps, and whoever stops it waits for the second.
 *
 * Ghosts (not in the code): `on`, which worker stands on a unit's stack (+ 1); `life`, how often a descriptor has been
 * given out, and `result`, the life that it was stored in.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_ANNOUNCE     who is about to wait leaves its last stack pointer in sp
 *   ANNOUNCE_LATE   it says that it is on its CPU when others find it already
 *   NO_WAIT         who goes on with a unit does not wait until it is saved
 *   WAIT_FIRST      it waits before it has saved itself
 *   PUBLISH_FIRST   it says that it is saved while it stands on its stack still
 *   RESULT_LATE     the result is stored when the end has been published
 *   READS_AFTER     its descriptor is read then
 *   END_STORES      the end is published by a plain store though others have the handle
 *   ESCAPED_UNSEEN  (as that) where a maker waits in the queue who is not the only one to have the handle
 *   STILL_BEGETTING (as that) a maker that has gone on since looks as if it had not
 *   ANY_MAKER       (as that; MAKERS=2) a maker in the queue is taken for one's own that waits for another child since,
 *                   which has ended, and whose descriptor one has got
 *   TIMED_BY_STORE  a joiner with a deadline is taken for one without
 *   BLIND_JOIN      the joiner does not look whether it has ended meanwhile
 *   NOT_PUT_BACK    it forgets whom it would have gone on with then
 *   BLIND_DETACH    who detaches does not look either
 *   NO_STOP         (LATE > 0) a joiner that was woken does not stop its timer
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef MAKERS
#define MAKERS 1
#endif
#ifndef SPAWNS /* of all makers */
#define SPAWNS 2
#endif
#ifndef YIELDS
#define YIELDS 1
#endif
#ifndef LATE /* deadlines that come */
#define LATE 1
#endif

#define DESCRIPTORS 2 /* of children */
#define UNITS       (MAKERS + DESCRIPTORS)
#define LOOP        UNITS /* and nobody */

#define ON_CPU 0 /* sp */
#define NEW    1
#define SAVED  2

#define NONE     100 /* join; else the maker that waits, or TIMED + that one */
#define ENDED    101
#define DETACHED 102
#define STRANGER 103
#define TIMED    10

#define BEGINS  0 /* where a unit goes on */
#define SPAWNED 1
#define JOINED  2
#define WAITED  3
#define YIELDED 4

byte sp[UNITS], on[UNITS], at[UNITS];
bool queued[UNITS];
byte called_child[UNITS]; /* of makers */
byte called_by[UNITS]; /* of children that were called by it: a variable of unit_main's */
byte kid[UNITS], kid_life[UNITS];
byte join[UNITS]; /* of children, as these */
byte life[UNITS], result[UNITS];
bool used[UNITS], escaped[UNITS], tells[UNITS];
bool armed[MAKERS], firing[MAKERS], timed_out[MAKERS];
byte spawns = SPAWNS, yields = YIELDS, late = LATE;
byte offered = LOOP, offered_life;
bool given, told; /* to the stranger; it has been woken */
byte finished;

#define is_timed(j) ((j) >= TIMED && (j) < TIMED + MAKERS)
/* The child u has picked `next`. Nobody else can look at `join`, then. */
#if defined(END_STORES)
#define is_unseen_by_others true
#elif defined(ESCAPED_UNSEEN)
#define is_unseen_by_others (next < MAKERS && next == called_by[u] && called_child[next] == u)
#elif defined(ANY_MAKER)
#define is_unseen_by_others (next < MAKERS && called_child[next] == u && !escaped[u])
#else
#define is_unseen_by_others (next < MAKERS && next == called_by[u] && called_child[next] == u && !escaped[u])
#endif

#define touch(c, l) assert(used[c] && life[c] == l)

inline enqueue(x) {
    atomic { assert(!queued[x]); queued[x] = true }
}

/* Own queue, others', or nothing. */
inline pick() {
    if
    :: atomic { queued[0] -> queued[0] = false; next = 0 } /* a maker alone: unreached: fine */
    :: atomic { queued[1] -> queued[1] = false; next = 1 }
    :: atomic { queued[2] -> queued[2] = false; next = 2 }
#if MAKERS > 1
    :: atomic { queued[3] -> queued[3] = false; next = 3 }
#endif
    :: next = LOOP
    fi
}

inline announce() {
#if !defined(NO_ANNOUNCE) && !defined(ANNOUNCE_LATE)
    sp[u] = ON_CPU
#else
    skip
#endif
}

inline announce_late() {
#ifdef ANNOUNCE_LATE
    sp[u] = ON_CPU
#else
    skip
#endif
}

inline wait_for_next() {
#ifdef NO_WAIT
    skip
#else
    if
    :: next == LOOP
    :: next != LOOP && sp[next] != ON_CPU
    fi
#endif
}

/* Its registers are saved: who takes it from where it has announced itself may resume it. */
inline publish(where) {
    atomic { sp[u] = SAVED; at[u] = where }
}

/* Stands no longer on the stack that is left. A signal's handler may write wherever it stands, at any moment; so no other may
 * resume what is left before that (`resume` asserts it). */
inline step_off() {
    on[u] = 0
}

/* arch_call: to an empty stack that nobody else has. */
inline save(where) {
#ifdef PUBLISH_FIRST
    publish(where);
    step_off()
#else
    step_off();
    publish(where)
#endif
}

/* arch_switch: to the next one's stack, which goes on at `resume`, or, until that is saved, to its own loop's. */
inline leave_for_next(where) {
#if defined(WAIT_FIRST)
    wait_for_next();
    save(where)
#elif defined(PUBLISH_FIRST)
    save(where);
    wait_for_next()
#else
    if
    :: atomic { next != LOOP && sp[next] != ON_CPU -> step_off(); assert(on[next] == 0); on[next] = _pid + 1 }
    :: atomic { next == LOOP || sp[next] == ON_CPU -> step_off() }
    fi;
    publish(where);
    wait_for_next()
#endif
}

inline give_descriptor(c) {
    atomic {
        if
        :: !used[MAKERS] -> c = MAKERS
        :: used[MAKERS] && !used[MAKERS + 1] -> c = MAKERS + 1
        fi;
        used[c] = true;
        life[c]++;
        join[c] = NONE;
        escaped[c] = false;
        tells[c] = false;
        called_by[c] = LOOP;
        on[c] = 0;
        at[c] = BEGINS;
        kid[u] = c;
        kid_life[u] = life[c]
    }
}

/* It has ended: its result, and its descriptor back. */
inline collect(c, l) {
    atomic {
        touch(c, l);
        assert(join[c] == ENDED && result[c] == l);
        used[c] = false
    }
}

active [WORKERS] proctype worker() {
    byte u = LOOP, next = LOOP, c, joiner;

loop:
    u = LOOP;
end_loop:
    if
    :: atomic { queued[0] -> queued[0] = false; next = 0 }
    :: atomic { queued[1] -> queued[1] = false; next = 1 }
    :: atomic { queued[2] -> queued[2] = false; next = 2 }
#if MAKERS > 1
    :: atomic { queued[3] -> queued[3] = false; next = 3 }
#endif
    fi;
    wait_for_next();

resume:
    atomic {
        if
        :: next == LOOP -> goto loop
        :: else
        fi;
        u = next;
        next = LOOP;
        assert(on[u] == 0 || on[u] == _pid + 1);
        on[u] = _pid + 1;
        if
        :: u >= MAKERS && at[u] == BEGINS -> goto child
        :: u >= MAKERS && at[u] == YIELDED -> goto child
        :: u < MAKERS && at[u] == BEGINS -> goto maker
        :: u < MAKERS && at[u] == YIELDED -> goto with_kid
        :: at[u] == SPAWNED -> goto spawned
        :: at[u] == JOINED -> goto join_collect
        :: at[u] == WAITED -> goto waited
        fi
    }

    /* A maker without a child. */
maker:
    if
    :: atomic { spawns > 0 && !(used[MAKERS] && used[MAKERS + 1]) -> spawns-- }
        give_descriptor(c);
        if
        :: skip; /* spawn_now, arch_call, unit_main */
            if
            :: atomic { !given -> given = true; tells[c] = true } /* its maker does not use the handle */
            :: skip
            fi;
            c = u;
            save(SPAWNED);
            atomic { u = kid[c]; on[u] = _pid + 1; called_child[c] = u; called_by[u] = c }
            enqueue(c);
            c = 0;
            goto child
        :: atomic { true -> sp[c] = NEW }
            enqueue(c);
            c = 0;
            goto with_kid
        fi
    :: atomic { spawns == 0 -> finished++; on[u] = 0; next = LOOP; goto loop }
    fi;

spawned:
#ifndef STILL_BEGETTING
    called_child[u] = LOOP;
#endif
    if
    :: atomic { tells[kid[u]] && life[kid[u]] == kid_life[u] -> goto maker }
    :: atomic { life[kid[u]] != kid_life[u] -> goto maker } /* the stranger has joined it */
    :: atomic { !tells[kid[u]] && life[kid[u]] == kid_life[u] -> skip }
    fi;

with_kid:
    if
    :: atomic { yields > 0 -> yields-- }
        pick();
        if
        :: next == LOOP -> goto with_kid
        :: next != LOOP
        fi;
        announce();
        enqueue(u);
        announce_late();
        leave_for_next(YIELDED);
        goto resume
    :: atomic { !given && offered == LOOP -> given = true; offered_life = kid_life[u]; offered = kid[u]; goto maker }
    :: atomic { true -> touch(kid[u], kid_life[u]) } /* thrum_detach */
        if
#ifdef BLIND_DETACH
        :: atomic { join[kid[u]] == NONE -> skip }
            join[kid[u]] = DETACHED
#else
        :: atomic { join[kid[u]] == NONE -> join[kid[u]] = DETACHED }
#endif
        :: atomic { join[kid[u]] == ENDED -> skip }
            collect(kid[u], kid_life[u])
        fi;
        goto maker
    :: atomic { join[kid[u]] == ENDED -> touch(kid[u], kid_life[u]); goto join_collect }
    :: atomic { join[kid[u]] != ENDED -> touch(kid[u], kid_life[u]) } /* thrum_join */
        pick();
        if
        :: atomic { next == kid[u] && sp[next] == NEW -> skip } /* join_by_running */
            announce();
            join[next] = u;
            save(JOINED);
            goto resume
        :: atomic { next != kid[u] || sp[next] != NEW -> skip }
        fi;
        announce();
        if
#ifdef BLIND_JOIN
        :: atomic { join[kid[u]] == NONE -> skip }
            join[kid[u]] = u;
#else
        :: atomic { join[kid[u]] == NONE -> join[kid[u]] = u }
#endif
            announce_late();
            leave_for_next(JOINED);
            goto resume
        :: atomic { join[kid[u]] == ENDED -> skip }
#ifndef NOT_PUT_BACK
            if
            :: next == LOOP
            :: next != LOOP -> enqueue(next)
            fi;
#endif
            next = LOOP
        fi;
        goto join_collect
#if LATE > 0
    :: atomic { late > 0 && join[kid[u]] != ENDED -> late--; touch(kid[u], kid_life[u]) } /* thrum_join_until */
        announce();
        if
        :: atomic { join[kid[u]] == NONE -> join[kid[u]] = TIMED + u }
            announce_late();
            armed[u] = true;
            pick();
            leave_for_next(WAITED);
            goto resume
        :: atomic { join[kid[u]] == ENDED -> goto join_collect }
        fi
#endif
    fi;

waited:
#if LATE > 0
    if
    :: atomic { timed_out[u] -> timed_out[u] = false; goto with_kid }
    :: !timed_out[u]
    fi;
#ifndef NO_STOP
    atomic { !firing[u] -> armed[u] = false }
#endif
#endif
join_collect:
    collect(kid[u], kid_life[u]);
    goto maker;

    /* fn() */
child:
    if
    :: atomic { tells[u] && !escaped[u] -> escaped[u] = true }
        atomic { offered_life = life[u]; offered = u }
        goto child
    :: atomic { yields > 0 && !(tells[u] && !escaped[u]) -> yields-- }
        pick();
        if
        :: next == LOOP -> goto child
        :: next != LOOP
        fi;
        announce();
        enqueue(u);
        announce_late();
        leave_for_next(YIELDED);
        goto resume
    :: atomic { !(tells[u] && !escaped[u]) -> touch(u, life[u]) }
    fi;

    /* end_and_pick. The stack is the worker's own from here on, the descriptor until the end is published. */
    atomic {
        c = life[u];
        on[u] = 0;
#ifndef RESULT_LATE
        result[u] = c
#endif
    }
    joiner = join[u];
    if
#ifdef TIMED_BY_STORE
    :: joiner < MAKERS || is_timed(joiner) ->
        atomic { touch(u, c); join[u] = ENDED; next = joiner % TIMED }
#else
    :: joiner < MAKERS ->
        atomic { touch(u, c); join[u] = ENDED; next = joiner }
#endif
#ifdef TIMED_BY_STORE
    :: joiner >= MAKERS && !is_timed(joiner) ->
#else
    :: joiner >= MAKERS ->
#endif
        pick();
        if
        :: joiner == NONE && is_unseen_by_others ->
            atomic { touch(u, c); join[u] = ENDED; joiner = NONE }
        :: joiner != NONE || !is_unseen_by_others ->
            atomic { touch(u, c); joiner = join[u]; join[u] = ENDED } /* unit_publish_end */
            if
            :: joiner == NONE
            :: atomic { joiner == DETACHED -> touch(u, c); assert(result[u] == c); used[u] = false }
            :: joiner == STRANGER -> told = true
            :: joiner < MAKERS -> enqueue(joiner)
            :: is_timed(joiner) -> enqueue(joiner - TIMED)
            fi
        fi
    fi;
#ifdef RESULT_LATE
    result[u] = c;
#endif
#ifdef READS_AFTER
    touch(u, c);
#endif
    atomic { c = 0; joiner = 0; u = LOOP }
    wait_for_next();
    goto resume
} /* unreached: fine */

/* An external kernel thread. */
active proctype stranger() {
    byte c, l;
end_none:
    atomic { offered != LOOP -> c = offered; l = offered_life }
    if
    :: atomic { join[c] == ENDED -> touch(c, l) }
    :: atomic { join[c] == NONE -> touch(c, l); join[c] = STRANGER }
        told
    fi;
    collect(c, l);
    atomic { c = 0; l = 0 }
}

#if LATE > 0
/* join_time_out, under the store's lock. */
inline fire(j) {
    atomic {
        touch(kid[j], kid_life[j]);
        if
        :: join[kid[j]] == TIMED + j -> join[kid[j]] = NONE; timed_out[j] = true
        :: else
        fi
    }
    if
    :: timed_out[j] -> enqueue(j)
    :: !timed_out[j]
    fi;
    firing[j] = false
}

active proctype clock() {
end_none:
    do
    :: atomic { armed[0] -> armed[0] = false; firing[0] = true }
        fire(0)
#if MAKERS > 1
    :: atomic { armed[1] -> armed[1] = false; firing[1] = true }
        fire(1)
#endif
    od
} /* unreached: fine */
#endif

active proctype verdict() {
    atomic {
        timeout;
        assert(finished == MAKERS);
        assert(!used[MAKERS] && !used[MAKERS + 1])
    }
}

init {
    atomic {
        queued[0] = true;
        sp[0] = SAVED;
#if MAKERS > 1
        queued[1] = true;
        sp[1] = SAVED
#endif
    }
}
