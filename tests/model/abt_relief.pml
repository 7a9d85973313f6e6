// SPDX-License-Identifier: Apache-2.0
/* Relief for a stream that waits in the kernel for what a preempted thread of the layer's has: abt/relief.c, with run.c and
 * pool_list.c. Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * Threads are in pools of two streams. A preempted one is in the list of those, too, from before it is pushed until a host is about
 * to run it. One thread was preempted with a lock, and others without. A waiter (the primary, a tasklet, the function of a scheduler or
 * of a pool, a thread that is not preempted) waits for the lock on its stream, which runs nothing meanwhile; its ticks ask for relief.
 * A thread may be asked to move to the other pool at any time: the host that pops it next pushes it there. The holder does not
 * yield with the lock: nobody promises a waiter in the kernel that it continues.
 *
 * With BUSY the other stream runs a thread that computes until the lock is free, and is not preempted. Where the
 * waiter blocks the signal the monitor asks in place of the ticks: that is the same here.
 *
 * Checked: no thread is run by two, or is twice in the list; one is taken out of the pool in which it is; all end, and leave
 * the list empty.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   ADD_LAST        a preempted thread is pushed before it is in the list
 *   NOT_REMOVED     the host that runs it leaves it in the list
 *   NOT_TAKEN       the relief does not take it out of its pool
 *   POPPED_ANYWAY   the relief runs one that is in the list, but was popped already
 *   POOL_UNCHECKED  the pool is read before its lock is taken, and not looked at again
 *   OWN_ONLY        (with BUSY) the relief runs only threads that ran last on the stream that waits
 */
#ifndef OTHERS /* that were preempted, besides the holder, which is 0 */
#define OTHERS 1
#endif
#ifndef SLICES /* that each of them takes more */
#define SLICES 1
#endif
#ifndef MOVES /* so many are asked to move */
#define MOVES 1
#endif
#define WAITER (1 + OTHERS)
#define UNITS  (2 + OTHERS)

chan pool[2] = [UNITS] of { byte }; /* by stream */
chan list = [UNITS] of { byte };    /* oldest first */
bool list_lock;
byte home[UNITS], last[UNITS]; /* its pool; the stream where it ran last */
bool in_pool[UNITS], marked[UNITS], moves[UNITS];
bool running[UNITS]; /* ghost */
byte left[UNITS], ended, to_move = MOVES;
bool locked = true, stuck, asked;

#define over (ended == UNITS)

inline add(t) {
    atomic { !list_lock -> assert(!(list??[eval(t)])); list!t; marked[t] = true }
}

inline push(t) {
    atomic { assert(!in_pool[t]); running[t] = false; in_pool[t] = true; pool[home[t]]!t }
}

/* core_push, in the handler */
inline preempt(t) {
#ifdef ADD_LAST
    push(t);
    add(t)
#else
    add(t);
    push(t)
#endif
}

inline begin(t) {
    atomic { assert(!running[t]); running[t] = true }
}

inline end(t) {
    atomic { locked = locked && t != 0; running[t] = false; ended++ }
}

/* A wait in the kernel. */
inline wait_for_lock() {
    do
    :: !locked -> break
    :: locked && !(stuck && asked) -> stuck = true; asked = true
    od;
    end(WAITER)
}

proctype stream(byte me) {
    byte t;
#ifdef BUSY
    if
    :: me == 1 -> !locked
    :: me == 0
    fi;
#endif
    do
    :: over -> break
    :: atomic { nempty(pool[me]) -> pool[me]?t; in_pool[t] = false }
        if /* meet_requests */
        :: atomic { moves[t] -> moves[t] = false; home[t] = 1 - home[t] } push(t)
        :: else ->
            if
#ifdef NOT_REMOVED
            :: marked[t] -> marked[t] = false
#else
            :: marked[t] -> atomic { !list_lock -> list??eval(t); marked[t] = false }
#endif
            :: !marked[t]
            fi;
            begin(t);
            last[t] = me;
            if
            :: t == WAITER -> wait_for_lock()
            :: t != WAITER && left[t] > 0 -> left[t]--; preempt(t)
            :: t != WAITER && left[t] == 0 -> end(t)
            fi
        fi;
        t = 0
    od
}

