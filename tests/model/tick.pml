// SPDX-License-Identifier: Apache-2.0
/* Workers that get no ticks while there is nobody else to run (src/sched/tick.h, src/preempt/tick.c, preempt_pick_successor() in
 * src/preempt/give_way.c), against who makes something to run, who searches and who parks (src/sched/idle.h, idle.c). Run by
 * run-spin.sh; README.md says what is covered and what is left out.
 *
 * One step is one atomic operation of the code. As in idle.pml a push may stay in the pusher's store buffer (`late`) as long
 * as it likes, and goes on: it has been done when a fence of the pusher's own or somebody's membarrier has emptied
 * the buffer. A unit that a worker runs may end, push another, give way, sleep, or (`hogging`) go on for ever, so that only a
 * tick gets anybody else to run. One that is bound to worker 0 goes to that one's inbox, where nobody else looks.
 * How often each of that happens is bounded. Ticks come as long as the worker's alarm says so; one that finds nobody
 * ends in rest. In the end nobody can do anything: then no unit may be left, or a tick is there that would see to it.
 *
 * HOGS: so many workers run a unit at first, and the first of them a bound one with BOUND. NO_TIMER: the last worker has
 * got no timer from the system. FENCED: no membarrier. NESTED: ticks in the middle of tick_rest().
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_MEMBARRIER    who rests has a fence for itself only
 *   NO_SECOND_LOOK   who rests does not look again
 *   LOOK_FIRST       it looks before it says that it rests
 *   STATE_FIRST      it says so before it is counted: who ends its rest then counts one that another is, and the sum is 0
 *   ALARM_LAST       it asks for no more ticks when it has said so
 *   STILL_COUNTS     at a deadline it is counted again
 *   BLIND_GO_ON      two that end one rest both count it
 *   ASK_FIRST        who ends a rest asks for ticks before
 *   NO_GO_ON         the tick at a deadline does not end the rest
 *   NO_DEADLINE      who rests asks for no tick at its timer's deadline
 *   TIMER_UNTOLD     (YIELDS, SLEEPS) nor does who starts a timer end the rest
 *   NO_HAND_ON       (NO_TIMER) who ceases to search does not look again for those who rest
 *   RESTING_EARLY    (NO_TIMER) ... if nobody rests before it ceases
 *   MISS_UNTOLD      who finds nobody to wake, although one is still counted as parked, tells nobody who rests
 *   BLIND_OFF        (NO_TIMER) a tick that comes when the worker is about to run a unit is its last
 *   GIVE_WAY_UNTOLD  (BOUND) a bound unit that gives way, where only its own worker looks, does not end that one's rest
 *   THIS_UNTOLD      (INBOX) nor does who pushes there
 *   ONE_TOLD         (INBOX) one that rests is told, whoever the push is for
 *   PUSHER_NO_FENCE  (FENCED) who pushes has no fence either
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef HOGS
#define HOGS 1
#endif
#ifndef PUSHERS
#define PUSHERS 1
#endif
#ifndef PUSHES /* of each */
#define PUSHES 1
#endif
#ifndef INBOX /* units for worker 0, from a pusher of their own */
#define INBOX 0
#endif
#ifndef TELLS /* by those who have something for workers that are not there: all who rest are told */
#define TELLS 0
#endif
#ifndef ENDS /* these five: of all units together */
#define ENDS 1
#endif
#ifndef SPAWNS
#define SPAWNS 0
#endif
#ifndef YIELDS
#define YIELDS 0
#endif
#ifndef SLEEPS
#define SLEEPS 0
#endif
#ifndef PREEMPTS
#define PREEMPTS 1
#endif

#define AWAKE  0 /* enum parking_state */
#define PARKED 1
#define WOKEN  2

#define OFF  0 /* enum tick_state */
#define ON   1
#define REST 2
#define NO_TICKS 3 /* TICK_NEVER */

#define NEVER    0 /* what the alarm is set to */
#define PERIODIC 1
#define ONCE     2

#define SHARED WORKERS

