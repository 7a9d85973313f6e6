// SPDX-License-Identifier: Apache-2.0
/* Who wakes up for timers (src/sched/time/timekeeper.h): workers that start timers, search, park, are told of earlier
 * deadlines, are woken for work, and leave the search to run something, perhaps for ever. Run by run-spin.sh; README.md
 * says what is covered and what is left out.
 *
 * One step of the model is one atomic operation of the code; a fence between a write and a later read is their order
 * here. A store of timers is a set of the deadlines 1 and 2, and its lock one step (timer.pml looks inside). The clock
 * may go on at any time. A worker that runs something never looks at timers here, not even at its own: those who search
 * have to. In the end, when both deadlines have come, either all timers have been fired, or each worker runs something
 * for ever: else a deadline is slept through, and the monitor never comes to its end.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_TELL              who starts an earlier timer tells nobody
 *   BLIND_TELL           he wakes the keeper without changing its word
 *   TELL_KEEPER_ONLY     without a keeper he tells nobody
 *   WEAK_STARTER         he looks whom to tell before the timer is there to be seen
 *   NO_SECOND_LOOK       the keeper does not look again when it has said until when it sleeps
 *   WEAK_SLEEPER         the sleeper looks for timers and the keeper before its word says that it is parked
 *   NO_HANDOVER          who has something to run tells nobody that there is no keeper
 *   WEAK_LEAVER          it looks whether there are timers before it is the keeper no more
 *   KEEPERS_HAND_OVER    only a keeper does: one that was told to look, but woken for work before, goes
 *   STALE_UNTIL          who is no longer the keeper leaves its deadline behind
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef STARTS
#define STARTS 2
#endif
#ifndef WAKES
#define WAKES 1
#endif

#define NEVER 9

#define AWAKE  0 /* enum parking_state */
#define PARKED 1
#define WOKEN  2
#define LOOK   3

byte word[WORKERS];
bool gift[WORKERS];  /* it was woken for this */
byte store[WORKERS]; /* the deadlines in it: 1, 2, or both, 3 */
byte keeper;         /* id + 1 */
byte until = NEVER;
byte now;
byte starts = STARTS, wakes = WAKES;
byte busy; /* how many run something for ever */
#ifdef BLIND_TELL
bool poked[WORKERS];
#endif

#define next(w) (store[w] == 0 -> NEVER : (store[w] & 1 -> 1 : 2))

/* m: the earliest deadline of all. Not at one go, but where there are too many workers for that. */
inline timers_next() {
#if WORKERS > 2
    atomic {
        m = next(0);
        if
        :: next(1) < m -> m = next(1)
        :: else
        fi;
        if
        :: next(2) < m -> m = next(2)
        :: else
        fi
    }
#else
    m = next(0);
    if
    :: atomic { next(1) < m -> m = next(1) }
    :: next(1) >= m
    fi
#endif
}

/* idle_look_again. The wake-up comes with the cas: who is about to sleep compares. */
#ifdef BLIND_TELL
#define look_again(w) poked[w] = true
#else
#define look_again(w) word[w] = LOOK
#endif

/* The first that is parked, by number. */
inline tell_a_parked_worker() {
    if
    :: atomic { word[0] == PARKED -> look_again(0) }
    :: word[0] == LOOK
    :: word[0] == AWAKE || word[0] == WOKEN ->
        if
        :: atomic { word[1] == PARKED -> look_again(1) }
        :: word[1] == LOOK
#if WORKERS > 2
        :: word[1] == AWAKE || word[1] == WOKEN ->
            if
            :: atomic { word[2] == PARKED -> look_again(2) }
            :: word[2] != PARKED
            fi
#else
        :: word[1] == AWAKE || word[1] == WOKEN
#endif
        fi
    fi
}

