// SPDX-License-Identifier: Apache-2.0
/* How a runtime that nobody told to preempt gets what only preemption needs (is_lazy): provider_ask(), provider_ask_to_arm(),
 * provider_main() and provider_close() in src/preempt/provider.c, lend_choose_next() in lend.c and preempt_for() in give_way.c where nobody
 * is armed, preempt_worker_ready(), preempt_give_reserve() and give_back() in preempt.c, workers_arm() and what adds and stops
 * workers in src/runtime/workers.c. Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * Each `worker` runs a unit, of which the first may take a lock of libc's; a tick comes, and it is to be preempted. Nobody is as long as none is armed:
 * the worker asks, and is interrupted when there is what it lacks. The provider needs libc's lock to make that. The primary stops
 * and adds workers meanwhile, and may end the runtime. A store may stay in the worker's store buffer (`late`) until a fence of
 * its own or an atomic read-modify-write.
 *
 * Checked: whoever was to be preempted is, without a tick besides that by which it is interrupted, unless the provider was
 * told that workers are being added, or the runtime ends; then the provider does. A worker that sees that all are armed
 * has a reserve, or leaves, and finds one; one that has ended has none, and no block is missing. Nobody waits for ever.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   EARLY              one is preempted, with libc's lock, and who makes the blocks for that needs it
 *   ARMED_FIRST        all are armed before they have their reserves
 *   ASKS_ONCE          who lacks something asks before it says so, and not again
 *   ASK_NO_FENCE       ... or may do so before that is seen
 *   ASK_STAYS          the provider takes a question back when it has answered it
 *   ASK_STORES         who asks does not look whether the provider is to end
 *   NOT_INTERRUPTED    who lacked something is not told
 *   SLOTS_WAITED       the provider waits for who adds workers
 *   ADD_UNLOCKED       workers are added meanwhile
 *   ENDED_UNCHECKED    one that has ended is given a reserve
 *   RESERVES_UNLOCKED  ... or ends when it has been looked at
 */
#ifndef CHANGES /* workers that are stopped or added */
#define CHANGES 2
#endif
#ifndef LOCKS /* times that it does */
#define LOCKS 1
#endif
#ifndef TICKS /* of each worker, besides those that are asked for */
#define TICKS 1
#endif
#define WORKERS  2 /* the second may be stopped */
#define FREE     WORKERS
#define PROVIDER (WORKERS + 1)
#define PRIMARY  (WORKERS + 2)
#define NEEDED   (WORKERS + 1) /* spares that are made: some more than reserves */

#define NONE 0 /* requests.asked */
#define ASK  1
#define END  2

#define me _pid

byte lock = FREE, slots = FREE;
bool wanted, armed, closing, open = true;
byte asked;
bool starved[WORKERS], late_wanted[WORKERS], late_starved[WORKERS];
bool reserve[WORKERS], has_tcb[WORKERS] = true;
byte spares, made = WORKERS;
bool leaving[WORKERS];    /* or vacant */
bool has_left[WORKERS];
bool interrupted[WORKERS];
bool unanswered[WORKERS], had[WORKERS]; /* ghosts: was to be preempted, and not since; when the provider looked */
bool provider_is_over;

inline flush(w) {
    d_step {
        wanted = wanted || late_wanted[w];
        late_wanted[w] = false;
        starved[w] = starved[w] || late_starved[w];
        late_starved[w] = false
    }
}

/* provider_ask. before is the caller's. */
inline ask() {
#ifndef ASK_NO_FENCE
    flush(me);
#endif
    before = asked;
    if
#ifdef ASK_STORES
    :: before != ASK -> atomic { flush(me); asked = ASK }
    :: before == ASK
#else
    :: atomic {
            before == NONE ->
            flush(me);
            if
            :: asked == NONE -> asked = ASK
            :: else
            fi
        }
    :: before != NONE
#endif
    fi;
    before = 0
}

/* spares_make, at once; it takes libc's lock. */
inline make(most) {
    atomic {
        lock == FREE ->
        if
        :: spares < (most) -> made = made + (most) - spares; spares = (most)
        :: else
        fi
    }
}

active [WORKERS] proctype worker() {
    byte before, locks, ticks;
    bool is_armed;

running:
end_running:
    if
    :: atomic { leaving[me] && lock != me ->
            /* give_back, under the lock of the reserves */
            assert(has_tcb[me]);
            spares = spares + 1 + reserve[me];
            has_tcb[me] = false;
            reserve[me] = false;
            interrupted[me] = false;
            unanswered[me] = false
        }
        goto vacant
    :: atomic { me == 0 && locks < LOCKS && lock == FREE -> locks++; lock = me }
    :: atomic { lock == me -> lock = FREE }
    :: atomic { ticks < TICKS -> ticks++ } goto tick
    :: atomic { interrupted[me] -> interrupted[me] = false } goto tick
    fi;
    goto running;

tick: /* preempt_for, lend_choose_next */
    if
    :: closing -> goto running
    :: atomic { !closing -> unanswered[me] = true }
    fi;
    is_armed = armed;
    if
    :: atomic { is_armed ->
            is_armed = false;
            assert(reserve[me] || leaving[me]);
            if
            :: !reserve[me] && spares > 0 -> spares--; reserve[me] = true /* new_reserve */
            :: else
            fi;
            assert(reserve[me]);
            unanswered[me] = false /* and it gets its turn again (lend.pml) */
        }
    :: atomic { !is_armed -> late_wanted[me] = true }
        ask();
        late_starved[me] = true;
#ifndef ASKS_ONCE
        ask()
#endif
#ifdef EARLY
        ;
        armed || closing || !unanswered[me] /* there is no block to go on with it */
#endif
    fi;
    goto running;

vacant:
    flush(me);
    has_left[me] = true;
end_vacant:
    atomic { !has_left[me] -> goto running } /* somebody has added it */
} /* unreached: fine */

