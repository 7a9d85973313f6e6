// SPDX-License-Identifier: Apache-2.0
/* Libc's signal to cancel the primary, which may have gone on on another kernel thread: src/preempt/primary.c, on_cancel() in
 * libc_signals.c, and leave_block() and resume_with_block() in src/sched/switch.c. Run by run-spin.sh; README.md says what is
 * covered and what is left out.
 *
 * Each `kernel_thread` is a worker; the primary began on the first. It goes on on either, for a while, and waits in between. It is
 * cancelled at any time: the signal comes to the first kernel thread, wherever the primary is, and its handler runs between
 * any two steps of what runs there. A store to `at` may stay in the kernel thread's store buffer (`late`) until a fence of its own,
 * a membarrier, or what hands the primary to others; a note, if there is no membarrier, until the fence of who notes.
 *
 * Checked: libc's handler runs only where the primary stands, on its own block. When nothing moves any more the primary has
 * been told since it was cancelled last, or it waits, and the note is there.
 *
 * FENCED: there is no membarrier.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_MEMBARRIER     who notes has a fence for itself only
 *   PRIMARY_NO_FENCE  (FENCED) the primary has none
 *   NOTER_NO_FENCE    (FENCED) nor has who notes
 *   LOOK_FIRST        the primary looks for a note before it says where it runs
 *   READ_FIRST        who notes looks where it runs before
 *   NO_NOTE           a signal that does not find it at home is sent after it, or lost
 *   NOT_SENT          ... or it is noted only
 *   TAKEN_ANYWHERE    ... or taken all the same
 *   NOT_TOLD          who finds a note takes it off, and that is all
 *   LEAVES_LATE       it says that it waits when it can be taken on elsewhere
 *   BLOCK_LATE        it has its block back only when it has said where it runs, and has looked for a note
 */
#ifndef MOVES /* times that it begins to wait */
#define MOVES 2
#endif
#ifndef CANCELS
#define CANCELS 2
#endif
#define THREADS 2
#define NOWHERE THREADS
#define NOTHING (THREADS + 1) /* in a store buffer */

#define me _pid

byte at;                         /* primary.at */
bool is_cancelled;               /* primary.is_cancelled */
byte late[THREADS] = NOTHING;    /* stores to `at` */
bool late_note[THREADS];         /* stores of 1 to `is_cancelled` */
byte pending[THREADS];           /* signals */
bool waits;                      /* it is in a queue */
bool owns[THREADS];              /* its block is installed there */
byte stands = 0;                 /* where it does; a ghost, as the next */
bool owed;                       /* it has not been told since */
bool is_begun;                    /* the first kernel thread has begun */

inline flush(k) {
    d_step {
        if
        :: late[k] != NOTHING -> at = late[k]; late[k] = NOTHING
        :: else
        fi;
        is_cancelled = is_cancelled || late_note[k];
        late_note[k] = false
    }
}

/* What this kernel thread sees. */
#define at_here        (late[me] != NOTHING -> late[me] : at)
#define cancelled_here (is_cancelled || late_note[me])

/* One store after another. */
inline store_at(where) {
    d_step {
        if
        :: late[me] != NOTHING -> at = late[me]
        :: else
        fi;
        late[me] = where
    }
}

/* A signal that is there is taken before the next step. */
#define signal_may_come(back)                                                                                \
    if                                                                                                       \
    :: atomic { pending[me] > 0 -> pending[me]--; step = back } goto handler                                 \
    :: true                                                                                                  \
    fi

