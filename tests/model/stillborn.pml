// SPDX-License-Identifier: Apache-2.0
/* A kernel thread that leaves its thread control block behind (src/preempt/blocks.c: forbid_marks(), wait_until_gone(),
 * seem_alive()) while another thread calls setuid(): __nptl_setxid() and its handler in glibc 2.34 to 2.42, nptl/nptl_setxid.c. Run by
 * run-spin.sh; README.md says what is covered.
 *
 * The newborn leaves raw. The kernel first delivers no more signals to it, though it accepts them (DYING), then clears the
 * thread's number, then gives the number to others. The maker waits for the cleared number, and makes the block look like that
 * of a running thread. The setter marks the block, signals it while there is a mark, waits until all that it has signalled
 * have answered, and takes left marks off; CALLS times, at any moment.
 *
 * Checked: neither waits for ever. A signal never goes to a number that may be another thread's. When a call is over no
 * kernel thread runs the newborn's function with the old ids, unless it was leaving when the call began.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_BIT         it leaves without EXITING: a mark may be put after its last look
 *   BLIND          it sets EXITING, and does not look whether there is a mark
 *   MASKED         it waits for the mark's end, and libc's signal is blocked there
 *   CLEARED_EARLY  the bit is cleared before the kernel thread is gone
 */
#ifndef CALLS
#define CALLS 2
#endif

#ifdef MASKED
#define OPEN false
#else
#define OPEN true
#endif

#define REAL   1 /* the block's number: the kernel thread's, none, or one that no kernel thread has */
#define GONE   0
#define NUMBER 2

mtype = { RUNS, DYING, FREED }; /* the kernel thread; FREED: its number may be another's */
mtype kernel = RUNS;
byte number = REAL;
bool setxid, exiting; /* bits of one word */
bool pending;         /* the signal */
bool made;            /* the block is that of a running thread again */
byte awaited;         /* answers */
byte ids, wanted;     /* the kernel thread's, and those of the present call */
bool left;            /* it runs nothing but its exit any more: ghost */

/* The handler interrupts the newborn anywhere. */
active proctype handler() {
end:
    do
    :: atomic { pending && kernel == RUNS && OPEN -> pending = false; ids = wanted }
       atomic { setxid = false; awaited-- }
    od
} /* unreached: fine */

active proctype newborn() {
#ifdef NO_BIT
    skip;
#elif defined(BLIND)
    exiting = true;
#else
    atomic { !setxid -> exiting = true; left = true } /* a cas, again and again */
#endif
#ifdef CLEARED_EARLY
    exiting = false;
#endif
    atomic { kernel = DYING; left = true }
    number = GONE;
    kernel = FREED
}

active proctype maker() {
    number == GONE;
    exiting = false;
    number = NUMBER;
    made = true
}

active proctype setter() {
    byte calls;
    bool again, was_leaving;
    do
    :: calls < CALLS ->
        calls++;
        atomic { wanted = calls; was_leaving = left }
        if
        :: atomic { !exiting -> setxid = true } /* setxid_mark_thread */
        :: atomic { exiting -> skip }
        fi;
        do
        :: again = false;
            if
            :: setxid -> /* setxid_signal_thread */
                if
                :: atomic { number == REAL ->
                    assert(kernel != FREED);
                    pending = true; awaited++; again = true }
                :: atomic { number != REAL -> skip }
                fi
            :: !setxid
            fi;
            awaited == 0;
            if
            :: again
            :: !again -> break
            fi
        od;
        setxid = false; /* setxid_unmark_thread */
        assert(kernel != RUNS || left || was_leaving || ids == wanted)
    :: calls == CALLS -> break
    od;
    made
}
