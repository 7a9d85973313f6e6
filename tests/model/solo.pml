// SPDX-License-Identifier: Apache-2.0
/* A thread with a kernel thread of its own: how it goes there and comes back, who wakes it, and when its worker's memory may go
 * (src/runtime/solo.h, the end of src/sched/external.c, unit_set_solo and unit_unset_solo). Run by run-spin.sh; README.md says
 * what is covered and what is left out.
 *
 * The unit begins on an ordinary worker, of which there are as many as `ordinary` processes. It locks and waits up to WAITS times,
 * and unlocks, ROUNDS times. `kernel`s are the kernel threads that it gets, one each round. A waker wakes the unit where it
 * stands, with the place that it reads; its call of futex_wake may come much later. A wait may be ended by a timer instead, which
 * the kernel thread fires itself. A stopper ends the runtime at any time, and frees what is left when all kernel threads have
 * ended.
 *
 * With -DMAKERS=1 `maker` creates one kernel thread more for a unit that turns out to be impossible, and gives it back
 * (solo_unmake). It runs where solos_stop waits for it: on a worker, or on another kernel thread of this kind.
 *
 * `sp` is false while the unit's registers are not saved: a resumer waits for that.
 *
 * Checked: the unit runs on one process at a time, and locked only on its kernel thread; each wake-up ends one wait; no thread
 * uses a worker's memory that is free, and none frees it twice; without a stop the unit comes to its end; with one each kernel
 * thread ends.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   UNLOCK_ENQUEUES  the unit that unlocks enqueues itself, as one that migrates does, and its kernel thread goes on
 *   RUNS_LATE        the loop stores RUNS before it waits, when wakers may have found the unit
 *   NO_RECHECK       the loop does not ask again, after a wake-up, whether the runtime stops
 *   FREES_ALL        at the end of the runtime, too, the kernel thread frees the worker
 *   UNMAKE_UNLOCKED  solo_unmake says that no unit comes, and wakes the kernel thread, without the lock
 *   WAITS_FIRST      likewise, and the kernel thread asks for that after its first wait only
 *   FIRES_BLIND      a timer that has gone off wakes the unit, whether a waker has it or not
 *   NO_SP            a resumer does not wait until the unit has left the other kernel thread
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef WAITS
#define WAITS 2
#endif
#ifndef MAKERS
#define MAKERS 0 /* or 1: there is a `maker` */
#endif

#define RUNS   0
#define WOKEN  1
#define SLEEPS 2

#define ANYWHERE 255

#define UNMADE ROUNDS /* the worker of `maker` */
#define SOLOS  (ROUNDS + MAKERS)

byte word[SOLOS];   /* a solo worker's futex word */
bool asleep[SOLOS]; /* its kernel thread sleeps on it */
bool made[SOLOS], freed[SOLOS], over[SOLOS], is_left[SOLOS], timed[SOLOS];
bool held;            /* solos.lock */
byte makers = MAKERS; /* processes `maker` that have not ended */

inline lock() { atomic { !held -> held = true } }
inline unlock() { held = false }

/* munmap */
inline free(n) {
    atomic { assert(!freed[n]); freed[n] = true }
}

byte place = ANYWHERE; /* where a waker puts the unit: the number of its solo worker */
bool queued = true;    /* it is in the queue of all workers */
bool sp = true;        /* its registers are saved */
bool stands;           /* it waits where a waker finds it */
byte runs;             /* processes that it runs on */
byte locked = ANYWHERE;
byte rounds, waits;
byte workers = 2; /* processes `ordinary` that have not ended */
bool ended, stopping;

/* What the unit does next when it is resumed. */
mtype = { BEGINS, LOCKED, UNLOCKED };
mtype at = BEGINS;

/* solo_wake, by a thread that has taken the unit, or by the stopper. Its futex call comes at once or later. */
inline set_woken(n) {
    atomic {
        assert(!freed[n]);
        before = word[n];
        word[n] = WOKEN
    };
    if
    :: before == SLEEPS -> asleep[n] = false
    :: before != SLEEPS
    fi;
    before = 0
}

/* unit_wake_elsewhere */
inline wake_unit() {
    to = place;
    if
    :: to == ANYWHERE -> atomic { assert(!queued); queued = true }
    :: to != ANYWHERE -> set_woken(to)
    fi;
    to = ANYWHERE
}

inline resume() {
#ifdef NO_SP
    atomic { sp = false; runs++; assert(runs == 1) }
#else
    atomic { sp -> sp = false; runs++; assert(runs == 1) }
#endif
}

/* arch_switch: from here on others may resume it. */
inline saved() {
    atomic { runs--; sp = true }
}

/* On an ordinary worker: it locks, or ends. */
inline run_unlocked() {
    assert(locked == ANYWHERE);
    if
    :: rounds == ROUNDS -> atomic { ended = true; runs--; }
    :: rounds < ROUNDS ->
        made[rounds] = true;
        at = LOCKED;
        waits = 0;
        place = rounds; /* unit_set_solo */
        to = rounds;
        set_woken(to);
        to = ANYWHERE;
        saved()
    fi
}

