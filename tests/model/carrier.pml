// SPDX-License-Identifier: Apache-2.0
/* Workers that go from one kernel thread to another (src/sched/carrier.h): src/preempt/carrier.c, with preempt_for() and
 * change() of klt.c, lend_choose_next() of lend.c, and go_to_kept() of src/sched/loop.c. Run by run-spin.sh;
 * README.md says what is covered and what is left out.
 *
 * A process is a carrier. What runs on it, a unit or a worker's loop, is a value: one that is not kept can go on anywhere.
 * Unit 0 is the primary; it runs on worker 0 and carrier 0 only. A unit gives way, ends, or is preempted at a tick for any
 * that is queued, or for the loop. A tick comes to a carrier whose timer is armed, at any time. The asker is whoever ends a
 * worker's rest from elsewhere.
 *
 * Checked: a worker is one carrier's, and nobody else touches it, the next from when its order is written; an order is given
 * to who has none; nobody goes on with a unit that still stands, or is kept, elsewhere; each carrier is in one place. A
 * worker that ticks and runs a unit has its carrier's timer armed. The primary finds a reserve when it waits; when it was
 * preempted, or waited while there was a spare, the unit on its worker can be preempted for it. In the end all are done,
 * and no carrier is missing.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   LAY_DOWN_LATE    a carrier is put where it is found when its worker has been sent on
 *   NO_SENT          who stops its timer does not look whether it is sent a worker
 *   SENT_FIRST       it looks before it stops it
 *   SENT_LATE        who sends sets the other's timer before it says so
 *   NO_DROPPED       that a tick came, and stopped the timer, while there was no worker is forgotten
 *   DROPPED_FIRST    who takes a worker on looks for that before ticks are its own
 *   KEPT_LATE        who is preempted is put back before it says that it is kept
 *   NO_RESERVE       one is preempted for the primary though there is no reserve
 *   NO_SPARE         the primary is preempted though there is no spare to be the next reserve
 *   NO_KEEP          the last spare is for anybody
 *   TAKEN_TWICE      who goes on with the reserve, without a spare for its place, keeps it as the reserve, too
 *   ORDER_STAYS      an order is not taken back by who has_scheduler
 *   BLIND_WAIT       who wakes up takes it for an order
 *   ALWAYS_BACK      more than is promised: who waits when there is no spare can be changed to as well
 */
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef UNITS
#define UNITS 3
#endif
#ifndef SPARES
#define SPARES 2
#endif
#ifndef TURNS /* times that somebody is preempted, gives way or rests */
#define TURNS 3
#endif
#ifndef ASKS /* whether somebody ends rests */
#define ASKS 1
#endif

/* The primary's; its worker's reserve; another worker's, and its reserve; spares. */
#define CARRIERS (2 * WORKERS + SPARES)
#define NONE     CARRIERS
#define LOOP     UNITS
#define NOBODY   (UNITS + 1)

#ifdef NO_KEEP
#define KEEP 0
#else
#define KEEP 1
#endif

#define OFF  0 /* tick.state */
#define ON   1
#define REST 2

#define me _pid

bool queued[UNITS], kept[UNITS], done[UNITS]; /* kept: sp is UNIT_KEPT */
byte tcb[UNITS];                              /* the carrier that it keeps */
byte on[UNITS];                               /* whose stack it stands on */
bool order[CARRIERS], is_sent[CARRIERS], armed[CARRIERS];
byte to_carry[CARRIERS]; /* carrier->worker */
byte owner[WORKERS];     /* the carrier that may touch it */
byte current[WORKERS], reserve[WORKERS], state[WORKERS];
byte to_go[WORKERS]; /* worker->kept */
byte timer[WORKERS]; /* tick.alarm */
bool is_short[WORKERS];
bool spare_is[CARRIERS];
byte count = SPARES;
bool safe;           /* the primary is elsewhere, and must be able to come back */
byte asked = WORKERS, asks = NONE; /* the asker's: whose timer, and which that is */
bool is_begun;
byte turns = TURNS;

/* spares_give */
inline give(c) {
    d_step { assert(!spare_is[c]); spare_is[c] = true; count++ }
}

