// SPDX-License-Identifier: Apache-2.0
/* The channel (src/sync/channel.c): sending, receiving, deadlines, closing, and destroying it as soon as that is known.
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * What is done under SPIN is one step, but for the claims, which others' timers compete with. A value has a number of its
 * own.
 *
 * Ghosts (not in the code): `valid`, whether a waiter's node is still on its stack; `users`, how many may still use the
 * channel: whoever is the last of them destroys it, though the one who closes it may not have returned yet; `gone`;
 * `sent` and `received`.
 *
 * -DCLOSES_LAST: it is closed when all senders are done. Otherwise at any time, which would end a wait for ever.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   BLIND_CLAIM   who takes a waiter off a list does not ask whether its deadline has come
 *   NO_LEAVE      whoever gives up leaves its node in the list
 *   BLIND_LEAVE   it takes it off without having SPIN
 *   NO_CLOSING    others may come in between two batches of closing
 *   CLOSED_FIRST  the channel is closed before all who wait have been claimed
 *   WAKE_FIRST    they are woken before it is closed
 *   NO_REFILL     who takes an element from the store leaves the sender waiting that its place would do for
 *   NO_HAND_OVER  who sends puts the element into the store although somebody waits for it
 *   NO_LOOK_AGAIN who has given SPIN back to get memory does not look at the channel again
 */
#ifndef SENDERS
#define SENDERS 2
#endif
#ifndef RECEIVERS
#define RECEIVERS 1
#endif
#ifndef SENDS /* of each sender */
#define SENDS 2
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef LATE /* deadlines that come */
#define LATE 1
#endif
#ifndef PAUSES /* between batches of those who are claimed for closing */
#define PAUSES 1
#endif
#ifndef BLOCKS /* 1: there is no bound; each element needs a block, for which SPIN is given back */
#define BLOCKS 0
#endif

#define PARTIES (SENDERS + RECEIVERS)
#define NOBODY  PARTIES

#define WAITING   0 /* enum wait_claim */
#define WOKEN     1
#define TIMED_OUT 2

#define OK    0 /* result */
#define EPIPE 1
#define LATER 2 /* ETIMEDOUT */

chan store = [SENDERS * SENDS + 1] of { byte };
chan senders = [SENDERS] of { byte }; /* lists of waiters */
chan receivers = [RECEIVERS] of { byte };
bool spin, closing, closed; /* the word */
byte spare;                 /* blocks */
byte claim[PARTIES], element[PARTIES], result[PARTIES];
bool valid[PARTIES], woken[PARTIES], dismissed[PARTIES];
byte sent, received; /* a bit for each value */
byte users = PARTIES, parties_done, late = LATE;
byte senders_done;
bool closer_done, gone;

#define me _pid

#define touch assert(!gone)
#define HAS_STORE (CAPACITY > 0 || BLOCKS)

#if BLOCKS
#define is_full false
#else
#define is_full (len(store) == CAPACITY)
#endif

/* channel_lock: who finds CLOSING tries again later */
inline lock() {
    atomic { !spin && !closing -> touch; spin = true }
}

#define unlock touch; spin = false

/* waiters_take */
inline take(list, who) {
    do
    :: atomic { len(list) == 0 -> who = NOBODY; break }
    :: atomic { len(list) > 0 -> list ? who; assert(valid[who]) }
        if
#ifdef BLIND_CLAIM
        :: atomic { true -> claim[who] = WOKEN; break }
#else
        :: atomic { claim[who] == WAITING -> assert(valid[who]); claim[who] = WOKEN; break }
        :: atomic { claim[who] != WAITING -> assert(valid[who]); dismissed[who] = true } /* dismiss.pml */
#endif
        fi
    od
}

inline wake(who) {
    atomic {
        assert(valid[who] && claim[who] == WOKEN);
        woken[who] = true
    }
}

/* SPIN is held */
inline wait_in(list) {
    atomic { claim[me] = WAITING; valid[me] = true; result[me] = OK; list ! me; unlock }
    if
    :: atomic { woken[me] -> woken[me] = false; valid[me] = false }
    :: atomic { late > 0 && claim[me] == WAITING -> late--; claim[me] = TIMED_OUT }
#ifdef BLIND_LEAVE
        atomic {
            if
            :: list ?? [eval(me)] -> list ?? eval(me)
            :: else
            fi
        }
#elif !defined(NO_LEAVE)
        if
        :: dismissed[me] -> dismissed[me] = false
        :: atomic { !spin && !dismissed[me] -> touch; list ?? eval(me) }
        fi;
#endif
        atomic { valid[me] = false; result[me] = LATER }
    fi
}

