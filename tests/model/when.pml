// SPDX-License-Identifier: Apache-2.0
/* A thread that begins when one of several objects is ready (src/sync/when.c): its creator lists nodes, and starts the timer, while
 * the first waker or the timer may already make the thread begin. Run by run-spin.sh; README.md says what is covered and what is
 * left out.
 *
 * One step of the model is one atomic operation of the code, or what is done under an object's SPIN. An object may look ready when
 * the lister comes to it. How a waker that cannot claim leaves its node alone is dismiss.pml's matter: here it does nothing.
 *
 * Checked: the thread is made runnable exactly once, and begins. No other thread touches the caller's memory after that, which the
 * program's function may free.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_AWAIT       the thread does not wait for the lister
 *   LISTED_EARLY   the lister claims for an object that looked ready after it has said that all is listed
 *   BLIND_BEGIN    it makes the thread runnable without a claim
 *   NO_BEGIN       it leaves a thread alone whose object looked ready
 *   ALONE_TIMED    a node that is not contested, though there is a timer
 *   LEFT_LISTED    the thread does not take its other nodes off
 *   TIMER_LEFT     it does not stop its timer
 */
#ifndef OBJECTS
#define OBJECTS 2
#endif

#define WAITING   0 /* enum wait_state */
#define WOKEN     1
#define TIMED_OUT 2

bool timed;            /* there is a deadline */
bool alone;            /* WHEN_ALONE: one object and no deadline */
byte claim = WAITING;
bool listed[OBJECTS];  /* under the object's SPIN */
bool is_listed;
bool timer_runs;       /* under the lock of the timer's store; not the caller's memory */
byte runnable;
bool gone; /* ghost: the caller's memory */

#define touch assert(!gone)

#define make_runnable \
    runnable++; \
    assert(runnable == 1)

active proctype lister() {
    byte i;
    bool error, got;
    if
    :: timed = true
    :: timed = false
    fi;
#ifdef ALONE_TIMED
    alone = OBJECTS == 1;
#else
    alone = OBJECTS == 1 && !timed;
#endif
    i = 0;
    do
    :: i < OBJECTS && !error ->
        if
        :: atomic { touch; listed[i] = true; i++ }
        :: error = true /* it looks ready */
        fi
    :: else -> break
    od;
    if
    :: alone && !error ->
#ifdef ALONE_TIMED
        if
        :: timed -> timer_runs = true
        :: else
        fi;
#endif
        goto done /* from the store that listed it on it is its waker's */
    :: alone && error -> atomic { touch; make_runnable }; goto done /* WHEN_ANEW */
    :: else
    fi;
    if
    :: timed && !error -> atomic { touch; timer_runs = true }
    :: else
    fi;
#ifdef LISTED_EARLY
    atomic { touch; is_listed = true }
#endif
    if
    :: error ->
#ifdef BLIND_BEGIN
        got = true
#else
#ifdef NO_BEGIN
        got = false
#else
        atomic { touch; got = claim == WAITING;
            if
            :: got -> claim = WOKEN
            :: else
            fi
        }
#endif
#endif
    :: else
    fi;
#ifndef LISTED_EARLY
    atomic { touch; is_listed = true }
#endif
    if
    :: got -> atomic { make_runnable } /* the unit, which is not the caller's memory */
    :: else
    fi;
done:
    skip
}

/* It comes to its object at any time, takes the node off and claims the wait, under SPIN. Then it wakes, which reads the node. */
active [OBJECTS] proctype waker() {
    byte me = _pid - 1;
    bool got;
end:
    atomic { listed[me] -> listed[me] = false; touch; got = alone || claim == WAITING;
        if
        :: got && !alone -> claim = WOKEN
        :: else
        fi
    };
    if
    :: got -> atomic { touch; make_runnable }
    :: else
    fi
}

active proctype timer() {
    bool got;
end:
    atomic { timer_runs -> timer_runs = false; touch; got = claim == WAITING;
        if
        :: got -> claim = TIMED_OUT; make_runnable
        :: else
        fi
    }
}

active proctype thread() {
    byte i;
    runnable > 0; /* in the end it always is: each object that has a node becomes ready */
    if
    :: alone
    :: else ->
#ifndef NO_AWAIT
        is_listed;
#endif
#ifndef TIMER_LEFT
        timer_runs = false; /* timer_stop: a call that has begun is over */
#endif
#ifndef LEFT_LISTED
        i = 0;
        do
        :: i < OBJECTS -> atomic { listed[i] = false; i++ }
        :: else -> break
        od
#endif
    fi;
    gone = true /* fn is called */
}