/* spares_take: any, if there are more than `keep`; else x is NONE. */
inline take(x, keep) {
    d_step {
        x = NONE;
        if
        :: count > (keep) ->
            x = 0;
            do
            :: spare_is[x] -> break
            :: else -> x++
            od;
            spare_is[x] = false;
            count--
        :: else
        fi
    }
}

/* --- queues ------------------------------------------------------------------------------------------- */

#if UNITS > 3
#define is_queued ((w == 0 && queued[0]) || queued[1] || queued[2] || queued[3])
#define all_done  (done[1] && done[2] && done[3])
#elif UNITS > 2
#define is_queued ((w == 0 && queued[0]) || queued[1] || queued[2])
#define all_done  (done[1] && done[2])
#else
#define is_queued ((w == 0 && queued[0]) || queued[1])
#define all_done  done[1]
#endif

inline pick(x) {
    if
    :: w == 0 && queued[0] -> x = 0
    :: queued[1] -> x = 1
#if UNITS > 2
    :: queued[2] -> x = 2
#endif
#if UNITS > 3
    :: queued[3] -> x = 3
#endif
    fi;
    queued[x] = false
}

/* --- the parts of carrier.c --------------------------------------------------------------------------- */

/* on_signal() where there is no worker */
inline drop() {
    dropped = true;
    armed[me] = false
}

/* One step with the order: what others may do meanwhile they may do before. */
inline take_on() {
    w = to_carry[me];
    to_carry[me] = WORKERS;
    assert(w < WORKERS && owner[w] == me);
    is_sent[me] = false;
#ifdef DROPPED_FIRST
    late = dropped;
    dropped = false;
#endif
    if
    :: armed[me] -> drop()
    :: true
    fi;
    /* from here on ticks are the worker's */
#ifndef DROPPED_FIRST
    late = dropped;
    dropped = false;
#endif
#ifdef NO_DROPPED
    late = false;
#endif
    if
    :: (late || is_stopped) && state[w] == ON -> armed[timer[w]] = true
    :: else
    fi;
    late = false;
    is_stopped = false
}

/* Ticks that come in here are noted, which is all. */
inline send_on(to) {
    atomic {
        assert(owner[w] == me);
        if
        :: state[w] == REST -> state[w] = ON; armed[timer[w]] = true
        :: else
        fi;
#ifndef SENT_LATE
        is_sent[to] = true;
#endif
        timer[w] = to
    }
    atomic {
        if
        :: state[w] == ON -> armed[to] = true
        :: else
        fi
#ifndef SENT_FIRST
        ;
        armed[me] = false
#endif
    }
#ifdef SENT_LATE
    is_sent[to] = true;
#endif
#ifndef NO_SENT
    is_stopped = is_sent[me];
#endif
#ifdef SENT_FIRST
    armed[me] = false;
#endif
    atomic { /* no worker from here on */
        assert(owner[w] == me && !order[to] && !spare_is[to]);
        to_carry[to] = w;
        owner[w] = to;
        order[to] = true;
#ifndef LAY_DOWN_LATE
        w = 0;
#endif
        to = NONE
    }
}

inline leave_worker() {
    atomic {
        assert(owner[w] == me);
        if
        :: reserve[w] == NONE -> reserve[w] = me
        :: reserve[w] != NONE -> give(me)
        fi
    }
}

/* --- checks ------------------------------------------------------------------------------------------- */

/* The worker runs a unit, or its loop, here. */
inline check() {
    d_step {
        assert(owner[w] == me && timer[w] == me && !spare_is[me] && reserve[w] != me);
        assert(reserve[w] == NONE || !spare_is[reserve[w]]);
#if WORKERS > 1
        assert(owner[0] != owner[1] && (reserve[0] == NONE || reserve[0] != reserve[1]));
        assert(reserve[1 - w] != me);
#endif
        if
        :: self != LOOP ->
            assert(on[self] == me);
            assert(state[w] != ON || armed[me] || (asked == w && (asks == NONE || asks == me)));
            assert(self == 0 || w != 0 || !safe || reserve[0] != NONE || count > 0);
            assert(self != 0 || (w == 0 && me == 0))
        :: else
        fi
    }
}

