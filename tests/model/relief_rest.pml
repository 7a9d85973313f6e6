// SPDX-License-Identifier: Apache-2.0
/* Ticks of a worker whose scheduler's function waits in the kernel for what a preempted thread has: look_at_loop() and
 * kernel_wait_look() in src/preempt/kernel_wait.c, tick_rest() and tick_resume() in tick.c, relieve() in relief.c, take_from_pool() in
 * src/sched/preempted.c, and who pushes to a pool (pool_push_behind(), scheduler_wake_for()). Run by run-spin.sh; README.md
 * says what is covered and what is left out.
 *
 * The lock's holder and others were preempted, and are in the pool of one scheduler, or of several workers' that look there.
 * The function of each waits for the lock outside of the library, where no push wakes it: only its ticks see that, and the
 * second in a row that does asks for relief. The relief takes one of those who were preempted, and all others off the pool for
 * a moment; who it runs is preempted there time and again, and put back. So the pool is empty at times, and a tick that
 * finds it so has nobody to ask for. One thread sleeps meanwhile, with its timer on the first worker.
 *
 * Checked: all end, so nobody waits for ever; nobody is run by two; as many rest as are said to. Ticks do not follow each other
 * for ever while they find the same.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   TURNS_OFF        the tick that finds the pool empty turns ticks off, which no push ends
 *   NO_SECOND_LOOK   who rests does not look again
 *   LOOK_FIRST       it looks before it says that it rests
 *   GIVE_WAY_UNTOLD  who is put back tells nobody who rests
 *   TIMERS_UNSEEN    it does not look at timers: the deadline, which is over, is that of the next rest again
 */
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef OTHERS /* that were preempted, besides the holder */
#define OTHERS 1
#endif
#ifndef SLICES /* that one may take more */
#define SLICES 2
#endif
#ifndef ELSEWHERE /* the holder may run elsewhere */
#define ELSEWHERE 1
#endif
#ifndef SLEEPS /* a thread sleeps */
#define SLEEPS 1
#endif
#define UNITS   (1 + OTHERS + SLEEPS)
#define SLEEPER (1 + OTHERS)
#define was_preempted(u) ((u) != SLEEPER)

#define OFF  0 /* enum tick_state */
#define ON   1
#define REST 2

#define NEVER    0 /* what the alarm is set to */
#define PERIODIC 1
#define ONCE     2 /* at the deadline; it may have passed */

#define me _pid

chan pool = [UNITS] of { byte };
chan popped = [UNITS] of { byte }; /* off the pool, and on their way back */
bool locked = true;                /* by unit 0 */
bool running[UNITS];
byte left[1 + OTHERS], ended;
byte state[WORKERS], alarm[WORKERS];
bool stuck[WORKERS], asked;
short resting;
bool sleeps = SLEEPS; /* there is a timer */
bool is_begun, is_elsewhere;

/* tick_resume */
inline go_on(w) {
    if
    :: atomic { state[w] == REST -> state[w] = ON }
        resting--;
        alarm[w] = PERIODIC
    :: state[w] != REST
    fi
}

/* scheduler_wake_for, tick_wake_resting. i is the caller's. */
inline wake_resting() {
    if
    :: resting != 0 ->
        i = 0;
        do
        :: atomic { i == WORKERS -> i = 0; break }
        :: atomic { i < WORKERS && state[i] != REST -> i++ }
        :: i < WORKERS && state[i] == REST ->
            go_on(i);
            i++
        od
    :: resting == 0
    fi
}

