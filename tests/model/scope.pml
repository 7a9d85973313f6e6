// SPDX-License-Identifier: Apache-2.0
/* Scopes (src/sync/scope.c): an owner that spawns members and ends the scope, the call at its deadline, and the canceller of a
 * scope around it. Run by run-spin.sh.
 *
 * One step of the model is one atomic operation of the code, or what is done under a scope's lock. A member ends by itself, with or
 * without an error, or waits until it is cancelled. In the end the owner has returned, all members had ended before, the scope was
 * cancelled by one cause alone, and no thread has touched it, or cancelled a member, after its end.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   LATE_UNTOLD    a member that begins in a cancelled scope does not cancel itself
 *   RESULT_LAST    the canceller looks for members before the result is there
 *   DELIST_LATE    a member counts no more before it has left the list
 *   COUNT_LATE     a member is counted when it begins, not when it is spawned
 *   NO_CALL_END    the owner does not wait for a call at the deadline that has begun
 *   NO_HELD        it does not wait for the canceller of the scope around it
 *   INNER_UNTOLD   a scope that begins inside a cancelled one does not look at that
 */
#ifndef MEMBERS
#define MEMBERS 2
#endif

#define TIME   1 /* causes; a member's error is its number + ERROR */
#define OUTER  2
#define ERROR  3

bool begun, gone;  /* the scope, on its owner's stack */
byte result, causes;
byte left = 1;
bool all_left, call_is_over, is_released; /* events */
byte spawned;                             /* the member that is runnable first, and all before it */
bool listed[MEMBERS + 1], told[MEMBERS + 1], alive[MEMBERS + 1], requested[MEMBERS + 1];

byte outer_result;                /* the scope around it, under its lock */
bool linked, is_told, is_held;
bool call_started, call_taken;    /* the call at the deadline: taken by the tasklet or by the owner, which cancels it */
bool returned;

inline touch() {
    assert(begun && !gone)
}

inline set_result(cause, is_first) {
    atomic { /* under the lock */
        touch();
        is_first = result == 0;
        if
        :: is_first -> result = cause; causes++
        :: else
        fi
    }
}

inline cancel_one(i, more) {
    atomic { /* cancel_batch, under the lock: one at a time */
        touch();
        i = 1;
        do
        :: i <= MEMBERS && !(listed[i] && !told[i]) -> i++
        :: else -> break
        od;
        more = i <= MEMBERS;
        if
        :: more -> assert(alive[i]); told[i] = true; requested[i] = true
        :: else
        fi
    }
}

inline cancel(cause, is_first, more, i) {
#ifdef RESULT_LAST
    more = true;
    do
    :: more -> cancel_one(i, more)
    :: else -> break
    od;
    set_result(cause, is_first)
#else
    set_result(cause, is_first);
    more = is_first;
    do
    :: more -> cancel_one(i, more)
    :: else -> break
    od
#endif
}

inline leave_scope(last) {
    atomic { touch(); left--; last = left == 0 };
    if
    :: last -> atomic { touch(); all_left = true } /* its last access */
    :: else
    fi
}

active [MEMBERS] proctype member() {
    bool is_first, more, last, waits;
    byte i, me = _pid + 1;
    if
    :: waits = true
    :: waits = false
    fi;
    if
    :: spawned >= me
    :: returned && spawned < me -> goto none
    fi;
#ifdef COUNT_LATE
    atomic { touch(); left++ };
#endif
    atomic { /* member_begins, under the lock */
        touch();
        alive[me] = true;
        listed[me] = true;
        if
        :: result != 0 ->
            told[me] = true;
#ifndef LATE_UNTOLD
            requested[me] = true
#endif
        :: else
        fi
    };
    if
    :: waits -> requested[me] /* it ends there */
    :: !waits /* it returns 0 */
    :: !waits -> cancel(ERROR + me, is_first, more, i)
    fi;
#ifdef DELIST_LATE
    leave_scope(last);
    atomic { alive[me] = false; touch(); listed[me] = false };
#else
    atomic { touch(); listed[me] = false; alive[me] = false }; /* under the lock */
    leave_scope(last);
#endif
none:
    skip
}

/* The call at the deadline. */
active proctype deadline() {
    bool is_first, more;
    byte i;
    if
    :: atomic { call_started && !call_taken -> call_taken = true };
       cancel(TIME, is_first, more, i);
       atomic { touch(); call_is_over = true }
    :: returned /* the owner has cancelled it */
    fi
}

/* The canceller of the scope around it. */
active proctype outer_canceller() {
    bool is_first, more, held, awaited;
    byte i;
    outer_result = OUTER;
    atomic { /* hold_inner, under the outer lock */
        held = linked && !is_told;
        if
        :: held -> is_told = true; is_held = true
        :: else
        fi
    };
    if
    :: held ->
        cancel(OUTER, is_first, more, i);
        atomic { touch(); is_held = false; awaited = !linked };
        if
        :: awaited -> atomic { touch(); is_released = true }
        :: else
        fi
    :: else
    fi
}

active proctype owner() {
    bool last, held;
    byte i;
    atomic { /* enter_parent, under the outer lock */
        begun = true;
        linked = true;
#ifndef INNER_UNTOLD
        is_told = outer_result != 0;
        if
        :: is_told -> result = OUTER; causes++
        :: else
        fi
#endif
    };
    if
    :: call_started = true
    :: true /* no deadline */
    fi;
    for (i : 1 .. MEMBERS) {
        if
        :: result == 0 ->
#ifndef COUNT_LATE
            left++;
#endif
            spawned++
        :: else -> break /* ECANCELED */
        fi
    }
    atomic { left--; last = left == 0 }; /* await_members */
    if
    :: last
    :: else -> all_left
    fi;
    if /* end(): thrum_call_cancel */
    :: !call_started
    :: atomic { call_started && !call_taken -> call_taken = true }
    :: call_taken ->
#ifndef NO_CALL_END
        call_is_over
#endif
    fi;
    atomic { linked = false; held = is_held }; /* leave_parent, under the outer lock */
    if
#ifndef NO_HELD
    :: held -> is_released
#endif
    :: else
    fi;
    gone = true;
    for (i : 1 .. MEMBERS) {
        assert(!alive[i] && (i > spawned || !listed[i]))
    }
    assert(causes == (result != 0 -> 1 : 0));
    returned = true
}

active proctype check() {
    timeout;
    assert(returned)
}