active [CARRIERS] proctype carrier() {
    byte w, self = NOBODY, next = NOBODY, there = NONE, spare = NONE;
    bool dropped, is_stopped, late;

    if
    :: d_step { me == 0 ->
            there = 0;
            do
            :: there == CARRIERS -> break
            :: else -> to_carry[there] = WORKERS; spare_is[there] = there >= 2 * WORKERS; there++
            od;
            there = 0;
            do
            :: there == UNITS -> break
            :: else -> on[there] = NONE; tcb[there] = NONE; queued[there] = there != 0; there++
            od;
            there = NONE;
            tcb[0] = 0;
            on[0] = 0;
            armed[0] = true;
            state[0] = ON;
            reserve[0] = 1;
            to_go[0] = NOBODY;
#if WORKERS > 1
            owner[1] = 2;
            timer[1] = 2;
            reserve[1] = 3;
            to_go[1] = NOBODY;
#endif
            self = 0;
            is_begun = true }
        goto running
#if WORKERS > 1
    :: atomic { is_begun && me == 2 -> w = 1; self = LOOP } goto running
    :: is_begun && me != 0 && me != 2
#else
    :: is_begun && me != 0
#endif
    fi;
    goto wait;

running:
    atomic {
        check();
        if
        :: self == LOOP -> goto loop
        :: self == 0 -> goto primary
        :: else -> goto unit
        fi
    }

unit:
    if
    :: atomic { true -> done[self] = true; on[self] = NONE; self = LOOP; goto running }
    :: atomic { turns > 0 && is_queued -> turns--; pick(next); queued[self] = true } goto switch /* it gives way */
    :: atomic { turns > 0 && armed[me] && is_queued -> turns--; pick(next); goto tick }
    :: atomic { turns > 0 && armed[me] -> turns--; next = LOOP; goto tick }
    :: atomic { turns > 0 && armed[me] && !is_queued && state[w] == ON -> turns--; goto to_rest }
    fi;

primary:
    if
    :: atomic { all_done -> done[0] = true; goto end_stays }
    :: atomic { !all_done -> next = LOOP; goto waits }
    :: atomic { is_queued -> pick(next); goto waits }
    :: atomic { turns > 0 && armed[me] && is_queued -> turns--; pick(next); goto tick }
    :: atomic { turns > 0 && armed[me] -> turns--; next = LOOP; goto tick }
    :: atomic { turns > 0 && armed[me] && !is_queued && state[w] == ON -> turns--; goto to_rest }
    fi;

to_rest: /* tick_rest, with nobody to be seen when it looks again */
    atomic { armed[me] = false; state[w] = REST; goto running }

waits: /* switch_slow: what it goes to for good is the loop's to see to, if that is kept */
    atomic {
        assert(reserve[w] != NONE);
        queued[0] = true;
        if
        :: next != LOOP && kept[next] -> to_go[w] = next; next = LOOP
        :: else
        fi;
#ifdef ALWAYS_BACK
        safe = true
#else
        safe = (count > 0)
#endif
    }
    goto keep;

end_stays:
    false;

switch: /* unit_ready, arch_switch */
    atomic {
        on[self] = NONE;
        self = LOOP;
        if
        :: kept[next] -> to_go[w] = next; next = NOBODY; goto loop
        :: else
        fi
    }
    atomic { on[next] == NONE -> on[next] = me; self = next; next = NOBODY; goto running }

loop:
end_loop:
    atomic {
        if
        :: to_go[w] != NOBODY -> next = to_go[w]; to_go[w] = NOBODY
        :: to_go[w] == NOBODY && is_queued -> pick(next)
        :: to_go[w] == NOBODY && state[w] == REST -> state[w] = OFF; goto loop /* tick_end */
        :: to_go[w] == NOBODY && state[w] == ON && armed[me] -> armed[me] = false; state[w] = OFF; goto loop /* tick_off */
        fi;
        if /* tcb_instead */
        :: is_short[w] ->
            if
            :: reserve[w] == NONE -> take(reserve[w], (w == 0 -> 0 : KEEP))
            :: else
            fi;
            is_short[w] = reserve[w] == NONE;
            if
            :: is_short[w] && !kept[next] -> queued[next] = true; next = NOBODY; goto loop
            :: else
            fi
        :: else
        fi;
        if /* tick_begin */
        :: state[w] == OFF -> state[w] = ON; armed[timer[w]] = true
        :: else
        fi;
        if
        :: kept[next] -> current[w] = next; there = tcb[next]; next = NOBODY; self = NOBODY; goto carried
        :: else
        fi
    }
    atomic { on[next] == NONE -> on[next] = me; self = next; next = NOBODY; goto running }

tick: /* preempt_for: lend_choose_next */
    atomic {
        if
        :: reserve[w] == NONE -> take(reserve[w], (w == 0 -> 0 : KEEP))
        :: else
        fi;
        if
#ifdef NO_RESERVE
        :: next != LOOP && kept[next]
#else
        :: next != LOOP && kept[next] && (next != 0 || reserve[w] != NONE)
#endif
#ifdef NO_SPARE
        :: self == 0 && !(next != LOOP && kept[next]) && reserve[w] != NONE
#endif
        :: else ->
            if
            :: reserve[w] != NONE -> take(spare, (self == 0 -> 0 : KEEP))
            :: else
            fi;
            if
            :: spare != NONE
            :: spare == NONE && next == LOOP ->
                is_short[w] = true;
                if
                :: reserve[w] == NONE -> next = NOBODY; goto running
                :: else
                fi
            :: spare == NONE && next != LOOP -> queued[next] = true; next = NOBODY; goto running
            fi
        fi;
        /* change */
        tcb[self] = me;
        safe = safe || self == 0;
#ifndef KEPT_LATE
        kept[self] = true;
#endif
        queued[self] = true
    }
    goto keep;

keep: /* carrier_keep */
    atomic {
        assert(owner[w] == me);
        kept[self] = true;
        if
        :: next != LOOP && kept[next] -> there = tcb[next]
        :: else ->
            assert(reserve[w] != NONE);
            there = reserve[w];
#ifdef TAKEN_TWICE
            if
            :: spare != NONE -> reserve[w] = spare
            :: else
            fi
#else
            reserve[w] = spare
#endif
        fi;
        spare = NONE;
        current[w] = next;
        next = NOBODY
    }
    send_on(there);
    goto wait;

carried: /* carry, after arch_switch */
#ifdef LAY_DOWN_LATE
    send_on(there);
    leave_worker();
#else
    leave_worker();
    send_on(there);
#endif

wait: /* wait_for_order, of carrier_keep, with the unit that keeps it, or of carrier_serve */
end_wait:
    if
    :: order[me]
    :: atomic { armed[me] -> drop(); goto wait }
#ifdef BLIND_WAIT
    :: !order[me] /* a wake-up without a cause */
#endif
    fi;
    atomic {
#ifndef ORDER_STAYS
        order[me] = false;
#endif
        take_on();
        next = current[w];
        current[w] = NOBODY;
        if
        :: self != NOBODY -> /* carrier_keep */
            assert(on[self] == me && kept[self] && tcb[self] == me && next == self);
            next = NOBODY;
            kept[self] = false;
            if
            :: self == 0 -> safe = false
            :: self != 0 -> tcb[self] = NONE
            fi;
            goto running
        :: self == NOBODY && next == LOOP -> self = LOOP; next = NOBODY; goto running
        :: self == NOBODY && next != LOOP -> assert(!kept[next])
        fi
    }
    atomic { on[next] == NONE -> on[next] = me; self = next; next = NOBODY; goto running }
} /* unreached: fine */

#if ASKS > 0
/* tick_resume, by whoever has something for a worker at rest */
active proctype asker() {
end_asks:
    do
    :: atomic { state[0] == REST -> state[0] = ON; asked = 0 }
        atomic { asks = timer[0] }
        atomic { armed[asks] = true; asked = WORKERS; asks = NONE }
#if WORKERS > 1
    :: atomic { state[1] == REST -> state[1] = ON; asked = 1 }
        atomic { asks = timer[1] }
        atomic { armed[asks] = true; asked = WORKERS; asks = NONE }
#endif
    od
} /* unreached: fine */
#endif

active proctype verdict() {
    atomic {
        timeout;
        assert(done[0] && all_done);
#if WORKERS > 1
        assert(count + (reserve[0] != NONE) + (reserve[1] != NONE) == CARRIERS - WORKERS)
#else
        assert(count + (reserve[0] != NONE) == CARRIERS - WORKERS)
#endif
    }
}