active [THREADS] proctype kernel_thread() {
    byte seen = NOWHERE, step, moves;

    if
    :: atomic { me == 0 -> owns[0] = true; is_begun = true } goto running
    :: me != 0 && is_begun
    fi;

others: /* run here */
end_others:
    if
    :: atomic { waits -> waits = false; stands = me }
    :: atomic { pending[me] > 0 -> pending[me]--; step = 0 } goto handler
    fi;
after_0:
    if
    :: stands == me
    :: stands != me -> goto others
    fi;
    /* resume_with_block, primary_comes */
#ifndef BLOCK_LATE
    owns[me] = true;
    signal_may_come(1);
after_1:
#endif
#ifdef LOOK_FIRST
    seen = cancelled_here;
#endif
    store_at(me);
#if defined(FENCED) && !defined(PRIMARY_NO_FENCE)
    flush(me);
#endif
    signal_may_come(2);
after_2:
#ifndef LOOK_FIRST
    seen = cancelled_here;
#endif
    if
    :: atomic { seen == 1 -> seen = NOWHERE } /* take_note: the system call is a fence */
        is_cancelled = false;
#ifndef NOT_TOLD
        signal_may_come(3);
after_3:
        atomic { flush(me); step = 4; goto handler } /* its own signal */
after_4:
#endif
    :: atomic { seen != 1 -> seen = NOWHERE }
    fi;
#ifdef BLOCK_LATE
    signal_may_come(1);
after_1:
    owns[me] = true;
#endif

running:
end_running:
    if
    :: atomic { pending[me] > 0 -> pending[me]--; step = 5 } goto handler
    :: atomic { moves < MOVES -> moves++ } goto leaves
    fi;
after_5:
    goto running;

leaves: /* primary_leaves, install_workers_tcb; then it is in a queue, where it is taken from by what it was put there by */
#ifndef LEAVES_LATE
    store_at(NOWHERE);
    signal_may_come(6);
after_6:
#endif
    owns[me] = false;
    signal_may_come(7);
after_7:
#ifdef LEAVES_LATE
    atomic { flush(me); stands = NOWHERE; waits = true }
    store_at(NOWHERE);
#else
    atomic { flush(me); stands = NOWHERE; waits = true }
#endif
    goto others;

handler: /* on_cancel, primary_takes_cancel */
    atomic {
        if
#ifdef TAKEN_ANYWHERE
        :: me != 0 || (owns[me] && at_here == me) ->
#else
        :: owns[me] && at_here == me ->
#endif
            assert(stands == me && owns[me]);
            owed = false;
            goto back
        :: else
        fi
    }
#ifdef READ_FIRST
    seen = at_here;
#endif
#ifndef NO_NOTE
    late_note[me] = true;
#endif
#if defined(FENCED) || defined(NO_MEMBARRIER)
#ifndef NOTER_NO_FENCE
    flush(me);
#endif
#else
    atomic { flush(0); flush(1) }
#endif
#ifndef READ_FIRST
    seen = at_here;
#endif
    atomic {
        if
#ifdef NOT_SENT
        :: false
#else
        :: seen != NOWHERE && seen != me -> pending[seen]++
#endif
        :: else
        fi;
        seen = NOWHERE
    }
back:
    if
    :: step == 0 -> goto after_0
    :: atomic { step == 1 -> step = 0 } goto after_1
    :: atomic { step == 2 -> step = 0 } goto after_2
#ifndef NOT_TOLD
    :: atomic { step == 3 -> step = 0 } goto after_3
    :: atomic { step == 4 -> step = 0 } goto after_4
#endif
    :: atomic { step == 5 -> step = 0 } goto after_5
#ifndef LEAVES_LATE
    :: atomic { step == 6 -> step = 0 } goto after_6
#endif
    :: atomic { step == 7 -> step = 0 } goto after_7
    fi
} /* unreached: fine */

/* pthread_cancel(), as libc sees it: to the number in the primary's block. */
active proctype canceller() {
    byte n;
    do
    :: atomic { n < CANCELS -> n++; owed = true; pending[0]++ }
    :: atomic { n == CANCELS -> break }
    od
}

/* Store buffers are emptied at last. */
active proctype memory() {
end_none:
    do
    :: late[0] != NOTHING || late_note[0] -> flush(0)
    :: late[1] != NOTHING || late_note[1] -> flush(1)
    od
} /* unreached: fine */

active proctype verdict() {
    atomic {
        timeout;
        assert(stands != NOWHERE || waits);
        assert(!owed || (waits && is_cancelled))
    }
}