/* `count` is a byte: parked workers in the low half, searching ones in the high one; it wraps as the real one does. */
#define S 16
#define add(n)           count = (count + 256 + (n)) % 256
#define parked_in(c)     ((c) % S)
#define none_searches(c) ((c) < S || (c) >= 128)
#define is_last(c)       ((c) < 2 * S || (c) >= 128)

byte count;
short resting;
byte word[WORKERS], state[WORKERS], alarm[WORKERS];
byte seen[WORKERS + 1]; /* by everybody, in this place */
byte late[WORKERS + 1]; /* not yet; in the shared queue: of all pushers */
byte inbox;             /* worker 0's */
byte timers[WORKERS];   /* in its store */
byte ends = ENDS, spawns = SPAWNS, yields = YIELDS, sleeps = SLEEPS, preempts = PREEMPTS;

#define me _pid

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
    }
}

/* Of whoever parks, or looks for the rest. */
inline fence() {
#ifdef FENCED
    flush(me)
#else
    flush_all()
#endif
}

inline fence_of_rest() {
#if defined(FENCED) || defined(NO_MEMBARRIER)
    flush(me)
#else
    flush_all()
#endif
}

inline fence_of_push(place) {
#if defined(FENCED) && !defined(PUSHER_NO_FENCE)
    flush(place)
#else
    skip
#endif
}

/* --- ticks -------------------------------------------------------------------------------------------- */

/* tick_resume */
inline go_on(w) {
    if
#ifdef ASK_FIRST
    :: atomic { state[w] == REST -> alarm[w] = PERIODIC }
        if
        :: atomic { state[w] == REST -> state[w] = ON }
            resting--
        :: state[w] != REST
        fi
#elif defined(BLIND_GO_ON)
    :: state[w] == REST ->
        state[w] = ON;
        resting--;
        alarm[w] = PERIODIC
#else
    :: atomic { state[w] == REST -> state[w] = ON }
        resting--;
        alarm[w] = PERIODIC
#endif
    :: state[w] != REST
    fi
}

/* tick_wake_resting. i is the caller's. */
inline wake_resting() {
#ifdef ONE_TOLD
    if
    :: state[1] == REST -> go_on(1)
    :: state[1] != REST -> go_on(0)
    fi
#else
    i = 0;
    do
    :: atomic { i == WORKERS -> i = 0; break }
    :: atomic { i < WORKERS && state[i] != REST -> i++ }
    :: i < WORKERS && state[i] == REST ->
        go_on(i);
        i++
    od
#endif
}

/* idle_wake_one: the first that is parked. */
inline wake_one() {
    i = 0;
    do
    :: atomic { i == WORKERS -> i = 0 }
#ifndef MISS_UNTOLD
        if
        :: resting != 0 -> wake_resting()
        :: resting == 0
        fi;
#endif
        break
    :: atomic { i < WORKERS && word[i] != PARKED -> i++ }
    :: atomic { i < WORKERS && word[i] == PARKED -> word[i] = WOKEN }
        atomic { add(S - 1); i = 0; break }
    od
}

/* idle_wake_check, idle_wake_resting */
inline wake_check() {
    if
    :: parked_in(count) != 0 && none_searches(count) -> wake_one()
    :: parked_in(count) == 0 || !none_searches(count) ->
        if
        :: resting != 0 ->
            if
            :: parked_in(count) == 0 && none_searches(count) -> wake_resting()
            :: parked_in(count) != 0 || !none_searches(count)
            fi
        :: resting == 0
        fi
    fi
}

/* --- what a worker sees ------------------------------------------------------------------------------- */

/* has_work_for_any, with one's own eyes. One step: nothing moves from one queue to another. */
#if WORKERS > 2
#define for_anybody (seen[SHARED] + seen[0] + seen[1] + seen[2] + late[me] > 0)
#else
#define for_anybody (seen[SHARED] + seen[0] + seen[1] + late[me] > 0)
#endif

/* tick_has_others; for the second look of a parker, too. */
#define for_me (for_anybody || (me == 0 && inbox > 0))

