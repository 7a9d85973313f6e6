// SPDX-License-Identifier: Apache-2.0
/* Relief for workers that wait in the kernel for what a preempted thread has: src/preempt/relief.c. Run by run-spin.sh;
 * README.md says what is covered and what is left out.
 *
 * A holder of a lock and others were preempted, and are in a queue; behind or before them are newcomers, who come to the
 * lock in a tasklet: their worker waits in the kernel, and at its ticks asks for relief. The last who was preempted makes a
 * newcomer at its end, on the worker that runs it. With BEHIND the holder is in the queue of one more worker, which computes
 * and does not give way.
 *
 * Checked: nobody waits for ever, all end, and nobody is run by two; with one worker, too, that ticks and looks that change
 * nothing do not go on for ever.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   ANYBODY   the relief runs newcomers
 *   FIRST     it looks at the first in the queue only
 *   KEEPS     it does not hand over what came to its own queue
 *   ONCE      who waits asks at its first tick only
 *   UNMARKED  it is asked, but not told for whom
 *   OWN_ONLY  (with BEHIND) it looks only where the one that waits would look first, and not where that would steal
 */
#ifndef WORKERS
#define WORKERS 1
#endif
#ifndef OTHERS /* that were preempted, besides the holder */
#define OTHERS 1
#endif
#ifndef NEWCOMERS
#define NEWCOMERS 1
#endif
#ifndef SLICES /* that one may take more */
#define SLICES 1
#endif
#define UNITS (1 + OTHERS + NEWCOMERS + 1) /* with the one that is made */
#define MADE (UNITS - 1)
#define was_preempted(u) ((u) <= OTHERS)

chan queue = [UNITS] of { byte };
chan own = [1] of { byte }; /* the relief's */
#ifdef BEHIND
chan others = [1] of { byte }; /* that worker's, in which there are preempted ones only */
#define holders others
#else
#define holders queue
#endif
bool locked = true;         /* by unit 0 */
bool running[UNITS];
byte left[UNITS], ended;
bool stuck[WORKERS];
bool asked;

/* It ends, or is preempted; `makes_in`: the queue of who runs it. */
inline run_preempted(u, makes_in) {
    atomic { assert(!running[u]); running[u] = true }
    if
    :: atomic { left[u] > 0 -> left[u]--; running[u] = false; queue!u }
    :: true ->
        if
        :: u == 0 -> locked = false
        :: else
        fi;
        if
        :: u == OTHERS -> makes_in!MADE
        :: u != OTHERS
        fi;
        ended++
    fi
}

active [WORKERS] proctype worker() {
    byte u;
    bool has_asked;
looking:
    if
    :: atomic { nempty(queue) -> queue?u }
    :: atomic { ended == UNITS -> goto over }
    fi;
    if
    :: was_preempted(u) -> run_preempted(u, queue)
    :: else ->
        assert(!running[u]);
        running[u] = true;
        has_asked = false;
waiting:
        if
        :: !locked -> ended++
#ifdef ONCE
        :: locked && !has_asked -> has_asked = true;
#else
        :: locked && !(stuck[_pid] && asked) ->
#endif
#ifndef UNMARKED
            stuck[_pid] = true;
#endif
            asked = true;
            goto waiting
        fi
    fi;
    goto looking;
over:
    skip
}

active proctype relief() {
    byte u, w, passed, count;
    bool found;
sleeping:
    if
    :: asked -> asked = false
    :: atomic { !asked && ended == UNITS -> goto over }
    fi;
    w = 0;
next_worker:
    if
    :: w == WORKERS -> goto hand_over
    :: atomic { w < WORKERS && stuck[w] -> stuck[w] = false }
    :: w < WORKERS && !stuck[w] -> w++; goto next_worker
    fi;
    atomic { count = len(queue); passed = 0; found = false }
#if defined(BEHIND) && !defined(OWN_ONLY)
    if /* which queue is the first is drawn */
    :: atomic { nempty(others) -> others?u; found = true }
    :: true
    fi;
#endif
    do
    :: found || passed >= count -> break
    :: atomic { !found && passed < count && empty(queue) -> break }
#if defined(ANYBODY)
    :: atomic { !found && passed < count && nempty(queue) -> queue?u; found = true }
#elif defined(FIRST)
    :: atomic { !found && passed < count && nempty(queue) ->
            queue?<u>;
            if
            :: was_preempted(u) -> queue?u; found = true
            :: !was_preempted(u) -> passed = count
            fi
       }
#else
    :: atomic { !found && passed < count && nempty(queue) ->
            queue?u;
            found = was_preempted(u)
       }
        if
        :: found
        :: atomic { !found -> queue!u; passed++ }
        fi
#endif
    od;
#if defined(BEHIND) && !defined(OWN_ONLY)
    if
    :: atomic { !found && nempty(others) -> others?u; found = true }
    :: found || empty(others)
    fi;
#endif
    if
    :: found && was_preempted(u) -> run_preempted(u, own)
    :: found && !was_preempted(u) -> locked == false; ended++ /* unreached: fine */
    :: !found
    fi;
    w++;
    goto next_worker;
hand_over:
#ifndef KEEPS
    if
    :: atomic { nempty(own) -> own?u; queue!u }
    :: empty(own)
    fi;
#endif
    goto sleeping;
over:
    skip
}

init {
    byte i, placed;
    bool is_placed[UNITS];
    atomic {
        do
        :: i <= OTHERS -> left[i] = SLICES; i++
        :: i > OTHERS -> break
        od;
        do
        :: placed == MADE -> break
        :: placed < MADE && !is_placed[0] -> is_placed[0] = true; holders!0; placed++
        :: placed < MADE && !is_placed[1] -> is_placed[1] = true; queue!1; placed++
        :: placed < MADE && !is_placed[2] -> is_placed[2] = true; queue!2; placed++
#if OTHERS + NEWCOMERS > 2
        :: placed < MADE && !is_placed[3] -> is_placed[3] = true; queue!3; placed++
#endif
        od
    }
}
