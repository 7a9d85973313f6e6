// SPDX-License-Identifier: Apache-2.0
/* How preemption ends (src/preempt): preempt_close() in preempt.c against go_away(), come_back() and preempt_for() in
 * handler.c. Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * Units are preempted, at any time, and wait in the queue until a worker goes on with them, which it does as long as there are
 * workers. The primary, which may be preempted as well, closes, and the workers stop. The last unit may be given a pool, and
 * taken out of it, at any time: who goes to one is not waited for, since there may be no scheduler for it.
 *
 * Checked: when the primary has seen `away` at 0 nobody is in the queue who was preempted, and nobody comes to be; and it does
 * see it.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   LOOK_FIRST     who is to be preempted looks whether it closes before it is counted
 *   WEAK_PRIMARY   the primary's load of `away` is done before its store to `closing` is seen
 *   BLIND          who is counted does not look
 *   EARLY_BACK     it is no longer counted when it is in the queue
 *   NO_BACK        who finds that it closes stays counted
 *   NOBODY_ELSE    likewise who finds that there is no block for it to take along (lend_whom)
 *   PLACE_AGAIN    who goes on asks again whether it counts
 *   POOLED_COUNT   who has a pool counts
 *   MOVED_BETWEEN  it is given a pool, or taken out of it, when it has looked whether it counts and is not in the queue yet
 */
#ifndef UNITS /* the primary is another */
#define UNITS 2
#endif
#ifndef PREEMPTS /* of each */
#define PREEMPTS 2
#endif

#define me _pid

short away;
bool closing, stopped;
bool queued[UNITS + 1]; /* preempted, and counted */
bool pooled;            /* the last unit */
bool between;           /* it looks where it belongs, whether it counts and where it is put */
bool scheduled;         /* there is a scheduler for the pool */
byte moves = 2;

#define has_pool (me == UNITS && pooled)

inline go_away() {
#ifdef LOOK_FIRST
    no = closing;
#endif
    if
    :: counts -> away++
    :: !counts
    fi;
#if defined(BLIND)
    no = false;
#elif !defined(LOOK_FIRST)
    no = closing;
#endif
    if
    :: no ->
#ifndef NO_BACK
        if
        :: counts -> away--
        :: !counts
        fi
#endif
    :: !no
    fi
}

active [UNITS + 1] proctype unit() {
    byte n;
    bool counts, no, in_pool;
running:
    if
    :: atomic { n < PREEMPTS && !stopped -> n++ }
    :: me == 0 && !closing ->
#ifdef WEAK_PRIMARY
        if
        :: away == 0 -> closing = true;
            goto stop
        :: away != 0
        fi;
#endif
        closing = true;
        goto running
    :: me == 0 && closing && away == 0 -> goto stop
    :: me != 0 && (n == PREEMPTS || stopped) -> goto over
    fi;

    /* preempt_for */
    atomic {
#ifdef POOLED_COUNT
        counts = true;
#else
        counts = !has_pool;
#endif
        between = between || me == UNITS
    }
    go_away();
    if
    :: atomic { no -> no = false } goto stays
    :: !no
    fi;
    if
    :: true -> /* no block for it to take along */
#ifndef NOBODY_ELSE
        if
        :: counts -> away--
        :: !counts
        fi;
#endif
        goto stays
    :: atomic { true -> in_pool = has_pool; queued[me] = counts; assert(!counts || !stopped) }
    fi;
    between = between && me != UNITS;
#ifdef EARLY_BACK
    away = away - counts;
    counts = false;
#endif
end_queued: /* for the last: a pool's scheduler may never come */
    if
    :: atomic { !stopped && !in_pool -> queued[me] = false } /* a worker goes on with it */
    :: atomic { !stopped && in_pool && scheduled -> queued[me] = false }
    fi;
    in_pool = false;
#ifdef PLACE_AGAIN
    counts = !has_pool;
#endif
    if
    :: counts -> away--
    :: !counts
    fi;
stays:
    atomic { counts = false; between = between && me != UNITS }
    goto running;

stop:
    assert(!queued[0] && !queued[1] && !queued[UNITS]);
    stopped = true;
over:
    skip
}

/* thrum_migrate_to_pool, thrum_migrate */
active proctype mover() {
    if
    :: scheduled = true
    :: true
    fi;
    do
#ifdef MOVED_BETWEEN
    :: atomic { moves > 0 -> moves--; pooled = !pooled }
#else
    :: atomic { moves > 0 && !between -> moves--; pooled = !pooled }
#endif
    :: moves = 0; break
    od
}

active proctype verdict() {
    atomic { timeout; assert(stopped) }
}
