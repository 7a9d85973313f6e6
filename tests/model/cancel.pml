// SPDX-License-Identifier: Apache-2.0
/* Cancelling a thread that waits (src/sched/cancel.h, unit_block_until in timer.c): a waiter in an object's list, a waker,
 * a timer, and a canceller who looks at the waiter's watch. Run by run-spin.sh.
 *
 * One step of the model is one atomic operation of the code, or what is done under the object's lock. The waiter waits
 * twice with the watch in the same place: who is with the watch of the first wait must not end the second. In the end it
 * was woken exactly as often as it blocked, nobody has touched a watch or a node that was gone, a permit was not lost,
 * and with a request it does not wait for ever.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_HOLD        the waiter does not wait for the canceller to leave its watch
 *   BLIND_WATCH    it leaves its watch without looking for a request
 *   LATE_REQUEST   the canceller looks for a watch before its request is there
 *   NO_CLAIM       it wakes the waiter whether or not somebody else is about to
 *   FORGETFUL      a waiter that finds the request first goes on although it was claimed, without having been woken
 */
#define WAITING   0 /* enum wait_state */
#define WOKEN     1
#define TIMED_OUT 2

#define WAITS 2

bool requested, held, watch; /* unit->cancel */
byte claim;                  /* wait.claim */
bool listed;                 /* the node, under the object's lock */
bool alive;                  /* the frame with wait, watch and node */
byte wakes;                  /* unit_wake has been called, and not been taken by the block yet */
bool timer;                  /* started */
byte permits, taken, cancelled;

inline cas_claim(to, ok) {
    atomic {
        assert(alive);
        ok = claim == WAITING;
        if
        :: ok -> claim = to
        :: else
        fi
    }
}

active proctype waiter() {
    bool ok, point;
    byte i;
    for (i : 1 .. WAITS) {
        atomic { /* under the object's lock */
            if
            :: permits > 0 -> permits--; taken++; goto next
            :: else -> alive = true; claim = WAITING; listed = true
            fi
        }
#ifdef BLIND_WATCH
        watch = true;
        point = true;
#else
        atomic { /* cancel_watch */
            point = !requested;
            if
            :: point -> watch = true
            :: else
            fi
        }
#endif
        if
        :: !point ->
            cas_claim(TIMED_OUT, ok)
            if
            :: ok -> goto gave_up
            :: else
#ifdef FORGETFUL
                -> goto over
#endif
            fi
        :: else
            if
            :: timer = true
            :: true /* no deadline */
            fi
        fi;
        wakes > 0; /* blocked */
        wakes--;
        timer = false; /* timer_stop: fire() has returned */
        if
        :: point ->
#ifdef NO_HOLD
            watch = false
#else
            atomic { !held -> watch = false } /* cancel_unwatch */
#endif
        :: else
        fi;
gave_up:
over:
        if
        :: claim == WOKEN -> taken++
        :: claim == TIMED_OUT ->
            listed = false;
            if
            :: requested -> cancelled++; goto ended
            :: else
            fi
        fi;
        alive = false;
next:
        skip
    }
ended:
    alive = false;
    assert(wakes == 0)
}

/* Posts for all waits but one, which only the canceller is certain to end. What finds nobody is kept. */
active proctype waker() {
    bool mine;
    byte i;
    for (i : 1 .. WAITS - 1) {
        atomic { /* under the object's lock: off the list, claimed */
            mine = false;
            if
            :: listed ->
                listed = false;
                assert(alive);
                if
                :: claim == WAITING -> claim = WOKEN; mine = true
                :: else -> permits++
                fi
            :: else -> permits++
            fi
        }
        if
        :: mine -> assert(alive); wakes++
        :: else
        fi
    }
}

active proctype deadline() {
    do
    :: atomic { /* under the timers' lock, from which timer_stop keeps away */
           timer ->
           timer = false;
           assert(alive);
           if
           :: claim == WAITING -> claim = TIMED_OUT; wakes++
           :: else
           fi
       }
    :: timeout -> break
    od
}

active proctype canceller() {
    bool with, ok;
#ifdef LATE_REQUEST
    with = watch;
    requested = true;
    if
    :: with -> held = true
    :: else
    fi;
#else
    atomic {
        requested = true;
        with = watch;
        if
        :: with -> held = true
        :: else
        fi
    }
#endif
    if
    :: with ->
#ifdef NO_CLAIM
        assert(alive);
        wakes++;
#else
        cas_claim(TIMED_OUT, ok);
        if
        :: ok -> wakes++
        :: else
        fi;
#endif
        held = false
    :: else
    fi
}