active [WORKERS] proctype worker() {
    byte i, u;
    bool in_call, sees, is_due;

    atomic { /* the holder is in the pool, or runs on some other worker */
        state[me] = ON;
        alarm[me] = PERIODIC;
        if
        :: d_step { me == 0 ->
                do
                :: u == SLEEPER -> u = 0; break
                :: else -> left[u] = SLICES; u++
                od
            }
            if
            :: pool!0
#if ELSEWHERE > 0
            :: running[0] = true; is_elsewhere = true
#endif
            fi;
#if OTHERS > 0
            pool!1;
#endif
#if OTHERS > 1
            pool!2;
#endif
            is_begun = true
#if WORKERS > 1
        :: is_begun && me != 0
#endif
        fi
    }
waiting: /* a tick that would change nothing need not be looked at */
    if
    :: atomic { !locked -> in_call = false } goto free
    :: atomic {
            locked && alarm[me] != NEVER &&
                !(alarm[me] == PERIODIC && in_call && stuck[me] && asked && len(pool) > 0) ->
            if
            :: alarm[me] == ONCE -> alarm[me] = NEVER; is_due = true
            :: else
            fi
        }
    fi;
    /* on_signal */
    go_on(me);
    /* look_at_loop */
#if SLEEPS > 0 && !defined(TIMERS_UNSEEN)
    if
    :: atomic { me == 0 && sleeps -> sleeps = false; pool!SLEEPER }
        wake_resting()
    :: me != 0 || !sleeps || !is_due
    fi;
#endif
    is_due = false;
    sees = (len(pool) > 0);
    if
    :: atomic { sees -> sees = false } goto looked
    :: !sees
    fi;
#ifdef TURNS_OFF
    atomic { alarm[me] = NEVER; state[me] = OFF }
    goto looked;
#endif
    /* tick_rest */
    atomic {
        alarm[me] = NEVER;
        if
        :: me == 0 && sleeps -> alarm[me] = ONCE
        :: else
        fi
    }
    if
    :: state[me] == REST -> goto looked /* unreached: fine */
    :: state[me] != REST
    fi;
#ifdef LOOK_FIRST
    sees = (len(pool) > 0);
#endif
    resting++;
    state[me] = REST;
#if !defined(NO_SECOND_LOOK) && !defined(LOOK_FIRST)
    sees = (len(pool) > 0);
#endif
    if
    :: atomic { sees -> sees = false }
        go_on(me)
    :: !sees
    fi;
looked: /* kernel_wait_look */
    if
    :: in_call ->
        stuck[me] = true;
        asked = true
    :: atomic { !in_call -> in_call = true }
    fi;
    goto waiting;

free: /* the function has the lock, and lets it go; it runs what is in the pool, or its worker searches */
    if
    :: atomic { state[me] == REST -> state[me] = OFF }
        resting--
    :: state[me] != REST
    fi;
#if SLEEPS > 0
    if
    :: atomic { me == 0 && sleeps -> sleeps = false; pool!SLEEPER }
        wake_resting()
    :: me != 0 || !sleeps
    fi;
#endif
    do
    :: atomic { nempty(pool) -> pool?u; assert(!running[u]); running[u] = true }
        ended++;
        u = 0
    :: atomic { ended == UNITS -> break }
    od
}

active proctype relief() {
    byte i, u, w, chosen = UNITS;
    bool is_popped[UNITS], some;

sleeping:
    if
    :: asked -> asked = false
    :: atomic { !asked && ended == UNITS -> goto over }
    fi;
    w = 0;
next_worker:
    if
    :: atomic { w == WORKERS -> w = 0; goto sleeping }
    :: atomic { w < WORKERS && stuck[w] -> stuck[w] = false }
    :: atomic { w < WORKERS && !stuck[w] -> w++; goto next_worker }
    fi;

    /* take_from_pool */
    d_step {
        do
        :: len(pool) > 0 -> pool?u; popped!u; is_popped[u] = true; some = true
        :: else -> break
        od;
        u = 0
    }
    atomic { /* one of them */
        if
        :: is_popped[0] -> chosen = 0
#if OTHERS > 0
        :: is_popped[1] -> chosen = 1
#endif
#if OTHERS > 1
        :: is_popped[2] -> chosen = 2
#endif
        :: else -> chosen = UNITS
        fi;
        assert(chosen == UNITS || was_preempted(chosen))
    }
    do
    :: atomic { len(popped) > 0 ->
            popped?u;
            is_popped[u] = false;
            if
            :: u != chosen -> pool!u
            :: u == chosen
            fi;
            u = 0
        }
    :: len(popped) == 0 -> break
    od;
    if
    :: atomic { some -> some = false }
        wake_resting()
    :: !some
    fi;
    if
    :: atomic { chosen == UNITS -> w++; goto next_worker }
    :: atomic { chosen < UNITS -> assert(!running[chosen]); running[chosen] = true }
    fi;

    /* worker_run: it ends, or a tick of the relief's takes it off */
    if
    :: atomic { left[chosen] > 0 -> left[chosen]--; running[chosen] = false; pool!chosen }
#ifndef GIVE_WAY_UNTOLD
        wake_resting()
#endif
    :: atomic { true ->
            if
            :: chosen == 0 -> locked = false
            :: chosen != 0
            fi;
            ended++
        }
    fi;
    atomic { chosen = UNITS; w++; goto next_worker }
over:
    skip
}

#if ELSEWHERE > 0
/* The holder's, at a tick. */
active proctype other_worker() {
    byte i;
    is_begun;
    if
    :: atomic { is_elsewhere -> running[0] = false; pool!0 }
#ifndef GIVE_WAY_UNTOLD
        wake_resting()
#endif
    :: !is_elsewhere
    fi
}
#endif

active proctype verdict() {
    atomic {
        timeout;
        assert(ended == UNITS && !locked);
        assert(resting == 0)
    }
}