/* Whoever is the last to use it destroys it. */
inline leave_it() {
    atomic {
        users--;
        if
        :: users == 0 -> gone = true
        :: else
        fi;
        parties_done++
    }
}

active [SENDERS] proctype sender() {
    byte n, who, value;
    do
    :: n == SENDS -> break
    :: atomic { n < SENDS -> value = me * SENDS + n; n++ }
again:
        lock();
#ifndef CLOSES_LAST
        if
        :: atomic { closed -> unlock } break
        :: !closed
        fi;
#endif
        who = NOBODY;
#ifndef NO_HAND_OVER
        take(receivers, who);
#endif
#if BLOCKS
        if
        :: atomic { who == NOBODY && spare == 0 -> unlock } /* make_room */
#ifdef NO_LOOK_AGAIN
            atomic { !spin -> touch; spin = true; spare++ }
#else
            lock();
            atomic { spare++; unlock }
            goto again
#endif
        :: who != NOBODY || spare > 0
        fi;
#endif
        if
        :: atomic { who != NOBODY -> element[who] = value; result[who] = OK; unlock }
            wake(who);
            result[me] = OK
#if HAS_STORE
        :: atomic {
                who == NOBODY && !is_full ->
                store ! value;
#if BLOCKS
                spare--;
#endif
                unlock
            }
            result[me] = OK
#endif
#if !BLOCKS
        :: atomic { who == NOBODY && is_full -> element[me] = value }
            wait_in(senders)
#endif
        fi;
        atomic {
            if
            :: result[me] == OK -> sent = sent | (1 << value)
            :: else
            fi;
            value = 0;
            who = 0
        }
    od;
    senders_done++;
    leave_it()
}

/* Of one sender's values each is later than the one before. */
inline got(value) {
    atomic {
        assert(!(received & (1 << (value))));
#if RECEIVERS == 1
        assert(!((received >> ((value) + 1)) & ((1 << (SENDS - 1 - (value) % SENDS)) - 1)));
#endif
        received = received | (1 << (value))
    }
}

active [RECEIVERS] proctype receiver() {
    byte who, value;
    bool stored;
    do
    :: lock();
#if HAS_STORE
        atomic {
            stored = len(store) > 0;
            if
            :: stored -> store ? value
            :: else
            fi
        }
#endif
        who = NOBODY;
#if !BLOCKS && !defined(NO_REFILL)
        take(senders, who);
#endif
        if
#if HAS_STORE
#if !BLOCKS
        :: atomic { stored && who != NOBODY -> store ! element[who]; result[who] = OK; unlock }
            wake(who);
            got(value)
#endif
        :: atomic { stored && who == NOBODY -> unlock }
            got(value)
#else
        :: atomic { who != NOBODY -> value = element[who]; result[who] = OK; unlock }
            wake(who);
            got(value)
#endif
        :: atomic { !stored && who == NOBODY && closed -> unlock }
            break
        :: !stored && who == NOBODY && !closed ->
            wait_in(receivers);
            if
            :: result[me] == OK -> got(element[me])
            :: result[me] == LATER
            :: result[me] == EPIPE -> break
            fi
        fi;
        atomic { value = 0; who = 0; stored = false }
    od;
    atomic { value = 0; who = 0; stored = false }
    leave_it()
}

/* A batch is over: SPIN is given back for a moment. */
inline pause() {
#ifdef CLOSED_FIRST
    atomic { touch; closed = true; spin = false }
#elif defined(NO_CLOSING)
    atomic { touch; spin = false }
#else
    atomic { touch; closing = true; spin = false }
#endif
    atomic { !spin -> touch; spin = true }
}

/* All of a batch may have given up. */
inline claim_all(list) {
    do
    :: pauses > 0 -> pauses--;
        pause()
    :: take(list, who);
        if
        :: who == NOBODY -> break
        :: who != NOBODY ->
            result[who] = EPIPE;
#ifdef WAKE_FIRST
            wake(who)
#else
            told ! who
#endif
        fi
    od
}

active proctype closer() {
    byte who, pauses = PAUSES;
    chan told = [PARTIES] of { byte };
#ifdef CLOSES_LAST
    senders_done == SENDERS;
#endif
    lock();
    claim_all(receivers);
#if !BLOCKS && !defined(CLOSES_LAST)
    claim_all(senders);
#endif
    atomic { touch; closing = false; closed = true; spin = false }
    do
    :: atomic { told ? [who] -> told ? who }
        wake(who)
    :: atomic { empty(told) -> who = 0; pauses = 0; break }
    od;
    closer_done = true
}

/* What was sent was received. */
active proctype verdict() {
    atomic {
        parties_done == PARTIES && closer_done;
        assert(sent == received);
        assert(len(store) == 0 && len(senders) == 0 && len(receivers) == 0)
    }
}
