// SPDX-License-Identifier: Apache-2.0
/* Who goes first, and comes while a worker's loop chooses (order_look_back() and
 * order_interrupt_for() in src/sched/pool/order.c).
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * `pusher`s put one that goes first into a pool. The `worker` takes one of those, or else one that comes last and computes for
 * ever, and tells whom it runs; such a one is only left for a signal. What the worker says of that may stay in its store buffer
 * until a fence empties it. Ticks that come by themselves are left out: they would hide what is missed.
 *
 * Checked: in the end nobody is left in the pool.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NOT_LOOKED    who has chosen does not look back
 *   LOOK_FIRST    it does so before it says whom it has chosen
 *   NO_FENCE      there is no fence in between
 *   NOT_TOLD      who pushes interrupts nobody: it leaves that to the worker */
#ifndef PUSHERS
#define PUSHERS 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif

#define LOOP  0
#define FIRST 1
#define LAST  2

byte in_pool;
byte told;   /* whom the worker runs, as others see it */
byte buffer; /* ... as it has said, and they may not see yet */
bool urgent, signal;

active[PUSHERS] proctype pusher() {
    byte times = PUSHES;
    do
    :: times > 0 ->
        times--;
        in_pool++; /* and a fence */
#ifndef NOT_TOLD
        if
        :: told == LAST -> urgent = true; signal = true
        :: else
        fi
#endif
    :: times == 0 -> break
    od
}

inline look_back() {
#ifdef NOT_LOOKED
    skip
#else
    if
    :: chosen == LAST && in_pool > 0 -> urgent = true; signal = true
    :: else
    fi
#endif
}

active proctype worker() {
    byte chosen;
end:
    do
    :: chosen == LOOP -> /* it chooses */
        atomic {
            if
            :: in_pool > 0 -> in_pool--; chosen = FIRST
            :: else -> chosen = LAST
            fi
        };
#ifdef LOOK_FIRST
        look_back();
#endif
        buffer = chosen;
#ifndef NO_FENCE
        told = buffer;
#endif
#ifndef LOOK_FIRST
        look_back()
#endif
    :: told != buffer -> told = buffer
    :: chosen == FIRST -> chosen = LOOP; buffer = LOOP /* it has ended */
    :: chosen == LAST && signal -> /* on_signal */
        signal = false;
        if
        :: urgent -> urgent = false; chosen = LOOP; buffer = LOOP
        :: else
        fi
    od
} /* unreached: fine */

/* Everything has come to rest. */
active proctype judge() {
    timeout ->
        assert(in_pool == 0)
}
