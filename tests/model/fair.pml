// SPDX-License-Identifier: Apache-2.0
/* How a worker divides its time (src/sched/pool/fair.h; pick_out_of_turn and pick_preferred in src/sched/pick.c).
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * One worker, and time in steps of FAIR_US. What its order prefers always has a unit, which runs for one step. Each of the
 * two sources has one now and then, which runs for up to LONGEST steps; the short units that share a turn (fair_shares) are
 * one here.
 *
 * Checked, each as a bucket that the turns fill and other time empties: a source has at most half of the time, and one turn
 * more; the order has at least a third, but for two turns of each; a source that has a unit waits for at most three turns.
 *
 * Each -D<VARIANT> leaves out one thing. The search must then fail:
 *   NO_DEBT    a source is due again after one step, however long its unit ran
 *   NO_SHIFT   a turn of the other source counts as time that the others have had */
#ifndef LONGEST
#define LONGEST 4
#endif

#define NOTHING 2

int due[2];   /* steps from now on; 0: it is due */
int lag[2];   /* what a source has had beyond half */
int behind;   /* what the order has had too little of a third */
int waits[2]; /* so long a source has had a unit in vain */
bool has[2];
bool first;

inline pass(steps, runs) {
    byte s;
    for (s : 0 .. 1) {
        if
        :: s == runs -> lag[s] = lag[s] + steps; waits[s] = 0
        :: else ->
            lag[s] = (lag[s] > steps -> lag[s] - steps : 0);
            waits[s] = (has[s] -> waits[s] + steps : 0)
        fi;
        due[s] = (due[s] > steps -> due[s] - steps : 0)
    }
    s = 0;
    if
    :: runs == NOTHING -> behind = (behind > 2 * steps -> behind - 2 * steps : 0)
    :: else -> behind = behind + steps
    fi;
    assert(lag[0] <= LONGEST + 1 && lag[1] <= LONGEST + 1);
    assert(behind <= 4 * LONGEST);
    assert(waits[0] <= 3 * LONGEST && waits[1] <= 3 * LONGEST)
}

/* fair_settle: what `source` gave has run for so many steps, which have passed. `left` is what the other had left to wait
 * when the turn began. */
inline settle(source, steps, left) {
#ifdef NO_DEBT
    due[source] = 1;
#else
    due[source] = steps;
#endif
#ifndef NO_SHIFT
    due[1 - source] = left;
#endif
}

active proctype worker() {
    byte source, steps;
    int left;
    do
    :: atomic {
        if
        :: has[0] = true
        :: skip
        fi;
        if
        :: has[1] = true
        :: skip
        fi;
        first = !first;
        source = first;
        if
        :: has[source] && due[source] == 0
        :: !(has[source] && due[source] == 0) ->
            source = 1 - source;
            if
            :: has[source] && due[source] == 0
            :: else -> source = NOTHING
            fi
        fi;
        steps = 1;
        if
        :: source == NOTHING
        :: source != NOTHING ->
            select(steps : 1 .. LONGEST);
            left = due[1 - source];
            has[source] = false
        fi;
        pass(steps, source);
        if
        :: source == NOTHING
        :: source != NOTHING -> settle(source, steps, left)
        fi;
        source = 0;
        steps = 0;
        left = 0
       }
    od
} /* unreached: fine */
