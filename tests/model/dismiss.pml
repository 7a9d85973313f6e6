// SPDX-License-Identifier: Apache-2.0
/* Who gives up, and who ends what it waited for and frees the object at once (src/sync/waiters.h): claiming, dismissing,
 * coming back. Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * The waiters have been listed in one object; the deadline of each may come at any time. A waker takes them all, batch by
 * batch, as thrum_cond_broadcast and a barrier's last one do, and frees the object; whoever it woke, or, with -DBARRIER,
 * whoever has been told that it took part, may free it, too.
 *
 * Ghosts (not in the code): `there`, whether a waiter's node is still on its stack; `gone`, the object is freed.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_DISMISS    who cannot be claimed is only taken off the list (and comes back to find that out)
 *   BLIND_DISMISS the waker says GONE without asking whether the waiter is on its way
 *   NO_GONE       it calls one that is, but does not wait for the answer
 *   NO_LAST_WORD  the waiter that has answered does not wait for the waker to have seen that
 *   NO_CALL       a waiter that is on its way waits for SPIN alone
 *   BLIND_BACK    a waiter comes back without asking whether it has been dismissed
 *   NO_HOLD       (BARRIER) who took part, though its deadline came, is let go before the waker is done
 *   NO_STAY       (BARRIER) who finds its round over between two batches goes at once
 */
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef BATCH
#define BATCH 1
#endif

#define WAITING   0 /* enum wait_state */
#define WOKEN     1
#define TIMED_OUT 2

#define LISTED    0 /* enum waiter_fate */
#define BACK      1
#define CALLED    2
#define GONE      3
#define DISMISSED 4

#define me _pid

bool spin;
bool listed[WAITERS] = true, there[WAITERS] = true, woken[WAITERS];
byte claim[WAITERS], fate[WAITERS];
#ifdef BARRIER /* under SPIN */
bool fewer; /* somebody is not counted any more, so this round is never over */
bool over;  /* it is: the generation is another one */
#endif
bool gone;

#define touch      assert(!gone)
#define look(node) assert(there[node])

active [WAITERS] proctype waiter() {
    bool part;
    if
    :: atomic { woken[me] -> part = true; goto out }
    :: atomic { claim[me] == WAITING -> claim[me] = TIMED_OUT } /* the deadline has come */
    fi;
    /* waiter_return */
#ifdef BLIND_BACK
    fate[me] = BACK;
#else
    if
    :: atomic { fate[me] == LISTED -> fate[me] = BACK }
    :: atomic { fate[me] != LISTED -> goto dismissed }
    fi;
#endif
    do
    :: atomic { !spin -> touch; spin = true; break }
#ifndef NO_CALL
    :: atomic { spin -> touch } /* word_try_lock has looked, and found it taken */
        if
        :: atomic { fate[me] == CALLED -> fate[me] = GONE; goto dismissed }
        :: fate[me] != CALLED
        fi
#endif
    od;
#ifdef BARRIER
    if
    :: over ->
#ifdef NO_STAY
        atomic { touch; listed[me] = false; spin = false; part = true; goto out }
#else
        atomic { touch; fate[me] = LISTED; spin = false; goto dismissed } /* waiter_stay */
#endif
    :: !over
    fi;
#endif
    atomic {
        touch;
        listed[me] = false;
#ifdef BARRIER
        fewer = true
#endif
    }
    atomic { touch; spin = false; goto out }
dismissed:
#ifndef NO_LAST_WORD
    fate[me] == DISMISSED;
#endif
#ifdef BARRIER
    part = true;
#endif
out:
    there[me] = false;
    atomic {
        if
        :: part -> gone = true /* all have come, or it was broadcast to: it may free it */
        :: !part
        fi;
        part = false
    }
}

active proctype waker() {
    byte i, batch;
    bool mine[WAITERS], held[WAITERS];
    atomic { !spin -> spin = true }
#ifdef BARRIER
    if
    :: atomic { fewer -> spin = false; goto done }
    :: atomic { !fewer -> over = true }
    fi;
#endif
    do
    :: atomic { i < WAITERS && !listed[i] -> i++ }
    :: atomic { i < WAITERS && listed[i] && batch == BATCH -> touch; spin = false } /* another batch */
        atomic { !spin -> touch; spin = true; batch = 0 }
    :: atomic { i < WAITERS && listed[i] && batch < BATCH -> look(i); listed[i] = false; batch++ }
        if
        :: atomic { claim[i] == WAITING -> look(i); claim[i] = WOKEN; mine[i] = true }
        :: atomic { claim[i] == TIMED_OUT -> look(i) }
#ifndef NO_DISMISS
            /* waiter_hold */
#ifdef BLIND_DISMISS
            atomic { look(i); fate[i] = GONE }
#else
            if
            :: atomic { fate[i] == LISTED -> look(i); fate[i] = GONE }
            :: atomic { fate[i] != LISTED -> look(i) }
                atomic { look(i); fate[i] = CALLED }
#ifndef NO_GONE
                atomic { fate[i] == GONE -> look(i) }
#endif
            fi;
#endif
#if defined(BARRIER) && !defined(NO_HOLD)
            held[i] = true
#else
            atomic { look(i); fate[i] = DISMISSED }
#endif
#endif
        fi
    :: atomic { i == WAITERS -> touch; spin = false; i = 0; batch = 0; break }
    od;
    /* waiters_wake */
    do
    :: atomic { i < WAITERS && mine[i] -> look(i); woken[i] = true; mine[i] = false; i++ }
#ifdef BARRIER
    :: atomic { i < WAITERS && held[i] -> look(i); fate[i] = DISMISSED; held[i] = false; i++ }
#endif
    :: atomic { i < WAITERS && !mine[i] && !held[i] -> i++ }
    :: atomic { i == WAITERS -> i = 0; gone = true; break }
    od;
#ifdef BARRIER
done:
    skip
#endif
}
