// SPDX-License-Identifier: Apache-2.0
/* Workers without work (src/sched/idle.h, idle.c; worker_search and work_somewhere in loop.c): who pushes a unit does
 * so without a fence, who parks makes up for that by membarrier; and with -DSTOP how they are stopped (stop() and
 * thrum_fini in src/runtime/init.c). Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * One step is one atomic operation of the code. What a pusher stores may stay in its CPU's store buffer (`late`) for as
 * long as it likes, while it goes on: the load of `count` is done before the push is seen, then. A fence of its own, or
 * the parker's membarrier, empties the buffer. Only the pushes are buffered: the other stores here are
 * read-modify-writes, or followed by a fence.
 *
 * Places where a unit may be: worker w's own queue (w), the shared queue (SHARED), inboxes. A worker that has found a
 * unit may run it for ever, push another, end. In the end nobody can do anything, and no unit is left that a parked
 * worker would run.
 *
 * -DFENCED: there is no membarrier, pushers fence. -DSTOP: nothing is run for ever, and when everything has been run
 * the workers are stopped and freed (`gone`).
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_MEMBARRIER    who parks has a fence for itself only
 *   NO_SECOND_LOOK   who parks does not look again
 *   LOOK_FIRST       it looks before it says that it is parked
 *   BLIND_AWAKE      who finds something after all does not ask whether it has been woken meanwhile
 *   NO_HAND_ON       who leaves the search with what it has found wakes nobody for the rest
 *   HAND_ON_NO_FENCE it looks for the rest without the fence
 *   UNSIGNED         who is woken, searches and leaves before the waker has counted it, makes the number of those who
 *                    search fall below 0, which is taken for many
 *   COUNT_FIRST      the waker counts it before it has claimed it, and takes that back if it has not
 *   WAKE_THIS_LOOKS  (INBOX) who has something for one worker does as if it were for anybody
 *   PUSHER_NO_FENCE  (FENCED) who pushes has no fence either
 *   THIS_NO_FENCE    (FENCED, INBOX) likewise who has something for one worker
 *   BLIND_TO_STOP    (STOP) who parks does not look whether all are to stop
 *   STOP_LAST        (STOP) they are woken before they are told
 *   STOP_NO_WAKE     (STOP) they are told only
 *   PUSHER_INSIDE    (STOP) whoever called from outside has not returned when thrum_fini is called
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef PUSHERS /* kernel threads from outside */
#define PUSHERS 1
#endif
#ifndef PUSHES /* of each */
#define PUSHES 2
#endif
#ifndef SPAWNS /* of all units together */
#define SPAWNS 2
#endif
#ifndef INBOX /* units for worker 0, from a pusher of their own */
#define INBOX 0
#endif
#ifndef LOOKS /* by whoever starts timers; deadlines that come */
#define LOOKS 1
#endif

#define AWAKE  0 /* enum parking_state */
#define PARKED 1
#define WOKEN  2
#define LOOK   3

#define SHARED WORKERS
#define NOBODY WORKERS

/* `count` is a byte: parked workers in the low half, searching ones in the high one; it wraps as the real one does. */
#define S 16
#define add(n)       count = (count + 256 + (n)) % 256
#define parked_in(c) ((c) % S)
#ifdef UNSIGNED
#define none_searches(c) ((c) < S)
#define is_last(c)       ((c) / S == 1)
#else
#define none_searches(c) ((c) < S || (c) >= 128)
#define is_last(c)       ((c) < 2 * S || (c) >= 128)
#endif

byte count;
byte word[WORKERS];
byte seen[WORKERS + 1]; /* by everybody, in this place */
byte late[WORKERS + 1]; /* not yet; in the shared queue: of all pushers */
byte inbox, late_inbox; /* worker 0's */
byte spawns = SPAWNS, looks = LOOKS;
byte ran, busy;
bool stopping, gone;
byte exited, returned; /* workers, pushers */

#define me    _pid
#define touch assert(!gone)

inline flush(place) {
    d_step { seen[place] = seen[place] + late[place]; late[place] = 0 }
}

inline flush_all() {
    d_step {
        seen[0] = seen[0] + late[0];
        late[0] = 0;
        seen[1] = seen[1] + late[1];
        late[1] = 0;
        seen[2] = seen[2] + late[2];
        late[2] = 0;
#if WORKERS > 2
        seen[3] = seen[3] + late[3];
        late[3] = 0;
#endif
        inbox = inbox + late_inbox;
        late_inbox = 0
    }
}

/* Of whoever parks, or looks for the rest. */
inline fence() {
#if defined(FENCED) || defined(NO_MEMBARRIER)
    flush(me)
#else
    flush_all()
#endif
}