active [WORKERS] proctype worker() {
    byte d, m, k;
    bool keeps, go_on;
#define me _pid

    /* Runs something: may start a timer with deadline d, wait, or go on for ever. */
go:
    if
    :: atomic {
            starts > 0 ->
            starts--;
            if
            :: d = 1
            :: d = 2
            fi
        }
    :: goto search
    :: atomic { true -> busy++; goto end_busy }
    fi;
#ifdef WEAK_STARTER
    if
    :: atomic { d < until -> k = keeper }
    :: atomic { d >= until -> k = NEVER }
    fi;
    atomic { store[me] = store[me] | d; d = 0 }
#else
    if /* timer_start */
    :: atomic { d >= next(me) -> store[me] = store[me] | d; d = 0; goto go }
    :: atomic { d < next(me) -> store[me] = store[me] | d }
    fi;
#ifdef NO_TELL
    d = 0;
    goto go;
#endif
    if /* timekeeper_tell */
    :: atomic { d < until -> d = 0 }
    :: atomic { d >= until -> d = 0; goto go }
    fi;
    k = keeper;
#endif
    if
    :: atomic { k > 0 && k <= WORKERS && word[k - 1] == PARKED -> look_again(k - 1) }
    :: k > 0 && (k > WORKERS || word[k - 1] != PARKED)
#ifdef TELL_KEEPER_ONLY
    :: k == 0
#else
    :: k == 0 -> tell_a_parked_worker()
#endif
    fi;
    atomic { k = 0; goto go }

search:
    atomic {
        if /* timekeeper_wakes */
        :: keeps -> until = 0
        :: else
        fi
    }
    atomic { /* timers_look_everywhere: at one go, since what comes meanwhile is seen later */
        k = 0;
        do
        :: k < WORKERS && next(k) <= now -> store[k] = (now == 1 -> store[k] & 2 : 0); k++; gift[me] = true
        :: k < WORKERS && next(k) > now -> k++
        :: k == WORKERS -> k = 0; break
        od;
        if
        :: gift[me] -> gift[me] = false; goto leave
        :: else
        fi
    }

    /* idle_park */
#ifdef WEAK_SLEEPER
    timers_next();
    atomic { go_on = (m == NEVER || keeper != 0); m = 0 }
    word[me] = PARKED;
    if
    :: atomic { go_on -> go_on = false; m = NEVER; goto sleep }
    :: !go_on
    fi;
#else
    word[me] = PARKED;
#endif
again:
    if
    :: atomic { word[me] == WOKEN -> word[me] = AWAKE; go_on = false; goto search }
    :: atomic { word[me] != WOKEN && go_on -> word[me] = AWAKE; go_on = false; goto search }
    :: atomic { word[me] == LOOK && !go_on -> word[me] = PARKED }
    :: word[me] == PARKED && !go_on
    fi;
deadline: /* timekeeper_until */
    timers_next();
    if
    :: atomic { !keeps && m == NEVER -> goto sleep }
    :: atomic { !keeps && m != NEVER && keeper == 0 -> keeper = me + 1; keeps = true }
    :: atomic { !keeps && m != NEVER && keeper != 0 -> m = NEVER; goto sleep }
    :: keeps
    fi;
    if
    :: until == m
#ifdef NO_SECOND_LOOK
    :: atomic { until != m -> until = m }
#else
    :: atomic { until != m -> until = m; goto deadline }
#endif
    fi;
sleep: /* the kernel compares the word */
#ifdef BLIND_TELL
    poked[me] = false;
#endif
end_asleep:
    if
    :: atomic { m <= now -> go_on = true; m = 0; goto again }
    :: atomic { word[me] != PARKED -> m = 0; goto again }
#ifdef BLIND_TELL
    :: atomic { poked[me] -> m = 0; goto again }
#endif
    fi;

leave: /* timekeeper_leave */
#ifdef WEAK_LEAVER
    timers_next();
#endif
    if
#ifdef STALE_UNTIL
    :: atomic { keeps -> keeps = false }
#else
    :: atomic { keeps -> keeps = false; until = NEVER }
#endif
        keeper = 0
#ifdef KEEPERS_HAND_OVER
    :: atomic { !keeps -> goto go }
#else
    :: atomic { !keeps && keeper != 0 -> m = 0; goto go }
    :: !keeps && keeper == 0
#endif
    fi;
#ifndef WEAK_LEAVER
    timers_next();
#endif
#ifndef NO_HANDOVER
    if
    :: atomic { m != NEVER -> m = 0 } tell_a_parked_worker()
    :: m == NEVER
    fi;
#endif
    atomic { m = 0; goto go }

end_busy:
    false
#undef me
} /* unreached: fine */

/* Somebody has work for this one: a bound unit, a run queue that is not empty any more. It may be gone by then. */
inline wake(w) {
    atomic {
        wakes > 0 && (word[w] == PARKED || word[w] == LOOK) ->
        word[w] = WOKEN;
        wakes--;
        if
        :: gift[w] = true
        :: skip
        fi
    }
}

active proctype waker() {
end_none:
    do
    :: wake(0)
    :: wake(1)
#if WORKERS > 2
    :: wake(2)
#endif
    od
} /* unreached: fine */

active proctype clock() {
    now = 1;
    now = 2
}

#if WORKERS > 2
#define none_left (store[0] == 0 && store[1] == 0 && store[2] == 0)
#else
#define none_left (store[0] == 0 && store[1] == 0)
#endif

active proctype monitor() {
    now == 2 && (none_left || busy == WORKERS)
}
