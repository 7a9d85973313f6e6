// SPDX-License-Identifier: Apache-2.0
/* A thread that begins when a condition is signalled (src/sync/when.c with cond.c and mutex.c): its creator owns the mutex, and the
 * thread owns it when it begins. when.pml has how the other nodes are listed. Run by run-spin.sh; README.md says what is covered
 * and what is left out.
 *
 * The lister has found that the condition is false, and lists the thread's nodes: the condition's, and perhaps another object's and
 * a timer. The signaller makes the condition true under the mutex, and signals with or without the mutex. The other object and the
 * timer may never be ready: so a signal that is lost leaves a thread that waits for ever.
 *
 * One step of the model is one atomic operation of the code, or what is done under an object's SPIN.
 *
 * Checked: the thread is made runnable once for each wait; it owns the mutex when the program's function is called, and no other
 * thread touches the caller's memory from then on; no signal is lost.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   UNLOCK_FIRST  the lister unlocks the mutex before the node is in the condition's list
 *   NO_GIVE       where an object looks ready the lister unlocks the mutex, which the thread locks again
 *   NO_MORPH      a signal wakes the thread while the mutex is locked
 *   BLIND_SIGNAL  it takes the thread without a claim
 *   NO_LOCK       a thread that another object or the timer woke does not lock the mutex
 *   READS_LATE    the lister reads the caller's memory after it has unlocked the mutex
 *   KEEPS_NODE    the thread leaves its node in the condition's list when another object was ready
 */
#define FREE      0 /* the mutex's owner */
#define LISTER    1
#define SIGNALLER 2
#define THREAD    3 /* the new thread, or the one that it has made to wait for the mutex */

#define WAITING   0 /* enum wait_state */
#define WOKEN     1
#define TIMED_OUT 2
#define BY_LISTER 3 /* WOKEN, by the lister: the thread has yet to wait */

byte owner = LISTER;
bool signaller_waits, in_mutex; /* the mutex's list */
bool in_cond, in_other, timer_runs;
bool alone, timed;
byte claim = WAITING;
bool fired; /* by the condition's node */
bool is_listed;
byte runnable;
bool gone; /* ghost: the caller's memory */

#define touch assert(!gone)

#define make_runnable \
    runnable++; \
    assert(runnable == 1)

inline unlock(me) {
    atomic { assert(owner == me);
        if
        :: in_mutex -> in_mutex = false; touch; owner = THREAD; make_runnable
        :: signaller_waits -> signaller_waits = false; owner = SIGNALLER
        :: !in_mutex && !signaller_waits -> owner = FREE
        fi
    }
}

/* mutex_adopt_one, of a node that is claimed. */
inline adopt() {
    atomic { touch;
        if
#ifdef NO_MORPH
        :: owner != FREE -> make_runnable
#else
        :: owner != FREE -> in_mutex = true
#endif
        :: owner == FREE -> owner = THREAD; make_runnable
        fi
    }
}

active proctype lister() {
    bool error, got;
    if
    :: alone = true
    :: timed = true
    :: skip
    fi;
#ifdef UNLOCK_FIRST
    unlock(LISTER);
#endif
    atomic { touch; in_cond = true };
    if
    :: alone -> goto listed
    :: else
    fi;
    if
    :: atomic { touch; in_other = true }
    :: error = true /* it looks ready */
    fi;
    if
    :: timed && !error -> atomic { touch; timer_runs = true }
    :: else
    fi;
    if
    :: error -> atomic { touch; got = claim == WAITING;
            if
            :: got -> claim = BY_LISTER;
#ifndef NO_GIVE
                owner = THREAD
#endif
            :: else
            fi
        }
    :: else
    fi;
    atomic { touch; is_listed = true };
    if
    :: got ->
#ifdef NO_GIVE
        unlock(LISTER);
#endif
        atomic { make_runnable }; goto done
    :: else
    fi;
listed:
#ifndef UNLOCK_FIRST
    unlock(LISTER);
#endif
#ifdef READS_LATE
    touch;
#endif
done:
    skip
}

active proctype signaller() {
    bool got, late;
    atomic {
        if
        :: owner == FREE -> owner = SIGNALLER
        :: else -> signaller_waits = true
        fi
    };
    owner == SIGNALLER;
    /* the condition is true from here on */
    if
    :: late = true; unlock(SIGNALLER)
    :: skip
    fi;
    atomic {
        if
        :: in_cond -> in_cond = false; touch; got = alone || claim == WAITING;
#ifdef BLIND_SIGNAL
            got = true;
#endif
            if
            :: got -> claim = WOKEN; fired = true
            :: else
            fi
        :: else
        fi
    };
    if
    :: got -> adopt()
    :: else
    fi;
    if
    :: !late -> unlock(SIGNALLER)
    :: else
    fi
}

/* It claims the wait, and wakes. */
active proctype other() {
    bool got;
end:
    atomic { in_other -> in_other = false; touch; got = claim == WAITING;
        if
        :: got -> claim = WOKEN
        :: else
        fi
    };
    if
    :: got -> atomic { touch; make_runnable }
    :: else
    fi
}

active proctype timer() {
end:
    atomic { timer_runs -> timer_runs = false; touch;
        if
        :: claim == WAITING -> claim = TIMED_OUT; make_runnable
        :: else
        fi
    }
}

active proctype thread() {
    atomic { runnable > 0 -> runnable-- };
    if
    :: alone
    :: else -> is_listed;
        timer_runs = false;
        in_other = false;
        if
        :: fired
        :: else ->
#ifndef KEEPS_NODE
            in_cond = false
#endif
        fi
    fi;
    if
    :: fired
    :: !fired && claim == BY_LISTER -> /* thrum_wait_any: the other object is not ready after all */
#ifdef NO_GIVE
        adopt();
        atomic { runnable > 0 -> runnable-- };
#endif
        assert(owner == THREAD);
        atomic { in_cond = true; claim = WAITING };
        unlock(THREAD);
        atomic { runnable > 0 -> runnable-- }
    :: !fired && claim != BY_LISTER ->
#ifndef NO_LOCK
        adopt(); /* lock_again: also what thrum_mutex_try_lock does */
        atomic { runnable > 0 -> runnable-- }
#endif
    fi;
    assert(owner == THREAD);
    gone = true; /* fn is called */
    unlock(THREAD)
}