/* claim: the first that is parked. i is the caller's. */
inline wake_one() {
    i = 0;
    do
    :: atomic { i == WORKERS -> i = 0; break }
    :: atomic { i < WORKERS && (word[i] == AWAKE || word[i] == WOKEN) -> touch; i++ }
#ifdef COUNT_FIRST
    :: i < WORKERS && (word[i] == PARKED || word[i] == LOOK) ->
        add(S - 1);
        if
        :: atomic { word[i] == PARKED || word[i] == LOOK -> word[i] = WOKEN; i = 0; break }
        :: atomic { word[i] == AWAKE || word[i] == WOKEN -> add(1 - S); i++ }
        fi
#else
    :: atomic { i < WORKERS && (word[i] == PARKED || word[i] == LOOK) -> touch; word[i] = WOKEN }
        atomic { touch; add(S - 1); i = 0; break }
#endif
    od
}

/* idle_wake_check */
inline wake_check() {
    if
    :: atomic { parked_in(count) != 0 && none_searches(count) -> skip }
        wake_one()
    :: atomic { parked_in(count) == 0 || !none_searches(count) -> skip }
    fi
}

/* has_work_for_any, with one's own eyes. */
inline look_for_anybody() {
    sees = (seen[SHARED] > 0);
    i = 0;
    do
    :: atomic { sees || i == WORKERS -> i = 0; break }
    :: atomic { !sees && i < WORKERS -> sees = (seen[i] > 0 || (i == me && late[i] > 0)); i++ }
    od
}

active [WORKERS] proctype worker() {
    byte i, before;
    bool sees, go_on;

search:
    add(S); /* idle_search */
around:
    /* pick_anywhere: its own first. Stealing may fail though there is something: another thief is at it. */
    atomic {
        if
        :: late[me] > 0 -> late[me]--; goto found
        :: late[me] == 0 && seen[me] > 0 -> seen[me]--; goto found
#if INBOX > 0
        :: late[me] == 0 && seen[me] == 0 && me == 0 && inbox > 0 -> inbox--; goto found
#endif
        :: else
        fi
    }
    if
    :: atomic { seen[SHARED] > 0 -> seen[SHARED]--; goto found }
    :: seen[SHARED] == 0
    fi;
    i = 0;
    do
    :: atomic { i == WORKERS -> i = 0; break }
#if SPAWNS > 0
    :: atomic { i < WORKERS && i != me && seen[i] > 0 -> seen[i]--; i = 0; goto found }
#endif
    :: atomic { i < WORKERS -> i++ }
    od;
#ifdef STOP
    if /* is_called_away */
    :: atomic { stopping -> sees = true; goto leave }
    :: !stopping
    fi;
#endif

    /* idle_park */
#ifdef LOOK_FIRST
    look_for_anybody();
    go_on = sees || stopping || (me == 0 && inbox > 0);
#endif
    word[me] = PARKED;
    add(1 - S);
    fence();
#ifdef LOOK_FIRST
#elif defined(NO_SECOND_LOOK)
    go_on = false;
#else
    /* work_somewhere */
#ifdef BLIND_TO_STOP
    go_on = false;
#else
    go_on = stopping;
#endif
#if INBOX > 0
    if
    :: atomic { me == 0 && inbox > 0 -> go_on = true }
    :: atomic { me != 0 || inbox == 0 -> skip }
    fi;
#endif
    if
    :: go_on
    :: !go_on -> look_for_anybody();
        go_on = sees
    fi;
#endif
    sees = false;
again:
    if
    :: atomic { word[me] == WOKEN -> go_on = false }
        atomic { word[me] = AWAKE; goto around }
#ifdef BLIND_AWAKE
    :: atomic { word[me] != WOKEN && go_on -> go_on = false }
        word[me] = AWAKE;
        add(S - 1);
        goto around
#else
    :: atomic { word[me] != WOKEN && go_on -> word[me] = AWAKE; go_on = false }
        add(S - 1);
        goto around
#endif
    :: atomic { word[me] == LOOK && !go_on -> word[me] = PARKED }
    :: word[me] == PARKED && !go_on
    fi;
end_asleep:
    if
    :: word[me] != PARKED
#if LOOKS > 0
    :: atomic { word[me] == PARKED && looks > 0 -> looks--; go_on = true }
#endif
    fi;
    goto again;

found:
leave:
    /* idle_found */
    atomic { before = count; add(-S) }
#ifndef NO_HAND_ON
    if
    :: atomic { is_last(before) && parked_in(before) != 0 -> before = 0 }
        look_for_anybody();
#ifndef HAND_ON_NO_FENCE
        if
        :: sees
        :: !sees -> fence();
            look_for_anybody()
        fi;
#endif
        if
        :: atomic { sees -> sees = false }
            wake_check()
        :: !sees
        fi
    :: atomic { !is_last(before) || parked_in(before) == 0 -> before = 0 }
    fi;
#endif
#ifdef STOP
    atomic {
        sees = false;
        if
        :: stopping && ran == PUSHERS * PUSHES + INBOX + SPAWNS - spawns -> goto over
        :: else
        fi
    }
#endif

running:
    if
#if SPAWNS > 0
    :: atomic { spawns > 0 -> spawns--; late[me]++ }
#if defined(FENCED) && !defined(PUSHER_NO_FENCE)
        flush(me);
#endif
        wake_check();
        goto running
#endif
#ifndef STOP
    :: atomic { true -> ran++; busy++; goto end_busy }
#endif
    :: atomic { true -> ran++ } /* it ends: what is in its own queue goes first, without a search */
        atomic {
            if
            :: late[me] > 0 -> late[me]--; goto running
            :: late[me] == 0 && seen[me] > 0 -> seen[me]--; goto running
            :: else -> goto search
            fi
        }
    fi;
#ifdef STOP
over:
    exited++
#else
end_busy:
    false
#endif
} /* unreached: fine */