proctype ordinary() {
    byte before, to = ANYWHERE;

end_look:
    do
    :: atomic { queued && !stopping -> queued = false }
        resume();
        run_unlocked()
    :: ended || stopping -> break
    od;
    workers--
}

/* Its main function. `me` is the number of the round. */
proctype kernel(byte me) {
    byte before, to = ANYWHERE;
    bool is_timed, left;

    if
    :: made[me]
    :: atomic { !made[me] && workers == 0 && makers == 0 -> goto done } /* it is never created */
    fi;

#ifdef WAITS_FIRST
    if
    :: stopping -> goto leave
    :: else -> goto wait
    fi;
#endif
loop:
    if
    :: is_left[me] || stopping -> goto leave
    :: else
    fi;
wait:

    /* solo_wait */
#ifdef RUNS_LATE
    word[me] = RUNS;
#endif
    atomic { is_timed = timed[me]; timed[me] = false };
sleep:
    atomic {
        if
        :: word[me] == RUNS -> word[me] = SLEEPS
        :: word[me] != RUNS
        fi
    };
    do
    :: atomic { word[me] == SLEEPS -> asleep[me] = true };
        if
        :: atomic { !asleep[me] -> skip }
        :: atomic { is_timed && asleep[me] -> asleep[me] = false; is_timed = false }
            /* time_out: give_up, and if that is right unit_wake */
#ifdef FIRES_BLIND
            stands = false;
            wake_unit()
#else
            if
            :: atomic { stands -> stands = false }
                wake_unit()
            :: atomic { !stands -> skip }
            fi
#endif
        fi
    :: word[me] != SLEEPS -> break
    od;
#ifndef RUNS_LATE
    word[me] = RUNS;
#endif
#ifndef NO_RECHECK
    if
    :: is_left[me] || stopping -> goto leave
    :: else
    fi;
#endif
    resume();
    atomic {
        assert(place == me && at == LOCKED && !stands);
        locked = me
    };
    if
    :: waits < WAITS ->
        waits++;
        if
        :: true
        :: timed[me] = true
        fi;
        stands = true; /* it announces itself */
        saved();
        goto loop
    :: true ->
        rounds++;
        at = UNLOCKED;
        locked = ANYWHERE;
        place = ANYWHERE; /* unit_unset_solo */
        is_left[me] = true;
#ifdef UNLOCK_ENQUEUES
        atomic { assert(!queued); queued = true };
#endif
        saved();
        goto loop
    fi;

leave:
    /* hand_over */
    if
    :: is_left[me] && me != UNMADE ->
#ifndef UNLOCK_ENQUEUES
        atomic { assert(place == ANYWHERE && !queued); queued = true };
#else
        assert(locked != me && (at != LOCKED || place != me));
        if
        :: runs > 0 && at == UNLOCKED -> assert(false) /* its destructors run while the thread does */
        :: else
        fi;
#endif
    :: else
    fi;
    /* end */
    lock();
    left = is_left[me];
    unlock();
    if
    :: left -> free(me)
    :: !left ->
#ifdef FREES_ALL
        free(me)
#else
        skip
#endif
    fi;
    over[me] = true;
done:
    skip
}

/* A thread that uses what the unit waits for. */
proctype waker() {
    byte before, to = ANYWHERE;

end_look:
    do
    :: atomic { stands -> stands = false }
        wake_unit()
    :: atomic { ended && !stands -> break }
    od
}

#if MAKERS
/* A make_later_solo() that fails. */
proctype maker() {
    byte before;

    made[UNMADE] = true;
    /* solo_unmake */
#if !defined(UNMAKE_UNLOCKED) && !defined(WAITS_FIRST)
    lock();
#endif
    is_left[UNMADE] = true;
    set_woken(UNMADE);
#if !defined(UNMAKE_UNLOCKED) && !defined(WAITS_FIRST)
    unlock();
#endif
    makers--
}
#endif

/* workers_stop, solos_stop and solos_delete. A waker may come later still. */
proctype stopper() {
    byte before, n;

    if
    :: goto done
    :: stopping = true
    fi;
    workers == 0;
    n = 0;
    lock(); /* of the list, from which a kernel thread takes itself before it frees */
    do
    :: n < SOLOS ->
        if
        :: atomic { made[n] && !freed[n] -> before = word[n]; word[n] = WOKEN };
            if
            :: before == SLEEPS -> asleep[n] = false
            :: before != SLEEPS
            fi;
            before = 0
        :: !made[n] || freed[n]
        fi;
        n++
    :: n == SOLOS -> break
    od;
    unlock();
#if MAKERS
    makers == 0;
#endif
    n = 0;
    do /* all that there are have ended */
    :: n < SOLOS -> (!made[n] || over[n]); n++
    :: n == SOLOS -> break
    od;
#if MAKERS
    /* Of the others a waker may still have the unit: that a blocking call has returned is asked before. */
    if
    :: !freed[UNMADE] -> free(UNMADE)
    :: freed[UNMADE]
    fi;
#endif
done:
    skip
}

init {
    byte n;

    atomic {
        run ordinary();
        run ordinary();
        for (n : 0 .. ROUNDS - 1) {
            run kernel(n)
        }
#if MAKERS
        run kernel(UNMADE);
        run maker();
#endif
        run waker();
        run stopper()
    }
}
