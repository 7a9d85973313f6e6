// SPDX-License-Identifier: Apache-2.0
/* How preemption ends (src/preempt): preempt_close() in preempt.c against preempt_enter(), preempt_exit() and preempt_for() in
 * give_way.c; provider_close(), spares_stop() and, in donors.c, leave_behind() against provider_ask(), the provider, and kernel
 * threads that were kept or are spares (wait_for_order(), carrier_keep() with abandon(), carrier_serve() in carrier.c,
 * donor_main()). Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * Units are preempted, at any time, and wait in the queue until a worker goes on with them, which it does as long as there are
 * workers. The primary, which may be preempted as well, closes, and the workers stop. Until it has seen that none is away, the
 * worker that relieves others still preempts: what it runs may wait for a lock that one of those has. The last unit may be given a pool, and
 * taken out of it, at any time: who goes to one is not waited for, since there may be no scheduler for it.
 *
 * Each of the others keeps its kernel thread where it is preempted; who goes on with it orders that to carry a worker. When it has
 * ended it leaves a spare. At last the primary waits for the provider's end and the workers', and ends the kernel threads:
 * a spare is joined, one that is still kept leaves the stack of its unit, which is lost, and sleeps for ever.
 *
 * Checked: when the primary has seen `away` at 0 nobody is in the queue who was preempted, and nobody comes to be; and it does
 * see it. The provider ends, and each kernel thread ends or has left its unit's stack when the primary is done; one that is
 * told to end carries nobody, and has no order; one that has carried a unit that is lost does not end.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   LOOK_FIRST     who is to be preempted looks whether it closes before it is counted
 *   WEAK_PRIMARY   the primary's load of `away` is done before its store to `closing` is seen
 *   BLIND          who is counted does not look
 *   BLIND_RELIEF   the worker that relieves others does not look whether it has closed
 *   ONE_LOOK       the primary does not look at `away` again when it has closed
 *   EARLY_BACK     it is no longer counted when it is in the queue
 *   NO_BACK        who finds that it closes stays counted
 *   NOBODY_ELSE    likewise who finds that there is no block for it to take along (lend_choose_next)
 *   PLACE_AGAIN    who goes on asks again whether it counts
 *   POOLED_COUNT   who has a pool counts
 *   MOVED_BETWEEN  it is given a pool, or taken out of it, when it has looked whether it counts and is not in the queue yet
 *   ASK_STORES     who asks the provider does not look whether it is to end
 *   ASK_STAYS      the provider takes an order off when it has had_scheduler it
 *   STOPS_EARLY    the primary does not wait for the workers' end
 *   END_GOES       an order to end is taken back by who has_scheduler, as others are
 *   FREE_LATE      a spare learns that it is one when it has been told to end
 *   FREE_UNASKED   it does not ask
 *   NOT_LEFT       nobody waits until the stack of one that is lost has been left
 */
#ifndef UNITS /* the primary is another */
#define UNITS 2
#endif
#ifndef PREEMPTS /* of each */
#define PREEMPTS 2
#endif

#define me _pid

short away;
byte closing; /* preempt.closing: 1 it closes, 2 it has closed */
bool stopped;
bool queued[UNITS + 1]; /* preempted, and counted */
bool pooled;            /* the last unit */
bool between;           /* it looks where it belongs, whether it counts and where it is put */
bool scheduled;         /* there is a scheduler for the pool */
byte moves = 2;

#define NONE  0 /* carrier->order */
#define CARRY 1
#define END   2 /* requests.asked, too, whose 1 is ASK */

#define ASK 1

byte order[UNITS + 1], asked;
bool carries[UNITS + 1] = true; /* there is a worker on its kernel thread */
bool stands[UNITS + 1] = true;  /* it does so on its unit's stack */
bool spare[UNITS + 1], is_free[UNITS + 1], has_left[UNITS + 1], has_ended[UNITS + 1];
bool provider_is_over, is_over;

#define has_pool (me == UNITS && pooled)

