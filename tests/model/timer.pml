// SPDX-License-Identifier: Apache-2.0
/* Waiting with a deadline (src/sched/time/timer.h, timed_wait.h): who starts a timer, who fires it, who stops it, who wakes the
 * waiter meanwhile; and with -DJOIN the timed join (unit.h, join.c), where the thread's end is the waker. Run by
 * run-spin.sh; README.md says what is covered and what is left out.
 *
 * One step of the model is one atomic operation of the code, or what is done under the store's lock, but for firing,
 * which holds it for several. The timer, and what fire() looks at, lie on the waiter's stack: `there` says whether they
 * do, `round` which of them; any touch of one that is gone is seen. The deadline may come at any time from the start
 * on; a waiter that is never woken would wait for ever.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   FIRE_UNLOCKED    fire() is called when the lock has been let go
 *   TOUCH_AFTER      the timer is looked at after its fire()
 *   NO_STOP          a waiter that was woken does not stop its timer
 *   STOP_UNLOCKED    it does not wait for the lock when it finds that the timer is not there any more
 *   BLIND_TIMEOUT    the deadline says TIMED_OUT without comparing
 *   BLIND_WAKER      (not JOIN) so does the waker, with WOKEN
 *   END_PEEKS        (JOIN) the end looks at a timed joiner before it has taken it from `join`
 *   END_STORES       (JOIN) the end stores ENDED over a timed joiner that it has seen
 *   TIMER_FIRST      (JOIN) the joiner starts the timer before it stands in `join`
 */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef FIRERS
#define FIRERS 2
#endif

#define WAITING   0 /* enum wait_state */
#define WOKEN     1
#define TIMED_OUT 2

#define NONE    0 /* join; the joiner's round does for its address */
#define ENDED   100
#define UNTIMED 101

bool lock;     /* the store's */
bool armed;    /* the timer is in the heap */
bool there;    /* the waiter's frame */
bool firing;   /* a ghost: fire() runs */
byte round;    /* whose frame that is */
byte wakes;    /* unit_wake without a unit_block to match */
byte claim;    /* JOIN: `timed_out`, as TIMED_OUT */
bool listed;   /* the waker finds the waiter */
byte join;     /* of the thread that is joined */
bool gone;     /* so is its descriptor */
bool finished;

#define touch(r) assert(there && round == r)

inline wake() {
    atomic { wakes++; assert(wakes == 1) } /* twice would be once too often */
}

inline start() {
    atomic { !lock -> armed = true }
}

inline stop() {
#ifdef NO_STOP
    skip
#else
    if
    :: atomic { !lock -> armed = false }
#ifdef STOP_UNLOCKED
    :: !armed
#endif
    fi;
    assert(!firing)
#endif
}

active [FIRERS] proctype firer() {
    byte mine;
    bool won;
end_none:
    do
    :: atomic { armed && !lock -> armed = false; mine = round; firing = true; lock = true } /* the deadline has come */
#ifdef FIRE_UNLOCKED
        lock = false;
#endif
        /* time_out, join_time_out */
        if
#ifdef JOIN
        :: atomic { join == mine -> touch(mine); assert(!gone); join = NONE; won = true }
            atomic { touch(mine); claim = TIMED_OUT }
        :: atomic { join != mine -> touch(mine); assert(!gone); won = false }
#ifdef BLIND_TIMEOUT
        :: atomic { join != mine -> touch(mine); join = NONE; won = true }
            atomic { touch(mine); claim = TIMED_OUT }
#endif
#else
        :: atomic { claim == WAITING -> touch(mine); claim = TIMED_OUT; won = true }
#ifdef BLIND_TIMEOUT
        :: atomic { claim != WAITING -> touch(mine); claim = TIMED_OUT; won = true }
#else
        :: atomic { claim != WAITING -> touch(mine); won = false }
#endif
#endif
        fi;
        firing = false; /* but for its last act */
        if
        :: won -> wake()
        :: !won
        fi;
#ifdef TOUCH_AFTER
        touch(mine);
#endif
        atomic { lock = false; won = false; mine = 0 }
    od
} /* unreached: fine */

/* unit_block_until, and the list that its caller takes itself off; or thrum_join_until */
active proctype waiter() {
    do
    :: atomic { round < ROUNDS -> round++; claim = WAITING; there = true }
#ifdef JOIN
#ifdef TIMER_FIRST
        start();
#endif
        if
        :: atomic { join == ENDED -> break }
        :: atomic { join == NONE -> join = round }
        fi;
#ifndef TIMER_FIRST
        start();
#endif
#else
        listed = true;
        start();
#endif
        atomic { wakes == 1 -> wakes = 0 } /* unit_block */
        if
        :: claim == TIMED_OUT
        :: claim != TIMED_OUT -> stop();
#ifdef JOIN
            break
#endif
        fi;
        listed = false; /* under the list's lock, as the waker claims */
        there = false
    :: atomic { round == ROUNDS -> skip } goto untimed
    od;
#ifdef JOIN
    goto collect;
#endif
untimed:
#ifdef JOIN
    if
    :: atomic { join == ENDED -> skip } goto collect
    :: atomic { join == NONE -> join = UNTIMED }
    fi;
end_patient:
    atomic { wakes == 1 -> wakes = 0 }
collect:
    atomic { assert(join == ENDED && !gone); there = false; gone = true }
#endif
    finished = true
}

#ifdef JOIN
/* end_and_pick, publish. It may go on for ever. */
active proctype thread() {
    byte seen;
end_runs:
    if
    :: atomic { true -> seen = join; assert(!gone) }
    :: atomic { true -> seen = NONE; goto end_never }
    fi;
    if
    :: atomic { seen == UNTIMED -> join = ENDED }
        wake();
        goto end_never
    :: seen == NONE
#ifdef END_STORES
    :: atomic { seen != UNTIMED && seen != NONE -> join = ENDED }
        wake();
        goto end_never
#else
    :: atomic {
            seen != UNTIMED && seen != NONE ->
#ifdef END_PEEKS
            touch(seen);
#endif
            skip
        }
#endif
    fi;
    atomic { seen = join; join = ENDED }
    if
    :: seen == UNTIMED -> wake()
    :: atomic { seen != NONE && seen != UNTIMED -> touch(seen) }
        wake()
    :: seen == NONE
    fi;
end_never:
    false
} /* unreached: fine */
#else
/* Comes by at any time, or never. */
active proctype waker() {
    bool won;
end_none:
    do
    :: atomic { /* under the list's lock; wait_claim */
            listed ->
            listed = false;
            touch(round);
#ifdef BLIND_WAKER
            won = true;
            claim = WOKEN
#else
            won = (claim == WAITING);
            claim = (won -> WOKEN : claim)
#endif
        }
        if
        :: atomic { won -> touch(round); won = false }
            wake()
        :: !won
        fi
    od
} /* unreached: fine */
#endif
