// SPDX-License-Identifier: Apache-2.0
/* The gate between a logical thread and those who reach it by its handle or tid (src/kthread/gate.h), and the
 * throwing away of stray signals before a job (signals_drop_pending in begin_job).
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * One kernel thread runs JOBS jobs one after another. Visitors come at any time, by handle or by tid; a stray
 * sender sends without a visit. One step of the model is one atomic operation of the code.
 *
 * Each -D<VARIANT> leaves out one thing that the gate needs. The search must then fail:
 *   OPEN_WITHOUT_WAKE   gate_open does not wake those who wait for it
 *   CLOSE_WITHOUT_WAIT  gate_close does not wait until nobody is inside
 *   LEAVE_WITHOUT_WAKE  the last visitor does not wake the closing thread
 *   NO_CALLERS_BIT      a visitor sleeps without leaving the bit that says so
 *   NO_STARTING         the creator opens the gate, before the thread has thrown away what is stray
 *   OPEN_BEFORE_DROP    the thread opens the gate first and throws away then
 *   BLIND_ENTER         a visitor adds itself without comparing what it saw
 *   WAKE_ONE            gate_open wakes one visitor instead of all
 */
#ifndef VISITORS
#define VISITORS 2
#endif
#ifndef JOBS
#define JOBS 2
#endif
#ifndef VISITS /* of each visitor */
#define VISITS 2
#endif
#ifndef MISHAPS /* wake-ups without a cause; bounded, or no lost wake-up would ever show */
#define MISHAPS 1
#endif

#define CALLERS  8 /* below it the count of those inside */
#define STARTING 16
#define CLOSED   32

byte gate = CLOSED;
bool closer_asleep, asleep[VISITORS]; /* on the gate word */
byte mishaps = MISHAPS;

bool posted;       /* the job, from the creator to the thread */
bool over = true;  /* the thread's last job is, and so says `life` */
bool handle;       /* it is valid: from just before the hand-over until the join */
byte users;        /* visitors that use it: a program does not join meanwhile */
byte inside;       /* ghost: visitors that have entered and not left */
bool stray, meant; /* pending signals: sent without a visit, by a visitor */
bool finished;     /* no job comes any more */

#if VISITORS == 1
#define wake_visitors asleep[0] = false
#define no_visitor_asleep !asleep[0]
#else
#define no_visitor_asleep (!asleep[0] && !asleep[1])
#define wake_visitors asleep[0] = false; asleep[1] = false
#endif

/* futex_wake(gate, 1): the kernel chooses */
inline wake_one() {
    atomic {
        if
        :: closer_asleep -> closer_asleep = false
        :: asleep[0] -> asleep[0] = false
#if VISITORS > 1
        :: asleep[1] -> asleep[1] = false
#endif
        :: !closer_asleep && no_visitor_asleep
        fi
    }
}

inline gate_open() {
    atomic {
        seen = gate;
#ifndef NO_STARTING
        assert(seen == STARTING || seen == (STARTING | CALLERS));
#endif
        gate = 0
    }
#ifndef OPEN_WITHOUT_WAKE
    if
#ifdef WAKE_ONE
    :: seen & CALLERS -> wake_one()
#else
    :: atomic { seen & CALLERS -> wake_visitors }
#endif
    :: !(seen & CALLERS)
    fi
#endif
}

inline gate_close() {
    atomic { gate = gate | CLOSED; seen = gate }
#ifndef CLOSE_WITHOUT_WAIT
    do
    :: seen == CLOSED -> break
    :: seen != CLOSED ->
        closer_asleep = (gate == seen); /* futex_wait: the kernel compares */
        if
        :: !closer_asleep
        :: atomic { closer_asleep && mishaps > 0 -> mishaps--; closer_asleep = false }
        fi;
        seen = gate
    od
#endif
}

active proctype kernel() {
    byte seen;
    bool used;
    do
    :: atomic { posted -> posted = false } /* begin_job */
#ifdef OPEN_BEFORE_DROP
        gate_open();
#endif
        if
        :: !used -> used = true /* a new thread throws nothing away */
        :: used -> atomic { assert(!meant); stray = false } /* signals_drop_pending: what a visitor sent never is */
        fi;
#ifndef OPEN_BEFORE_DROP
        gate_open();
#endif
        do /* the job handles signals as they come, or blocks them */
        :: atomic { meant -> meant = false }
        :: atomic { stray -> stray = false }
        :: break
        od;
        gate_close();
        atomic { /* retire_reason: what was sent is seen, and the thread retires; here it goes on all the same */
            assert(inside == 0);
            stray = false;
            meant = false;
            seen = 0;
            over = true
        }
    :: finished -> break
    od
}

active proctype creator() {
    byte job;
    do
    :: job < JOBS ->
        atomic { /* prepare: the descriptor is the creator's own */
            assert(over);
            over = false;
            job++;
#ifdef NO_STARTING
            gate = 0
#else
            gate = STARTING
#endif
        }
        handle = true; /* *handle is written before the job is posted */
        posted = true;
        atomic { over && users == 0 -> handle = false } /* the join */
    :: job == JOBS -> finished = true; break
    od
}

active [VISITORS] proctype visitor() {
    byte visits, seen;
    bool by_handle;
#define v (_pid - 2)
    do
    :: visits == VISITS -> break
    :: visits < VISITS ->
        if
        :: atomic { handle -> users++; by_handle = true }
        :: true /* by tid, which may be stale */
        fi;

        /* gate_enter */
        atomic { seen = gate; visits++ }
try:
        if
        :: seen & CLOSED -> goto done
        :: !(seen & CLOSED) && (seen & STARTING) ->
#ifdef NO_CALLERS_BIT
            asleep[v] = (gate == STARTING);
#else
            if
            :: atomic { gate == seen -> gate = STARTING | CALLERS }
                asleep[v] = (gate == (STARTING | CALLERS)) /* futex_wait: the kernel compares */
            :: gate != seen
            fi;
#endif
            if
            :: !asleep[v]
            :: atomic { asleep[v] && mishaps > 0 -> mishaps--; asleep[v] = false }
            fi;
            atomic { seen = gate; goto try }
        :: !(seen & (CLOSED | STARTING)) ->
            if
#ifdef BLIND_ENTER
            :: atomic { gate++; inside++ }
#else
            :: atomic { gate == seen -> gate++; inside++ }
            :: atomic { gate != seen -> seen = gate; goto try }
#endif
            fi
        fi;

        meant = true; /* pthread_kill and the like */

        /* gate_leave */
        atomic { inside--; seen = gate; gate-- }
        if
#ifdef LEAVE_WITHOUT_WAKE
        :: true
#else
        :: seen == (CLOSED | 1) -> wake_one()
        :: seen != (CLOSED | 1)
#endif
        fi;
done:
        atomic {
            seen = 0;
            if
            :: by_handle -> users--; by_handle = false
            :: else
            fi
        }
    od
#undef v
}

active proctype outsider() {
    byte sent;
    do
    :: sent < 2 -> atomic { stray = true; sent++ }
    :: break
    od
}