/* unit_wake_elsewhere. The shared queue's buffer stands for all of theirs. */
active [PUSHERS] proctype pusher() {
    byte i, n;
    do
    :: atomic { n == PUSHES -> n = 0; break }
    :: atomic { n < PUSHES -> n++; late[SHARED]++ }
#if defined(FENCED) && !defined(PUSHER_NO_FENCE)
        flush(SHARED);
#endif
        wake_check()
    od;
    returned++
}

#if INBOX > 0
active proctype sender() {
    byte i, n;
    do
    :: atomic { n == INBOX -> n = 0; break }
    :: atomic { n < INBOX -> n++; late_inbox++ }
#ifdef WAKE_THIS_LOOKS
        wake_check()
#else
#ifndef THIS_NO_FENCE
        d_step { inbox = inbox + late_inbox; late_inbox = 0 }
#endif
        if /* idle_wake_this */
        :: atomic { word[0] == PARKED || word[0] == LOOK -> touch; word[0] = WOKEN }
            atomic { touch; add(S - 1) }
        :: atomic { word[0] == AWAKE || word[0] == WOKEN -> touch }
        fi
#endif
    od;
    returned++
}
#endif

#if LOOKS > 0
active proctype teller() {
end_none:
    do
    :: atomic { looks == 0 -> break }
    :: atomic { looks > 0 && word[0] == PARKED -> looks--; word[0] = LOOK }
    od
}
#endif

/* Store buffers are emptied at last. */
active proctype memory() {
end_none:
    do
    :: late[0] > 0 -> flush(0)
    :: late[1] > 0 -> flush(1)
    :: late[2] > 0 -> flush(2)
#if WORKERS > 2
    :: late[3] > 0 -> flush(3)
#endif
#if INBOX > 0
    :: late_inbox > 0 -> d_step { inbox = inbox + late_inbox; late_inbox = 0 }
#endif
    od
} /* unreached: fine */

#ifdef STOP
active proctype stopper() {
    byte i;
    ran == PUSHERS * PUSHES + INBOX + SPAWNS - spawns;
#ifndef PUSHER_INSIDE
    returned == PUSHERS + (INBOX > 0 -> 1 : 0);
#endif
#ifndef STOP_LAST
    stopping = true;
#endif
#ifndef STOP_NO_WAKE
    do
    :: atomic { i == WORKERS -> i = 0; break }
    :: atomic { i < WORKERS && (word[i] == AWAKE || word[i] == WOKEN) -> i++ }
    :: atomic { i < WORKERS && (word[i] == PARKED || word[i] == LOOK) -> word[i] = WOKEN }
        atomic { add(S - 1); i++ }
    od;
#endif
#ifdef STOP_LAST
    stopping = true;
#endif
    exited == WORKERS;
    gone = true
}
#else

#if WORKERS > 2
#define is_left (seen[0] + seen[1] + seen[2] + seen[3] > 0)
#define some_parked (word[0] == PARKED || word[1] == PARKED || word[2] == PARKED)
#else
#define is_left (seen[0] + seen[1] + seen[2] > 0)
#define some_parked (word[0] == PARKED || word[1] == PARKED)
#endif

active proctype verdict() {
    atomic {
        timeout;
        assert(returned == PUSHERS + (INBOX > 0 -> 1 : 0));
        assert(!is_left || busy == WORKERS);
        assert(inbox == 0 || word[0] != PARKED)
    }
}
#endif
