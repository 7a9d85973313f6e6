// SPDX-License-Identifier: Apache-2.0
/* One-shot calls (src/sched/call.c): a starter, the timer that goes off, the tasklet that makes the call, and cancellers with
 * handles of this call and of earlier ones in the same memory. Run by run-spin.sh.
 *
 * One step of the model is one atomic operation of the code, or what is done under the lock of a heap of timers. A call is started
 * by a worker, or by an external kernel thread, for which a tasklet of its own (`arm`) starts the timer. In the end each call
 * was made once, or was cancelled once and not made; its memory was freed once, by the last that used it; and a canceller
 * that returned success was the only one.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_STOPPING    a canceller makes the call OVER at once, and uses its timer afterwards
 *   NO_NUMBER      a canceller does not compare the number: the call may be another one in the same memory
 *   STARTER_STORES the starter stores WAITS, whatever its own tasklet has made of the call meanwhile
 *   ARM_BLIND      the tasklet that starts the timer does not look whether the call was cancelled
 *   NO_RUN         the tasklet does not say that it has run while a canceller used the timer
 *   FREE_BOTH      that canceller frees the call whether or not the tasklet will
 */
#define OVER     0 /* the state in `ticket` */
#define ENQUEUED 1
#define STARTING 2
#define WAITS    3
#define STOPPING 4
#define RUN      5

#ifndef CALLS
#define CALLS 2
#endif
#ifndef CANCELLERS
#define CANCELLERS 2
#endif

byte number, state; /* call->ticket; both change in one step */
bool used;          /* the memory is a call's */
byte holds;         /* which call's it was last */
bool in_heap, firing; /* its timer */
bool runnable;        /* its tasklet */
byte to_arm;          /* the call whose `arm` is runnable; 0: none */
bool given[CALLS + 1], made[CALLS + 1], cancelled[CALLS + 1];

inline touch(n) {
    assert(used && holds == n)
}

inline free(n) {
    atomic { touch(n); used = false }
}

inline change(n, from, to, ok) {
    atomic {
        ok = number == n && state == from;
        if
        :: ok -> state = to
        :: else
        fi
    }
}

inline start(n, ok) {
    atomic { touch(n); in_heap = true };
#ifdef STARTER_STORES
    atomic { number = n; state = WAITS }
#else
    change(n, STARTING, WAITS, ok) /* the call may be over, and its memory another's */
#endif
}

inline discard(n) {
    atomic { assert(!runnable && !in_heap); free(n) }
}

active proctype starter() {
    bool ok;
    byte n;
    for (n : 1 .. CALLS) {
        atomic { !used && to_arm == 0 -> used = true; holds = n };
        if
        :: atomic { number = n; state = STARTING }; /* a worker */
           start(n, ok)
        :: atomic { number = n; state = ENQUEUED }; /* another thread */
           to_arm = n
        fi;
        given[n] = true
    }
}

active proctype arm() {
    bool ok;
    byte n;
end_arm:
    do
    :: atomic { to_arm != 0 -> n = to_arm; touch(n) };
#ifdef ARM_BLIND
       ok = true;
#else
       change(n, ENQUEUED, STARTING, ok);
#endif
       if
       :: ok -> start(n, ok)
       :: else -> discard(n)
       fi;
       to_arm = 0
    od
} /* unreached: fine */

/* The owner of the heap: out of it under its lock, then fire(). */
active proctype timer() {
end_timer:
    do
    :: atomic { in_heap -> in_heap = false; firing = true };
       atomic { assert(used); runnable = true }; /* go_off */
       firing = false
    od
} /* unreached: fine */

active proctype tasklet() {
    byte n, before;
end_tasklet:
    do
    :: atomic { runnable -> runnable = false; n = holds; touch(n) };
       atomic { /* end() */
           touch(n);
           before = state;
           if
#ifndef NO_RUN
           :: before == STOPPING -> state = RUN
#else
           :: before == STOPPING
#endif
           :: else -> state = OVER
           fi
       };
       if
       :: before != STOPPING -> free(n)
       :: else
       fi;
       if
       :: before == STARTING || before == WAITS -> atomic { assert(!made[n] && !cancelled[n]); made[n] = true }
       :: else
       fi
    od
} /* unreached: fine */

inline stop(n, ok) {
    atomic {
        touch(n);
        ok = in_heap;
        in_heap = false
    };
    if
    :: ok -> discard(n)
    :: else ->
        !firing; /* timer_stop waits for that */
        change(n, STOPPING, OVER, ok);
#ifdef FREE_BOTH
        free(n)
#else
        if
        :: ok /* the tasklet frees it */
        :: else -> free(n)
        fi
#endif
    fi
}

active [CANCELLERS] proctype canceller() {
    bool ok;
    byte n, seen;
    for (n : 1 .. CALLS) {
        if
        :: given[n]
        :: goto next
        fi;
again:
#ifdef NO_NUMBER
        seen = state;
#else
        atomic { seen = (number == n -> state : OVER) };
#endif
        if
        :: seen == STARTING -> !(number == n && state == STARTING); goto again
        :: seen == ENQUEUED ->
            change(n, ENQUEUED, OVER, ok);
            if
            :: ok -> atomic { assert(!made[n] && !cancelled[n]); cancelled[n] = true }
            :: else -> goto again
            fi
        :: seen == WAITS ->
#ifdef NO_STOPPING
            change(n, WAITS, OVER, ok);
#elif defined(NO_NUMBER)
            change(number, WAITS, STOPPING, ok);
#else
            change(n, WAITS, STOPPING, ok);
#endif
            if
            :: ok ->
                atomic { assert(!made[n] && !cancelled[n]); cancelled[n] = true };
                stop(n, ok)
            :: else -> goto again
            fi
        :: else /* it has begun, or is another call */
        fi;
next:
        skip
    }
}

active proctype check() {
    byte n;
    timeout;
    assert(!used && !in_heap && !runnable);
    for (n : 1 .. CALLS) {
        assert(given[n] && made[n] != cancelled[n])
    }
}
