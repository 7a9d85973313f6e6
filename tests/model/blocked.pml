// SPDX-License-Identifier: Apache-2.0
/* Workers that no tick reaches: src/preempt/watch.h, with relief.c. Run by run-spin.sh; README.md says what is covered and what is
 * left out.
 *
 * A holder has a lock, and is preempted with it. Others block the signal, come to the lock, and wait for it in the kernel: their
 * worker takes no tick. So does a worker that relieves, when it runs one of them. The monitor sleeps while no thread is
 * preempted, and else looks which workers stand still.
 *
 * Checked: all end.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   UNWATCHED    the monitor does not look
 *   BLIND_SLEEP  it looks whether a thread is preempted before it says that it sleeps
 *   ONE_RELIEF   no worker more is made that relieves
 *   RELIEF_ONCE  (SLICES > 0) a worker that relieves runs one thread each time that it is asked, and the monitor asks once
 */
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef SLICES /* that the holder takes more */
#define SLICES 3
#endif
#define UNITS   (1 + WAITERS)
#define RUNNERS (2 + WAITERS) /* the worker is 0, the first that relieves is 1 */

chan fresh = [UNITS] of { byte }; /* that have never run */
chan queue = [UNITS] of { byte }; /* that were preempted, and are counted in `away` */
bool locked = true, asleep, poked, asked;
bool stuck[RUNNERS], held[RUNNERS];
bool was_preempted[UNITS];
byte away, ended, left = SLICES, reliefs = 1;

#define over (ended == UNITS)

/* preempt_for: preempt_enter with watch_tell. Who takes it counts it out. */
inline preempt(u) {
    away++;
    if
    :: atomic { asleep -> asleep = false; poked = true }
    :: !asleep
    fi;
    queue!u
}

/* Unit 0 is the holder. */
inline run_unit(u, id) {
    if
    :: u == 0 && left > 0 -> left--; preempt(u)
    :: u == 0 && left == 0 -> locked = false; ended++
    :: u != 0 && !was_preempted[u] -> was_preempted[u] = true; preempt(u)
    :: u != 0 ->
        stuck[id] = true; /* with the signal blocked */
        !locked;
        atomic { stuck[id] = false; held[id] = false; ended++ } /* a tick comes */
    fi
}

active proctype worker() {
    byte u;
    do
    :: atomic { len(fresh) > 0 -> fresh?u } run_unit(u, 0)
    :: atomic { len(queue) > 0 -> queue?u; away-- } run_unit(u, 0)
    :: over -> break
    od
}

proctype relief(byte id) {
    byte u, w;
    bool again;
sleeping:
    if
    :: asked -> asked = false
    :: over && !asked -> goto gone
    fi;
relieve:
    again = false;
    w = 0;
    do
    :: w == RUNNERS -> break
    :: w < RUNNERS ->
        if
        :: atomic { w != id && held[w] && len(queue) > 0 -> queue?u; away-- }
            run_unit(u, id);
#ifndef RELIEF_ONCE
            again = again || held[w]
#endif
        :: else
        fi;
        w++
    od;
    if
    :: again -> goto relieve
    :: !again -> goto sleeping
    fi;
gone:
    skip
}

/* watch_look, and look_at_all. That it looks again and again is one look whenever there is something new. */
active proctype monitor() {
    byte i;
    bool is_new;
sleeping:
#ifdef BLIND_SLEEP
    if
    :: away > 0 -> goto looking
    :: away == 0
    fi;
    asleep = true;
#else
    asleep = true;
    if
    :: away > 0 -> asleep = false; goto looking
    :: away == 0
    fi;
#endif
    if
    :: poked -> poked = false
    :: over -> goto gone
    fi;
looking:
#ifdef UNWATCHED
    over
#else
    do
    :: over -> break
    :: away == 0 && !over -> goto sleeping
    :: away > 0 && !over ->
        if /* one more look changes nothing before this */
        :: over
        :: away == 0
        :: (stuck[0] && !held[0]) || (stuck[1] && !held[1]) || (stuck[2] && !held[2]) ||
#if WAITERS > 1
               (stuck[3] && !held[3]) ||
#endif
#ifdef RELIEF_ONCE
               false
#else
               (!asked && held[0] && len(queue) > 0)
#endif
            i = 0;
            do
            :: i < RUNNERS ->
                if
                :: stuck[i] && !held[i] -> atomic { held[i] = stuck[i]; asked = true }
                :: stuck[i] && held[i] -> asked = true
                :: !stuck[i]
                fi;
                i++
            :: i == RUNNERS -> break
            od;
#ifndef ONE_RELIEF
            is_new = true; /* some_relieve */
            i = 1;
            do
            :: i <= reliefs ->
                if
                :: !held[i] -> is_new = false
                :: held[i]
                fi;
                i++
            :: i > reliefs -> break
            od;
            if
            :: is_new && reliefs + 1 < RUNNERS -> reliefs++; run relief(reliefs)
            :: !(is_new && reliefs + 1 < RUNNERS)
            fi
#endif
        fi
    od
#endif
    ;
gone:
    skip
}

init {
    byte i = 0;
    atomic {
        do
        :: i < UNITS -> fresh!i; i++
        :: i == UNITS -> break
        od;
        run relief(1)
    }
}
