// SPDX-License-Identifier: Apache-2.0
/* The word on which an external kernel thread waits (`wake` of struct thrum_unit, src/sched/external.c): it looks at the word
 * for a moment, sleeps on it, and may give up at a deadline. unit_block_external(), unit_block_external_until() and the part
 * of unit_wake_elsewhere() that wakes it. Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * One waiter, which waits WAITS times with the same word, and one waker. `stands` is where a waker finds the waiter: only one
 * thread takes it from there. A waker is done with the word at its exchange, but its call of futex_wake may come much later.
 *
 * Ghost: `woken`, whether the wake-up of this wait has been made.
 * Checked: a wait ends because it was woken, or because no waker has the waiter any more; and no wait lasts for ever.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   BLIND_SLEEPS  the waiter stores SLEEPS, whatever the word is
 *   BLIND_FUTEX   futex_wait does not compare
 *   NO_CALL       the waker never calls futex_wake
 *   CALLS_ONCE    the waiter takes any return of futex_wait for its wake-up
 *   NO_AGAIN      a wait after the deadline takes SLEEPS for WOKEN
 *   NO_CLAIM      the waiter gives up although a waker has taken it
 */
#ifndef WAITS
#define WAITS 3
#endif

#define RUNS   0
#define WOKEN  1
#define SLEEPS 2

byte word;
bool stands, woken, asleep;
bool over; /* no more waits */

/* futex_wait: the kernel compares and falls asleep in one step. */
inline futex_wait() {
    atomic {
        if
#ifdef BLIND_FUTEX
        :: true -> asleep = true
#else
        :: word == SLEEPS -> asleep = true
        :: word != SLEEPS
#endif
        fi
    }
}

active proctype waiter() {
    byte waits = WAITS;
    bool timed, is_late;

next:
    if
    :: waits == 0 -> over = true; goto end_done
    :: waits > 0 -> waits--
    fi;
    word = RUNS;
    atomic { woken = false; is_late = false; stands = true }
    if
    :: timed = false
    :: timed = true
    fi;

block:
    if /* it looks, once or often: each look is of one step */
    :: !timed && word == WOKEN -> goto ended
    :: true
    fi;
#ifdef BLIND_SLEEPS
    word = SLEEPS;
#else
    atomic {
        if
        :: word == RUNS -> word = SLEEPS
#ifdef NO_AGAIN
        :: word != RUNS -> goto ended
#else
        :: word == WOKEN -> goto ended
        :: word == SLEEPS
#endif
        fi
    };
#endif

sleep:
    if
    :: word != SLEEPS -> goto ended
    :: word == SLEEPS
    fi;
    futex_wait();
    if
    :: atomic { !asleep -> skip }
    :: atomic { timed && asleep -> asleep = false; is_late = true } /* the deadline */
    fi;
#ifdef CALLS_ONCE
    if
    :: !is_late -> goto ended
    :: is_late
    fi;
#endif
    if
    :: !is_late -> goto sleep
    :: is_late -> is_late = false
    fi;
    if
    :: word != SLEEPS -> goto ended
    :: word == SLEEPS
    fi;
    /* It gives up, unless a waker has it: then it waits for that. */
    timed = false;
#ifdef NO_CLAIM
    stands = false;
    goto next;
#else
    if
    :: atomic { stands -> stands = false }
        goto next
    :: atomic { !stands -> skip }
        goto block
    fi;
#endif

ended:
    assert(woken && !stands);
    goto next;

end_done:
    skip
}

active proctype waker() {
    byte before;

end_look:
    do
    :: atomic { stands -> stands = false }
        atomic { before = word; word = WOKEN; assert(!woken); woken = true };
        if
#ifndef NO_CALL
        :: before == SLEEPS -> asleep = false /* futex_wake: maybe in the next wait */
        :: before != SLEEPS
#else
        :: true
#endif
        fi;
        before = 0
    :: atomic { over && !stands -> break }
    od
}
