// SPDX-License-Identifier: Apache-2.0
/* Interrupting a worker at once (tick_interrupt() in src/preempt/tick.c), with one signal on its way at most, and the worker's
 * going from one kernel thread to another meanwhile (take_on() in src/preempt/carrier.c, tick_has_arrived() in tick.c).
 * on_signal() is in src/preempt/handler.c, tick_ends_slice() in tick.c. Run by run-spin.sh; README.md says what is covered and
 * what is left out.
 *
 * `pusher`s put something into a pool and say so; `worker` takes signals, one after another, and moves in between; those that
 * come to a kernel thread where it is not are nobody's. Before it moves, and when it has arrived, it is inside: what comes then is
 * noted on the block of that kernel thread, and done when the unit that it has gone to leaves, unless it has gone on since. Ticks that come by themselves are left out: they would hide what is
 * missed.
 *
 * Checked: each kernel thread has one signal waiting, and one more for each move; in the end the worker has looked into the
 * pool after each push.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   ALWAYS        a signal is sent whether or not one is on its way
 *   NOTED_LATE    `urgent` is set when it is known whether to send
 *   TOLD_LATE     the handler says that the signal has come when it has looked at `urgent`
 *   READ          it is found out by a load and a store whether one is on its way
 *   NOT_AGAIN     who has moved sends none in place of that which went astray
 *   NOTED_THERE   ... nor in place of what was noted where it has been
 *   ARRIVED_EARLY it does so before the handler of its kernel thread finds it there */
#ifndef PUSHERS
#define PUSHERS 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif
#ifndef MOVES
#define MOVES 2
#endif

byte pushed, seen; /* by the worker */
byte urgent, interrupted;
byte pending[2]; /* signals, of each of two kernel threads */
byte tid;        /* the worker's, as it is written down */
byte on;         /* ... as the handler there finds it; 2: between them */
byte moved;
byte busy = PUSHERS;

#define FIRST_ASTRAY (PUSHERS + 1) /* its _pid */

inline send() {
    to = tid;
    atomic { pending[to]++; assert(pending[to] <= 1 + moved) }
}

active[PUSHERS] proctype pusher() {
    byte times = PUSHES, before, to;
    do
    :: times > 0 ->
        times--;
        pushed++;
#ifndef NOTED_LATE
        urgent = 1;
#endif
#ifdef READ
        before = interrupted;
        interrupted = 1;
#else
        atomic { before = interrupted; interrupted = 1 }
#endif
#ifdef NOTED_LATE
        urgent = 1;
#endif
#ifdef ALWAYS
        before = 0;
#endif
        if
        :: before == 0 -> send()
        :: else
        fi
    :: times == 0 -> break
    od;
    busy--
}

inline arrive() {
    atomic { before = interrupted; interrupted = 0 };
#ifndef NOT_AGAIN
    if
#ifdef NOTED_THERE
    :: before != 0 ->
#else
    :: before != 0 || urgent != 0 ->
#endif
        atomic { before = interrupted; interrupted = 1 };
        if
        :: before == 0 -> send()
        :: else
        fi
    :: else
    fi
#endif
}

bool noted[2]; /* on the block of a kernel thread */

/* tick_ends_slice */
inline look() {
    is_urgent = urgent != 0;
    if
    :: is_urgent -> urgent = 0; seen = pushed
    :: else
    fi
}

inline in_region() {
    if
    :: atomic { on < 2 && pending[on] > 0 -> pending[on]-- };
        interrupted = 0;
        noted[on] = true
    :: true
    fi
}

active proctype worker() {
    bool is_urgent;
    byte before, to, moves = MOVES;
end:
    do
    :: atomic { on < 2 && pending[on] > 0 -> pending[on]-- };
#ifndef TOLD_LATE
        interrupted = 0;
#endif
        look();
#ifdef TOLD_LATE
        interrupted = 0;
#endif
        is_urgent = false
    :: moves > 0 ->
        moves--;
        in_region();
        noted[1 - tid] = false; /* carry(): that block begins anew */
        on = 2;
        atomic { tid = 1 - tid; moved++ };
#ifdef ARRIVED_EARLY
        arrive();
#endif
        on = tid;
#ifndef ARRIVED_EARLY
        arrive();
#endif
        in_region();
        if
        :: noted[on] -> noted[on] = false; look()
        :: else
        fi;
        is_urgent = false
    od
} /* unreached: fine */

/* A kernel thread takes what comes while the worker is not there. */
active[2] proctype astray() {
end:
    do
    :: atomic { on != _pid - FIRST_ASTRAY && pending[_pid - FIRST_ASTRAY] > 0 -> pending[_pid - FIRST_ASTRAY]-- }
    od
} /* unreached: fine */

/* Everything has come to rest. */
active proctype judge() {
    timeout ->
        assert(busy == 0 && seen == pushed)
}
