// SPDX-License-Identifier: Apache-2.0
/* A tick that comes while a non-preemptible region is open, and the word that counts them (src/sched/current.h): it is
 * pending there, and goes along when another thread control block is installed (tcb_install() in src/sched/tcb.h).
 * preempt_pending(), on_signal() and preempt_here() are in src/preempt/handler.c. Run by run-spin.sh; README.md says what is
 * covered and what is left out.
 *
 * One kernel thread, on which two units take turns. One step is one instruction of it on a word, and between any two a tick
 * may come (`signal`), unless the signal is blocked. A unit that is preempted may take its block along or leave it; with
 * OWN, unit 0 has one for life.
 *
 * Ghost: `owed`, since a tick has found a region open, until preempt_pick_successor() runs, which finds out whose turn it is.
 * Checked: where no region is open any more nothing is owed, and the word says that none is open and nothing pending.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   DROPPED       a tick that finds a region open does nothing
 *   SPLIT_ENTER   the word is incremented by a load and a store
 *   SPLIT_LEAVE   likewise decremented
 *   ONCE          preempt_pending() does not ask whether another came meanwhile
 *   HANDLER_ONCE  nor does the handler that was gone on with
 *   SIGNAL_IN     ... or asks, with the signal let in
 *   ABOUT_UNSEEN  a handler that finds the count 0 does not ask whether preempt_pending() is about to be called
 *   NO_COPY       a block is installed with the count that it had
 *   COPY_LATE     the count is copied when it is installed
 *   NO_MOVE       the pending tick stays on the block that was left
 *   MOVE_FIRST    it is moved before the other block is installed
 */
#ifndef TICKS
#define TICKS 3
#endif
#ifndef TURNS /* regions that are entered */
#define TURNS 3
#endif

#define NOT_PENDING 8
#define NONE        4 /* tcb */

#define LEAVES  0 /* how it goes on: a call of the runtime's, */
#define PENDING 1 /* preempt_pending(), */
#define HANDLER 2 /* preempt_here() */

byte word[4] = NOT_PENDING;
byte installed; /* the block that the kernel thread is on */
bool blocked, owed;
byte ticks = TICKS, turns = TURNS;

#define here word[installed]

inline increment() {
#ifdef SPLIT_ENTER
    value = here;
    here = value + 1
#else
    here++
#endif
}

/* ARCH_TLS_DECREMENT_IS_ZERO */
inline decrement() {
#ifdef SPLIT_LEAVE
    value = here;
    atomic { here = value - 1; is_zero = (here == 0) }
#else
    atomic { assert(here % NOT_PENDING > 0); here--; is_zero = (here == 0) }
#endif
}

/* tcb_install */
inline install(now) {
    before = installed;
#ifndef NO_COPY
#ifndef COPY_LATE
    value = word[before];
    word[now] = value;
#endif
#endif
#ifdef MOVE_FIRST
    if
    :: word[before] < NOT_PENDING -> value = word[now];
        word[now] = value % NOT_PENDING
    :: word[before] >= NOT_PENDING
    fi;
#endif
    installed = now;
#ifdef COPY_LATE
    value = word[before];
    word[now] = value;
#endif
#if !defined(NO_MOVE) && !defined(MOVE_FIRST)
    if
    :: word[before] < NOT_PENDING -> value = word[now];
        word[now] = value % NOT_PENDING
    :: word[before] >= NOT_PENDING
    fi;
#endif
    value = word[before];
    word[before] = value % NOT_PENDING + NOT_PENDING;
    atomic { value = 0; before = 0 }
}

