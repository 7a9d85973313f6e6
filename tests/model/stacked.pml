// SPDX-License-Identifier: Apache-2.0
/* Schedulers that threads run, and that wait for work in a list (src/sched/pool/stacked.c).
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * `pusher`s put something into the one pool that all `waiter`s look at. A waiter takes what is there, and waits when there is
 * nothing. Its wait may end by itself, and it may leave for good: it is cancelled, or its function returns. To wake
 * somebody is to push a thread to another pool, and comes back to the same list. The first waiter may have no turn when it has
 * been woken: it is behind one that computes.
 *
 * Ghosts (not in the code): `there`, whether a waiter's node is on its stack; `left`, that it looks no more.
 *
 * Checked: nobody touches a node that is gone; in the end there is nothing in the pool while somebody waits who was not woken; and
 * nobody waits for ever with the lock.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NOT_LOOKED    who is in the list does not look at the pool once more
 *   LOOK_FIRST    it does so before it is seen in the list: there is no fence in between
 *   COUNT_FIRST   who pushes reads the count before the push is seen: likewise
 *   WAKES_ONE     a push wakes one of them, and no other
 *   READS_AFTER   the next that was claimed is read from one that was woken already
 *   BLIND_REMOVE  who has seen something takes itself off without claiming its wait
 *   NOT_REMOVED   whose wait has ended by itself stays in the list
 *   WAKE_LOCKED   somebody is woken under the lock */
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif

#define WAITING   0 /* enum wait_state */
#define WOKEN     1
#define TIMED_OUT 2

byte pool, count;
bool locked;
bool listed[WAITERS], there[WAITERS], goes_on[WAITERS], waits[WAITERS];
byte claim[WAITERS], claimed[WAITERS];
bool has_no_turn;

#define acquire atomic { !locked -> locked = true }
#define release locked = false

/* claim_all(), and then the pushes that waking is, of which only the lock matters here. */
inline wake(one) {
    acquire;
    one = 0;
    do
    :: one == WAITERS -> break
    :: one < WAITERS && !listed[one] -> one++
    :: one < WAITERS && listed[one] ->
        assert(there[one]);
        if
        :: atomic { claim[one] == WAITING -> claim[one] = WOKEN }
            listed[one] = false;
            count--;
            claimed[one] = _pid + 1;
#ifdef WAKES_ONE
            break
#endif
        :: claim[one] != WAITING
        fi;
        one++
    od;
#ifndef WAKE_LOCKED
    release;
#endif
    one = 0;
    do
    :: one == WAITERS -> break
    :: one < WAITERS && claimed[one] != _pid + 1 -> one++
    :: one < WAITERS && claimed[one] == _pid + 1 ->
#ifndef READS_AFTER
        assert(there[one]); /* its `next` */
        claimed[one] = 0;
#endif
        if
        :: count > 0 -> acquire; release
        :: count == 0
        fi;
        goes_on[one] = true;
#ifdef READS_AFTER
        assert(there[one]);
        claimed[one] = 0;
#endif
        one++
    od
#ifdef WAKE_LOCKED
    ;
    release
#endif
}

active[WAITERS] proctype waiter() {
    bool seen, ends, was_woken;
    do
    :: atomic { pool > 0 -> pool-- } /* its function takes it, and runs it */
    :: break /* and returns, or the thread is cancelled */
    :: pool == 0 -> /* thrum_sched_idle */
        seen = false;
        was_woken = false;
        goes_on[_pid] = false;
        claim[_pid] = WAITING;
        there[_pid] = true;
#ifdef LOOK_FIRST
        seen = pool > 0;
#endif
        acquire;
        listed[_pid] = true;
        count++;
        release;
#if !defined(LOOK_FIRST) && !defined(NOT_LOOKED)
        seen = pool > 0; /* after a fence */
#endif
#ifdef BLIND_REMOVE
        if
        :: seen -> goto off
        :: else
        fi;
#endif
        if
        :: atomic { seen && claim[_pid] == WAITING -> claim[_pid] = TIMED_OUT }
        :: !seen || claim[_pid] != WAITING ->
            waits[_pid] = true;
            if
            :: ends = true
            :: ends = false
            fi;
end_wait:
            if
            :: goes_on[_pid] && !(_pid == 0 && has_no_turn) -> was_woken = true
            :: atomic { ends && claim[_pid] == WAITING -> claim[_pid] = TIMED_OUT } /* it ends by itself */
            fi;
            waits[_pid] = false
        fi;
        if
        :: was_woken
        :: else ->
#ifdef BLIND_REMOVE
        off:
#endif
#ifndef NOT_REMOVED
            acquire;
            if
            :: listed[_pid] -> listed[_pid] = false; count--
            :: else
            fi;
            release
#else
            skip
#endif
        fi;
        there[_pid] = false
    od
}

active proctype pusher() {
    byte one, pushes = PUSHES;
    bool somebody;
    if
    :: has_no_turn = true
    :: has_no_turn = false
    fi;
    do
    :: pushes > 0 ->
        pushes--;
#ifdef COUNT_FIRST
        somebody = count > 0;
        pool++;
#else
        pool++; /* and a fence */
        somebody = count > 0;
#endif
        if
        :: somebody -> wake(one)
        :: else
        fi
    :: pushes == 0 -> break
    od
}

/* Everything has come to rest. */
active proctype judge() {
    byte i;
    timeout ->
        i = 0;
        do
        :: i < WAITERS -> assert(pool == 0 || !waits[i] || goes_on[i]); i++
        :: i == WAITERS -> break
        od
}