inline preempt_enter() {
    if
    :: relieves = true /* it may be on any worker */
    :: relieves = false
    fi;
#ifdef BLIND_RELIEF
#define closed_to_it (closing && !relieves)
#else
#define closed_to_it (closing == 2 || (closing && !relieves))
#endif
#ifdef LOOK_FIRST
    no = closed_to_it;
#endif
    if
    :: counts -> away++
    :: !counts
    fi;
#if defined(BLIND)
    no = false;
#elif !defined(LOOK_FIRST)
    no = closed_to_it;
#endif
    relieves = false;
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

/* provider_ask */
inline ask() {
#ifdef ASK_STORES
    if
    :: asked != ASK -> asked = ASK
    :: asked == ASK
    fi
#else
    atomic {
        if
        :: asked == NONE -> asked = ASK
        :: else
        fi
    }
#endif
}

active [UNITS + 1] proctype unit() {
    byte n;
    bool counts, no, in_pool, lost, relieves;

running:
    if
    :: atomic { n < PREEMPTS && !stopped -> n++ }
    :: me == 0 && !closing ->
#ifdef WEAK_PRIMARY
        if
        :: away == 0 -> closing = 2;
            goto stop
        :: away != 0
        fi;
#endif
        closing = 1;
        goto running
    :: me == 0 && closing && away == 0 ->
        closing = 2;
#ifndef ONE_LOOK
        if
        :: away != 0 -> closing = 1; goto running
        :: away == 0
        fi;
#endif
        goto stop
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
    preempt_enter();
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
        ask();
        goto stays
    :: atomic {
            true ->
            in_pool = has_pool;
            queued[me] = counts;
            assert(!counts || !stopped);
            carries[me] = false
        }
    fi;
    between = between && me != UNITS;
#ifdef EARLY_BACK
    away = away - counts;
    counts = false;
#endif
end_queued: /* for the last: a pool's scheduler may never come */
    if /* a worker goes on with it */
    :: atomic { !stopped && !in_pool -> queued[me] = false; carries[me] = true; order[me] = CARRY }
    :: atomic { !stopped && in_pool && scheduled -> carries[me] = true; order[me] = CARRY }
    :: order[me] == END
    fi;
    /* wait_for_order: two steps */
    if
    :: order[me] == CARRY -> order[me] = NONE
    :: order[me] == END ->
#ifdef END_GOES
        order[me] = NONE;
#endif
        atomic { stands[me] = false; lost = true } /* abandon */
        goto serve
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
    asked = END; /* provider_close */
    provider_is_over;
    /* workers_stop */
    stopped = true;
#ifndef STOPS_EARLY
    !carries[1] && !carries[UNITS];
#endif
    n = 1;
    do /* spares_stop */
    :: n <= UNITS ->
        if
        :: spare[n] ->
#ifndef FREE_LATE
            is_free[n] = true;
#endif
            atomic { assert(!carries[n] && order[n] == NONE); order[n] = END }
#ifdef FREE_LATE
            is_free[n] = true;
#endif
            has_ended[n]
        :: !spare[n] ->
            atomic { assert(!carries[n] && order[n] == NONE); order[n] = END }
#ifndef NOT_LEFT
            has_left[n]
#endif
        fi;
        n++
    :: n > UNITS -> break
    od;
    assert(!stands[1] && !stands[UNITS]);
    is_over = true;
    goto done;

over: /* of its unit; carry */
    stands[me] = false;
    spare[me] = true;
    carries[me] = false;
serve:
end_serve:
    if
    :: order[me] == END
    fi;
#ifdef FREE_UNASKED
    has_ended[me] = true;
    assert(!lost);
#else
    if
    :: !lost && is_free[me] -> has_ended[me] = true
    :: lost || !is_free[me] -> has_left[me] = true
    fi;
#endif
done:
    skip
}

active proctype provider() {
    byte what;
end_provider:
    do
    :: asked != NONE ->
#ifdef ASK_STAYS
        what = asked;
#else
        atomic { what = asked; asked = NONE }
#endif
        if
        :: what == END -> break
        :: what == ASK -> skip /* some are made, or none */
        fi
#ifdef ASK_STAYS
        ;
        asked = NONE
#endif
    od;
    provider_is_over = true
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
    atomic { timeout; assert(is_over) }
}