/* A timer of worker w's fires, on this one; it may be another's, or not be due yet. */
inline fire(w) {
    if
    :: atomic { timers[w] > 0 -> timers[w]--; late[me]++ }
        fence_of_push(me);
        wake_check()
    :: timers[w] == 0
    :: true
    fi
}

active [WORKERS] proctype worker() {
    byte i, before;
    bool sees, rest, bound, hog, once, pending;

    atomic {
        state[me] = OFF;
#ifdef NO_TIMER
        state[WORKERS - 1] = NO_TICKS;
#endif
#if HOGS > 0
        if
        :: me < HOGS && state[me] == OFF -> state[me] = ON; alarm[me] = PERIODIC
        :: else
        fi;
        if
        :: me < HOGS ->
#ifdef BOUND
            bound = (me == 0);
#endif
            goto running
        :: else
        fi
#endif
    }
search:
    if /* a tick was pending when the loop went on, or is so now: tick_resume, tick_off */
    :: atomic {
            alarm[me] != NEVER -> alarm[me] = NEVER;
            if
            :: state[me] == REST -> resting--
            :: else
            fi;
            state[me] = OFF
        }
    :: true
    fi;
    add(S); /* idle_search */
    if /* tick_end */
    :: atomic { state[me] == REST -> state[me] = OFF }
        resting--
    :: state[me] != REST
    fi;
around:
#if SLEEPS > 0
    fire(0);
    fire(1);
#endif
    /* pick_anywhere; others may be at it, and be first */
    atomic {
        if
        :: late[me] > 0 -> late[me]--
        :: late[me] == 0 && seen[me] > 0 -> seen[me]--
        :: me == 0 && inbox > 0 -> inbox--; bound = true
        :: seen[SHARED] > 0 -> seen[SHARED]--
        :: me != 0 && seen[0] > 0 -> seen[0]--
        :: me != 1 && seen[1] > 0 -> seen[1]--
#if WORKERS > 2
        :: me != 2 && seen[2] > 0 -> seen[2]--
#endif
        :: late[me] + seen[me] == 0 && (me != 0 || inbox == 0) -> goto park
        fi;
        goto found
    }

park: /* idle_park */
    word[me] = PARKED;
    add(1 - S);
    fence();
    sees = for_me;
again:
    if
    :: atomic { word[me] == WOKEN -> sees = false; word[me] = AWAKE }
        goto around
    :: atomic { word[me] == PARKED && sees -> sees = false; word[me] = AWAKE }
        add(S - 1);
        goto around
    :: word[me] == PARKED && !sees
    fi;
end_asleep:
    if
    :: word[me] != PARKED
    :: atomic { word[me] == PARKED && alarm[me] != NEVER -> alarm[me] = NEVER } /* the handler finds its loop: tick_off */
        state[me] = OFF
#if SLEEPS > 0
    :: atomic { word[me] == PARKED && timers[0] + timers[1] > 0 -> sees = true } /* a deadline comes */
#endif
    fi;
    goto again;

found:
    /* idle_found */
#ifdef RESTING_EARLY
    rest = (resting != 0);
    atomic { before = count; add(-S) }
#else
    atomic { before = count; add(-S) }
#ifndef NO_HAND_ON
    rest = (resting != 0);
#endif
#endif
    if
    :: atomic { is_last(before) && (parked_in(before) != 0 || rest) -> before = 0; rest = false }
        sees = for_anybody;
        if
        :: sees
        :: !sees -> fence();
            sees = for_anybody
        fi;
        if
        :: atomic { sees -> sees = false }
            wake_check()
        :: !sees
        fi
    :: atomic { !is_last(before) || (parked_in(before) == 0 && !rest) -> before = 0; rest = false }
    fi;

    /* worker_run */
    if
    :: atomic { state[me] == OFF -> state[me] = ON }
        alarm[me] = PERIODIC /* tick_begin */
    :: state[me] != OFF
#ifdef BLIND_OFF
        if
        :: alarm[me] != NEVER -> alarm[me] = NEVER; state[me] = OFF
        :: true
        fi
#endif
    fi;

running:
    if
#if SPAWNS > 0
    :: atomic { spawns > 0 -> spawns--; late[me]++ }
        fence_of_push(me);
        wake_check();
        goto running
#endif
#if YIELDS > 0
    /* thrum_yield: its own queue, and the shared one */
    :: atomic {
            yields > 0 && (late[me] > 0 || seen[me] > 0 || seen[SHARED] > 0 || (me == 0 && inbox > 0)) ->
            yields--;
            rest = bound;
            bound = false;
            if
            :: late[me] > 0 -> late[me]--
            :: late[me] == 0 && seen[me] > 0 -> seen[me]--
            :: late[me] == 0 && seen[me] == 0 && me == 0 && inbox > 0 -> inbox--; bound = true
            :: late[me] == 0 && seen[me] == 0 && (me != 0 || inbox == 0) -> seen[SHARED]--
            fi;
            if
            :: rest -> inbox++
            :: else -> late[me]++
            fi
        }
        goto give_way
#endif
#if SLEEPS > 0
    :: atomic { sleeps > 0 && !bound -> sleeps--; timers[me]++ } /* timer_start */
#ifndef TIMER_UNTOLD
        go_on(me);
#endif
        goto next
#endif
    :: true -> hog = true; goto hogging
    :: atomic { alarm[me] != NEVER -> once = (alarm[me] == ONCE); alarm[me] = (once -> NEVER : PERIODIC) }
        goto tick
#if ENDS > 0
    :: atomic { ends > 0 -> ends--; bound = false } /* it ends */
        goto next
#endif
    fi;

next: /* pick_own, or the loop */
    atomic {
        if
        :: late[me] > 0 -> late[me]--; goto running
        :: late[me] == 0 && seen[me] > 0 -> seen[me]--; goto running
        :: else -> goto search
        fi
    }

give_way: /* unit_requeue, when it has put the unit there */
    if
    :: atomic { rest -> rest = false }
#ifndef GIVE_WAY_UNTOLD
        go_on(me);
#endif
        wake_check()
    :: atomic { !rest -> skip }
        fence_of_push(me);
        fence_of_push(SHARED);
        wake_check()
    fi;
    goto running;

end_hogging:
hogging:
    atomic { alarm[me] != NEVER -> once = (alarm[me] == ONCE); alarm[me] = (once -> NEVER : PERIODIC) }

tick: /* preempt_pick_successor */
#ifndef NO_GO_ON
    go_on(me);
#endif
once_more:
#if SLEEPS > 0
    if
    :: atomic { true -> once = false } /* it has interrupted a handler of the program's */
        goto rested
    :: true
    fi;
    if
    :: atomic { once && timers[me] > 0 -> once = false; timers[me]--; late[me]++ }
        fence_of_push(me);
        wake_check()
    :: atomic { !once || timers[me] == 0 -> once = false }
        fire(me)
    fi;
#else
    once = false;
#endif
    sees = for_me;
    if
    :: atomic { sees -> sees = false }
        atomic { /* pick_fairly; it may fail, since thieves are at it */
            if
            :: preempts == 0 -> goto ticking
            :: preempts > 0 && me == 0 && inbox > 0 -> inbox--; sees = true
            :: preempts > 0 && late[me] > 0 -> late[me]--
            :: preempts > 0 && late[me] == 0 && seen[me] > 0 -> seen[me]--
            :: preempts > 0 && seen[SHARED] > 0 -> seen[SHARED]--
            :: preempts > 0 && me != 0 && seen[0] > 0 -> seen[0]--
            :: preempts > 0 && me != 1 && seen[1] > 0 -> seen[1]--
#if WORKERS > 2
            :: preempts > 0 && me != 2 && seen[2] > 0 -> seen[2]--
#endif
            :: preempts > 0 && (me != 0 || inbox == 0) -> goto to_rest
            fi;
            preempts--;
            hog = false;
            rest = bound;
            bound = sees;
            sees = false;
            if /* mode_put_back */
            :: rest -> inbox++
            :: !rest -> late[me]++
            :: !rest -> late[SHARED]++
            fi
        }
        goto give_way
    :: !sees
    fi;
to_rest: /* tick_rest. In preempt_pending() another tick may come at any time, which is pending then. */
    atomic {
        alarm[me] = NEVER;
#ifndef NO_DEADLINE
        if
        :: timers[me] > 0 -> alarm[me] = ONCE
        :: else
        fi
#endif
    }
#ifdef NESTED
    if
    :: atomic { state[me] != REST && !pending -> pending = true } /* one that was sent before, for instance */
        go_on(me)
    :: true
    fi;
#endif
#ifndef STILL_COUNTS
    if
    :: state[me] == REST -> goto rested
    :: state[me] != REST
    fi;
#endif
#ifdef LOOK_FIRST
    sees = for_me;
#endif
#ifdef STATE_FIRST
    state[me] = REST;
    resting++;
#else
    resting++;
    state[me] = REST;
#endif
#ifdef ALARM_LAST
    alarm[me] = NEVER;
#endif
#ifdef NESTED
    if
    :: atomic { !pending && alarm[me] == PERIODIC -> pending = true }
        go_on(me)
    :: true
    fi;
#endif
    fence_of_rest();
#ifdef NO_SECOND_LOOK
    sees = false;
#elif !defined(LOOK_FIRST)
    sees = for_me;
#endif
    if
    :: atomic { sees -> sees = false }
        go_on(me)
    :: !sees
    fi;
rested:
    if
    :: atomic { pending -> pending = false }
        goto once_more
    :: atomic { !pending && hog -> skip } goto hogging
    :: atomic { !pending && !hog -> skip } goto running
    fi;

ticking:
end_ticking: /* no more are counted: the next ticks would let the others run */
    false
} /* unreached: fine */