active proctype thread() {
    byte u, value, before;
    byte present = 1, reserve = 2, spare = 3; /* worker->tcb and so on */
    byte tcb[2] = NONE, how[2];
    bool took[2], is_zero;

#ifdef OWN
    tcb[0] = 0;
    installed = 0;
#else
    installed = present;
#endif
outside:
    assert(!owed && here == NOT_PENDING && !blocked);
end_outside:
    if
    :: atomic { turns > 0 -> turns-- }
        increment();
        goto inside
    :: atomic { ticks > 0 -> ticks--; blocked = true } /* on_signal: no region is open */
        goto handler
    fi;

inside:
    if
    :: true -> goto leave
    :: true -> how[u] = LEAVES;
        goto change
    :: atomic { turns > 0 -> turns-- } /* nested */
        increment();
        decrement();
        assert(!is_zero)
    fi;
    goto inside;

leave:
    decrement();
    if
    :: is_zero -> is_zero = false
    :: !is_zero -> goto outside
    fi;
about:
#ifdef ABOUT_UNSEEN
    if
    :: atomic { ticks > 0 -> ticks--; blocked = true }
        goto handler
    :: true
    fi;
#endif
    /* preempt_pending */
    assert(!blocked);
    do
    :: here = NOT_PENDING + 1;
        owed = false; /* preempt_pick_successor */
        if
        :: true -> how[u] = PENDING;
            goto preempted
        :: true
        fi;
resume_pending:
        decrement();
        if
#ifdef ONCE
        :: is_zero -> is_zero = false; here = NOT_PENDING; goto outside
#else
        :: is_zero -> is_zero = false
#endif
        :: !is_zero -> goto outside
        fi
    od;

handler:
    increment();
    owed = false; /* preempt_pick_successor */
    if
    :: true -> how[u] = HANDLER;
        here = NOT_PENDING + 1;
        goto preempted
    :: true
    fi;
    decrement();
    if
    :: is_zero -> goto about
    :: !is_zero -> blocked = false;
        goto outside
    fi;

preempted: /* preempt_for; take_tcb or not */
    atomic {
        if
        :: tcb[u] == NONE -> tcb[u] = present; took[u] = true; present = reserve; reserve = spare; spare = NONE
        :: true
        fi
    }
    blocked = false;

change: /* install_workers_tcb; arch_switch; install_units_tcb, return_tcb */
    if
    :: tcb[u] != NONE -> install(present)
    :: tcb[u] == NONE
    fi;
    u = 1 - u;
    if
    :: tcb[u] != NONE -> install(tcb[u])
    :: tcb[u] == NONE
    fi;
    if
    :: how[u] == LEAVES -> skip
    :: how[u] == HANDLER ->
#ifndef SIGNAL_IN
        blocked = true
#endif
    :: how[u] == PENDING -> skip
    fi;
    atomic {
        if
        :: took[u] -> spare = reserve; reserve = present; present = tcb[u]; tcb[u] = NONE; took[u] = false
        :: !took[u]
        fi
    }
    if
    :: how[u] == LEAVES -> goto leave
    :: atomic { how[u] == PENDING -> how[u] = LEAVES } goto resume_pending
    :: atomic { how[u] == HANDLER -> how[u] = LEAVES }
    fi;
    /* preempt_here */
#ifndef HANDLER_ONCE
    if
    :: here < NOT_PENDING -> owed = false; /* preempt_pick_successor */
        if
        :: true -> here = NOT_PENDING + 1;
            how[u] = HANDLER;
            goto preempted
        :: true
        fi
    :: here >= NOT_PENDING
    fi;
#endif
    here = NOT_PENDING + 1;
    decrement();
    assert(!is_zero);
    blocked = false;
    goto outside
} /* unreached: fine */

/* on_signal in a region, or when preempt_pending() is about to be called. */
active proctype signal() {
end_none:
    do
#ifdef DROPPED
    :: atomic { ticks > 0 && !blocked && here != NOT_PENDING -> ticks--; owed = true }
#else
    :: atomic { ticks > 0 && !blocked && here != NOT_PENDING -> ticks--; owed = true; here = here % NOT_PENDING }
#endif
    od
} /* unreached: fine */