/* take_locked: all that are in the list, from the oldest on. `found`: t is the caller's. */
inline take(own) {
    atomic { i = len(list); found = false }
    do
    :: i == 0 -> break
    :: i > 0 ->
        atomic { list?u; i--; from = home[u] }
        if
        :: found || (own && last[u] != 0) -> list!u
        :: else -> /* abt_pool_take: the pool's lock is taken now */
            if
#if defined(NOT_TAKEN)
            :: atomic { in_pool[u] -> found = true; t = u }
            :: !in_pool[u] -> list!u
#elif defined(POPPED_ANYWAY)
            :: atomic { in_pool[u] -> pool[home[u]]??eval(u); in_pool[u] = false; found = true; t = u }
            :: atomic { !in_pool[u] -> found = true; t = u }
#elif defined(POOL_UNCHECKED)
            :: atomic { in_pool[u] -> assert(home[u] == from); pool[from]??eval(u); in_pool[u] = false; found = true; t = u }
            :: !in_pool[u] -> list!u
#else
            :: atomic { in_pool[u] && home[u] == from -> pool[from]??eval(u); in_pool[u] = false; found = true; t = u }
            :: atomic { !(in_pool[u] && home[u] == from) -> list!u }
#endif
            fi
        fi
    od;
    u = 0;
    from = 0
}

proctype relief() {
    byte t, u, i, from;
    bool found;
    do
    :: over && !asked -> break
    :: asked ->
        asked = false;
        if
        :: stuck ->
            stuck = false;
            atomic { !list_lock -> list_lock = true }
            take(true);
#ifndef OWN_ONLY
            if
            :: !found -> take(false)
            :: found
            fi;
#endif
            if
            :: found -> marked[t] = false
#ifdef BUSY /* nobody else runs anything while the waiter waits: the holder is where the relief looks */
            :: !found -> assert(!locked)
#else
            :: !found
#endif
            fi;
            list_lock = false;
            if
            :: found ->
                begin(t);
                if
                :: left[t] > 0 -> left[t]--; preempt(t)
                :: left[t] > 0 && t != 0 -> left[t]--; push(t) /* it yields */
                :: left[t] == 0 -> end(t)
                fi;
                t = 0
            :: !found
            fi
        :: !stuck
        fi
    od
}

proctype mover() {
    do
    :: to_move == 0 -> break
    :: to_move > 0 && !moves[0] -> atomic { moves[0] = true; to_move-- }
    :: to_move > 0 && !moves[1] -> atomic { moves[1] = true; to_move-- }
#if OTHERS > 1
    :: to_move > 0 && !moves[2] -> atomic { moves[2] = true; to_move-- }
#endif
    :: to_move > 0 -> to_move--
    od
}

init {
    byte i, placed;
    bool is_placed[UNITS];
    atomic {
        do
        :: i < WAITER ->
            left[i] = SLICES;
            if
            :: home[i] = 0
            :: home[i] = 1
            fi;
            last[i] = home[i];
            i++
        :: i == WAITER -> break
        od;
        do
        :: placed == UNITS -> break
        :: placed < UNITS && !is_placed[0] -> is_placed[0] = true; placed++; list!0; marked[0] = true; in_pool[0] = true; pool[home[0]]!0
        :: placed < UNITS && !is_placed[1] -> is_placed[1] = true; placed++; list!1; marked[1] = true; in_pool[1] = true; pool[home[1]]!1
#if OTHERS > 1
        :: placed < UNITS && !is_placed[2] -> is_placed[2] = true; placed++; list!2; marked[2] = true; in_pool[2] = true; pool[home[2]]!2
#endif
        :: placed < UNITS && !is_placed[WAITER] -> is_placed[WAITER] = true; placed++; in_pool[WAITER] = true; pool[0]!WAITER
        od;
        i = 0;
        placed = 0;
        run stream(0);
        run stream(1);
        run relief();
        run mover()
    }
    _nr_pr == 1;
    assert(empty(list))
}