active [PUSHERS] proctype pusher() {
    byte i, n;
    do
    :: atomic { n == PUSHES -> n = 0; break }
    :: atomic { n < PUSHES -> n++; late[SHARED]++ }
        fence_of_push(SHARED);
        wake_check()
    od
}

#if INBOX > 0
/* unit_wake_elsewhere, idle_wake_this: it has a fence. */
active proctype sender() {
    byte i, n;
    do
    :: atomic { n == INBOX -> n = 0; break }
    :: atomic { n < INBOX -> n++; inbox++ }
        if
        :: atomic { word[0] == PARKED -> word[0] = WOKEN }
            add(S - 1)
        :: word[0] != PARKED ->
#ifndef THIS_UNTOLD
            if
            :: resting != 0 -> wake_resting()
            :: resting == 0
            fi
#endif
        fi
    od
}
#endif

#if TELLS > 0
/* idle_wake_this of another worker, scheduler_wake_for */
active proctype teller() {
    byte i, n;
    do
    :: atomic { n == TELLS -> n = 0; break }
    :: atomic { n < TELLS -> n++ }
        if
        :: resting != 0 -> wake_resting()
        :: resting == 0
        fi
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
    od
} /* unreached: fine */

#define ticks(w) (state[w] == ON && alarm[w] == PERIODIC)
#if WORKERS > 2
#define is_left  (seen[0] + seen[1] + seen[2] + seen[3] > 0)
#define ticked   (ticks(0) || ticks(1) || ticks(2))
#define at_rest  ((state[0] == REST) + (state[1] == REST) + (state[2] == REST))
#else
#define is_left  (seen[0] + seen[1] + seen[2] > 0)
#define ticked   (ticks(0) || ticks(1))
#define at_rest  ((state[0] == REST) + (state[1] == REST))
#endif

active proctype verdict() {
    atomic {
        timeout;
        assert(!is_left || ticked);
        assert(inbox == 0 || ticks(0));
        assert(timers[0] == 0 || ticks(0));
        assert(timers[1] == 0 || ticks(1));
        assert(resting == at_rest)
    }
}