active proctype provider() {
    byte w, what;
    bool is_ready, is_theirs;

asleep:
#ifdef ASK_STAYS
    what = asked;
#else
    atomic { what = asked; asked = NONE }
#endif
    if
    :: what == END -> goto over
    :: what == NONE ->
end_asleep:
        asked != NONE;
        goto asleep
    :: atomic { what == ASK -> what = NONE }
    fi;
    is_ready = armed;
    if
    :: is_ready -> goto ready
    :: !is_ready
    fi;
    atomic {
        is_theirs = wanted;
        wanted = false;
        had[0] = unanswered[0] && !late_wanted[0];
        had[1] = unanswered[1] && !late_wanted[1]
    }
    if
    :: is_theirs -> is_theirs = false
    :: !is_theirs -> goto looked
    fi;

    /* workers_arm */
    if
    :: atomic { slots == FREE -> slots = PROVIDER }
#ifndef SLOTS_WAITED
    :: atomic { slots != FREE -> goto refused }
#endif
    fi;
    if
    :: open
    :: atomic { !open -> slots = FREE; goto refused } /* unreached: fine */
    fi;
    make(NEEDED); /* preempt_make_spares */
#ifdef ARMED_FIRST
    armed = true;
#endif
    do
    :: atomic { w == WORKERS -> w = 0; break }
    :: w < WORKERS ->
        if
        :: leaving[w]
        :: !leaving[w] ->
            /* preempt_give_reserve */
#ifdef RESERVES_UNLOCKED
            is_theirs = has_tcb[w] && !reserve[w];
            atomic {
                if
                :: is_theirs && spares > 0 -> reserve[w] = true; spares--
                :: else
                fi;
                is_theirs = false
            }
#else
            atomic {
                if
#ifdef ENDED_UNCHECKED
                :: !reserve[w] && spares > 0 -> reserve[w] = true; spares--
#else
                :: has_tcb[w] && !reserve[w] && spares > 0 -> reserve[w] = true; spares--
#endif
                :: else
                fi
            }
#endif
        fi;
        w++
    od;
    armed = true;
    slots = FREE;

ready:
    make(1);
    do /* interrupt_starved */
    :: atomic { w == WORKERS -> w = 0; break }
    :: atomic { w < WORKERS && !starved[w] -> w++ }
    :: atomic { w < WORKERS && starved[w] -> starved[w] = false }
#ifndef NOT_INTERRUPTED
        interrupted[w] = has_tcb[w];
#endif
        w++
    od;
looked:
#ifdef ASK_STAYS
    asked = NONE;
#endif
    is_ready = false;
    goto asleep;
refused: /* the next tick asks again */
    atomic { unanswered[0] = unanswered[0] && !had[0]; unanswered[1] = unanswered[1] && !had[1] }
    goto looked;
over:
    provider_is_over = true
}

active proctype primary() {
    byte n;
    bool is_armed;

    do
    :: atomic { n < CHANGES && !leaving[1] -> n++; leaving[1] = true }
        has_left[1] /* wait_for_stop: without the slots */
    :: atomic { n < CHANGES && leaving[1] -> n++ }
#ifndef ADD_UNLOCKED
        atomic { slots == FREE -> slots = PRIMARY }
#endif
        leaving[1] = false; /* worker_ready: it is none that leaves, and has no block yet */
        /* preempt_worker_ready */
        is_armed = armed;
        make(1 + is_armed);
        atomic { spares--; has_tcb[1] = true } /* nobody else takes of them */
        if
        :: atomic { is_armed && !reserve[1] -> spares--; reserve[1] = true; is_armed = false }
        :: !is_armed || reserve[1] -> is_armed = false
        fi;
        has_left[1] = false;
#ifndef ADD_UNLOCKED
        slots = FREE
#endif
    :: goto stays
    :: break
    od;
    /* workers_close, preempt_close, provider_close */
    atomic { slots == FREE -> slots = PRIMARY }
    open = false;
    closing = true;
    asked = END;
    provider_is_over;
stays:
    skip
} /* unreached: fine */

/* Store buffers are emptied at last. */
active proctype memory() {
end_none:
    do
    :: late_wanted[0] || late_starved[0] -> flush(0)
    :: late_wanted[1] || late_starved[1] -> flush(1)
    od
} /* unreached: fine */

active proctype verdict() {
    atomic {
        timeout;
        assert(lock == FREE && (closing || slots == FREE));
        assert(closing == provider_is_over);
        assert(closing || (!unanswered[0] && !unanswered[1]));
        assert(has_tcb[1] || !reserve[1]);
        assert(spares + reserve[0] + reserve[1] + has_tcb[0] + has_tcb[1] == made)
    }
}
