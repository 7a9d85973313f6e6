// SPDX-License-Identifier: Apache-2.0
/* Interrupting a worker at once (tick_interrupt() in src/preempt/tick.c), with one signal on its way at most. on_signal() is in
 * src/preempt/handler.c, tick_ends_slice() in tick.c. Run by run-spin.sh; README.md says what is covered and what is left
 * out.
 *
 * `pusher`s put something into a pool and say so; `worker` takes signals, one after another. Ticks that come by themselves
 * are left out: they would hide what is missed.
 *
 * Checked: no two signals are on their way; in the end the worker has looked into the pool after each push.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   ALWAYS      a signal is sent whether or not one is on its way
 *   NOTED_LATE  `urgent` is set when it is known whether to send
 *   TOLD_LATE   the handler says that the signal has come when it has looked at `urgent`
 *   READ        it is found out by a load and a store whether one is on its way */
#ifndef PUSHERS
#define PUSHERS 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif

byte pushed, seen; /* by the worker */
byte urgent, interrupted;
byte on_its_way; /* signals */
byte busy = PUSHERS;

active[PUSHERS] proctype pusher() {
    byte times = PUSHES, before;
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
        :: before == 0 ->
            atomic { on_its_way++; assert(on_its_way == 1) }
        :: else
        fi
    :: times == 0 -> break
    od;
    busy--
}

active proctype worker() {
    bool is_urgent;
end:
    do
    :: on_its_way > 0 ->
        on_its_way--;
#ifndef TOLD_LATE
        interrupted = 0;
#endif
        is_urgent = urgent != 0;
        if
        :: is_urgent -> urgent = 0; seen = pushed
        :: else
        fi;
#ifdef TOLD_LATE
        interrupted = 0;
#endif
        is_urgent = false
    od
} /* unreached: fine */

/* Everything has come to rest. */
active proctype judge() {
    timeout ->
        assert(busy == 0 && seen == pushed)
}
