// SPDX-License-Identifier: Apache-2.0
/* The end of a stream of Argobots' interface: abt_sched_has_to_stop(), is_drained() and rest() of abt/sched.c, abt_pools_sleep() and
 * abt_stream_wake() of abt/sleepers.c, and how a thread that waits is counted (abt_wait_begin(), abt_list_push()). Run by run-spin.sh;
 * README.md says what is covered and what is left out.
 *
 * `stream` runs the main scheduler. Each thread of its pool ends when it first runs, or waits once; `waker`, another kernel thread,
 * makes those that wait ready. `joiner` asks the scheduler to finish, and waits until it has. A store may stay in a store buffer:
 * the joiner's of the request until its fence, the sleeper's of `counted` until its fence.
 *
 * Checked: a stream that has ended leaves no thread behind, ready or waiting; the request ends it, also while it sleeps.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   EMPTY_FIRST       whether the pool is empty is read before how many wait
 *   READY_LATE        a waker counts a thread out of those that wait before it pushes it
 *   NO_COUNT          a scheduler asked to finish looks whether its pool is empty only
 *   READ_TWICE        one that comes to rest reads the request for its deadline and again for whether the request wakes it
 *   LOOK_FIRST        ... looks for threads and requests before it is in the list of sleepers
 *   NO_REQUEST_FENCE  the joiner reads whether there are sleepers before its request is seen
 *   NO_SLEEPER_FENCE  the sleeper reads the request before its being there is seen
 */
#ifndef THREADS
#define THREADS 2
#endif

byte fresh = THREADS;  /* in the pool: have not run */
byte ready;            /* ... have waited */
byte blocked, waiting; /* counted; where a waker finds them */
bool locked;           /* the pool's inbox */
bool request, late_request;
bool listed, counted, late_counted, woken;
bool is_seen; /* the sleeper is in the list as one that a request wakes */
bool ended;
byte done; /* a ghost */

/* wake_sleeper, under its lock */
inline wake_listed() {
    d_step {
        if
        :: listed -> listed = false; counted = false; late_counted = false; woken = true
        :: else
        fi
    }
}

/* The store buffers drain at any time. */
active proctype buffers() {
end_buffers:
    do
    :: atomic { late_request -> request = true; late_request = false }
    :: atomic { late_counted -> counted = true; late_counted = false }
    od
} /* unreached: fine */

inline run_fresh() {
    fresh--;
    if
    :: done++
    :: blocked++; waiting++
    fi
}

/* is_drained: the caller stops. */
inline look_whether_drained() {
#ifdef EMPTY_FIRST
    is_empty = fresh + ready == 0;
    none_waits = blocked == 0;
#else
    none_waits = blocked == 0;
    is_empty = fresh + ready == 0;
#endif
#ifdef NO_COUNT
    none_waits = true;
#endif
    stops = none_waits && is_empty
}

/* abt_pools_sleep; with a deadline the end of the sleep is as if it had not slept */
inline sleep() {
#ifdef LOOK_FIRST
    !locked;
    is_awake = fresh + ready > 0 || (is_seen && request);
#endif
    d_step { woken = false; listed = true; late_counted = true };
#ifndef NO_SLEEPER_FENCE
    d_step { counted = counted || late_counted; late_counted = false };
#endif
#ifndef LOOK_FIRST
    atomic { !locked -> is_awake = fresh + ready > 0 };
    is_awake = is_awake || (is_seen && request);
#endif
    if
    :: is_awake ->
        d_step {
            if
            :: listed -> listed = false; counted = false; late_counted = false
            :: else
            fi
        }
    :: else ->
        if
        :: woken
        :: has_deadline -> wake_listed()
        fi
    fi
}

active proctype stream() {
    bool asked, is_empty, none_waits, stops, is_awake, has_deadline;

    do
    :: ready > 0 -> ready--; done++
    :: fresh > 0 -> run_fresh()
    :: fresh + ready == 0 ->
        asked = request;
        stops = false;
        if
        :: asked -> look_whether_drained()
        :: else
        fi;
        if
        :: stops -> break
        :: else
        fi;
        /* rest: asked to finish it sleeps until a deadline, and no request wakes it */
        asked = request;
        has_deadline = asked;
#ifdef READ_TWICE
        asked = request;
#endif
        is_seen = !asked;
        sleep()
    od;
    assert(fresh + ready == 0 && blocked == 0 && waiting == 0 && done == THREADS);
    ended = true
}

active proctype waker() {
    bool seen;

end_waker:
    do
    :: waiting > 0 ->
        waiting--;
        locked = true;
#ifdef READY_LATE
        blocked--;
        ready++;
#else
        ready++;
        blocked--;
#endif
        seen = listed;
        locked = false;
        if
        :: seen -> wake_listed()
        :: else
        fi
    od
} /* unreached: fine */

active proctype joiner() {
    late_request = true;
#ifndef NO_REQUEST_FENCE
    d_step { request = true; late_request = false };
#endif
    if
    :: counted -> /* abt_stream_wake: only one that looks for requests */
        d_step {
            if
            :: listed && is_seen -> listed = false; counted = false; late_counted = false; woken = true
            :: else
            fi
        }
    :: else
    fi;
    ended
}
