// SPDX-License-Identifier: Apache-2.0
/* Waiting for any of several objects (src/sync/wait_any.c): the claims. Run by run-spin.sh; README.md says what is
 * covered and what is left out.
 *
 * Waiters that each want one thing from one of two objects; a try at all, a node in each one's list, waking or the
 * deadline, and off all lists again. By default the objects are a semaphore each, and poster i posts to object i; one
 * that is tagged (THREAD) is a thread's end, which keeps no list but has a single place for who waits. With -DTRADE
 * they are channels without a store, the waiters alone are there, and each offers on both: what one sends another
 * receives; with -DSAME as well all offer both on one channel.
 *
 * What is finished under an object's SPIN is one step, but for the claims.
 *
 * Ghosts (not in the code): `valid`, whether a waiter is in wait_once; had, posted, sent, received.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   BLIND_CLAIM      who takes a node off a list does not ask whether another object has its owner
 *   BLIND_ENLIST     a node is put into the list though the object is ready by then
 *   BLIND_GIVE_UP    who finds an object ready does not ask whether another has claimed him meanwhile
 *   NO_RETRY         he takes that one's permit for granted, though it may be gone
 *   NO_WITHDRAW      the nodes in the other lists stay there
 *   NO_DONE          (THREAD) he does not wait until the thread that ends has done with him
 * and, searched for cycles:
 *   SECOND_ALONE     he does not try the first one again
 *   UNORDERED        (TRADE) two who have found each other's node begin anew, for ever
 *   ONE_BY_ONE       (TRADE, SAME) likewise: the nodes for one object do not all come into its lists at a time
 */
#ifndef WAITERS
#ifdef THREAD /* nobody else may join it */
#define WAITERS 1
#else
#define WAITERS 2
#endif
#endif
#ifndef POSTS /* of each of the two posters */
#define POSTS 1
#endif
#ifndef LATE /* deadlines that come */
#define LATE 1
#endif

#define me     _pid
#define NOBODY WAITERS

#define WAITING   0 /* enum wait_claim */
#define WOKEN     1
#define TIMED_OUT 2

byte claim[WAITERS];
bool valid[WAITERS], woken[WAITERS];
byte fired[WAITERS];  /* the item by which it was claimed, + 1 */
bool blocked[WAITERS];
byte late = LATE, finished;
byte dismissed[4];    /* of each list: a bit for each waiter whose node a waker took off in vain */

#ifdef TRADE

/* Lists 2 * c and 2 * c + 1 are channel c's senders and receivers. */
chan list[4] = [WAITERS] of { byte };
bool spin[2];
byte sent[2], received[2];

/* Item i of waiter w is on channel i (with SAME: both are on channel 0); even waiters send on channel 0 and receive on
 * channel 1, odd ones the other way round. */
#ifdef SAME
#define channel_of(w, i) 0
#define side(w, i)       (i)
#else
#define channel_of(w, i) (i)
#define side(w, i)       (((w) + (i)) % 2)
#endif
#define own_list(w, i)   (2 * channel_of(w, i) + side(w, i))
#define other_list(w, i) (2 * channel_of(w, i) + 1 - side(w, i))
#define object(i)        channel_of(me, i)

#else

chan list[2] = [WAITERS] of { byte };
bool spin[2];
byte permits[2], posted, had;
#define own_list(w, i) (i)
#define object(i)      (i)
#ifdef THREAD /* object 1: no permits but an end, which stays */
bool ended;
byte joiner = NOBODY;
bool watch_done;
#endif

#endif

inline lock(o) {
    atomic { !spin[o] -> spin[o] = true }
}

inline unlock(o) {
    spin[o] = false
}

/* waiters_take: SPIN is held */
inline take(l, who) {
    do
    :: atomic { len(list[l]) == 0 -> who = NOBODY; break }
    :: atomic { len(list[l]) > 0 -> list[l] ? who; assert(valid[who]) }
        if
#ifdef BLIND_CLAIM
        :: atomic { true -> claim[who] = WOKEN; break }
#else
        :: atomic { claim[who] == WAITING -> assert(valid[who]); claim[who] = WOKEN; break }
        :: atomic { claim[who] != WAITING -> assert(valid[who]); dismissed[l] = dismissed[l] | (1 << who) }
#endif
        fi
    od
}

inline wake(who) {
    atomic { assert(valid[who] && !woken[who]); woken[who] = true }
}

#ifdef TRADE

inline count_trade(w, i) {
    if
    :: side(w, i) == 0 -> sent[channel_of(w, i)]++
    :: else -> received[channel_of(w, i)]++ /* unreached: fine */
    fi
}

/* It is in no list: so nobody claims it meanwhile. */
inline attempt(i) {
    lock(object(i));
    take(other_list(me, i), who);
    if
    :: atomic { who == NOBODY -> unlock(object(i)); ready = false }
    :: atomic {
            who != NOBODY ->
            fired[who] = (channel_of(who, 0) == object(i) && own_list(who, 0) == other_list(me, i) -> 1 : 2);
            count_trade(me, i);
            unlock(object(i));
            ready = true
        }
        wake(who)
    fi;
    who = 0
}

inline enlist(i) {
    atomic {
        !spin[object(i)] ->
        ready = len(list[other_list(me, i)]) > 0;
        if
        :: !ready -> list[own_list(me, i)] ! me
        :: else
        fi
    }
}

/* Those for one object at a time, with SAME. */
inline enlist_both() {
    atomic {
        !spin[0] ->
        ready = len(list[other_list(me, 0)]) > 0 || len(list[other_list(me, 1)]) > 0;
        if
        :: !ready -> list[own_list(me, 0)] ! me; list[own_list(me, 1)] ! me
        :: else
        fi
    }
}

#define take_it(i) count_trade(me, i)

#else

inline attempt(i) {
    atomic {
        !spin[i] ->
        ready = permits[i] > 0;
        permits[i] = permits[i] - ready
    }
}

inline enlist(i) {
    atomic {
        !spin[i] ->
#ifdef BLIND_ENLIST
        ready = false;
#else
        ready = permits[i] > 0;
#endif
        if
        :: !ready -> list[i] ! me
        :: else
        fi
    }
}

#define take_it(i) skip

#endif

#define is_dismissed(i) (dismissed[own_list(me, i)] & (1 << me))

/* Not where it was claimed from: the node is in no list, and the object may be gone. */
inline withdraw(i) {
#ifdef NO_WITHDRAW
    skip
#else
    if
    :: atomic { is_dismissed(i) -> dismissed[own_list(me, i)] = dismissed[own_list(me, i)] & ~(1 << me) } /* dismiss.pml */
    :: atomic { !spin[object(i)] && !is_dismissed(i) -> list[own_list(me, i)] ?? eval(me) }
    fi
#endif
}

#ifdef THREAD /* is the second object */

inline attempt_thread() {
    ready = ended
}

inline enlist_thread() {
    atomic {
        ready = ended;
        if
        :: !ready -> joiner = me; watch_done = false
        :: else
        fi
    }
}

inline withdraw_thread() {
    if
    :: atomic { joiner == me -> joiner = NOBODY }
#ifdef NO_DONE
    :: joiner != me
#else
    :: joiner != me && watch_done
#endif
    fi
}

#define attempt_second  attempt_thread()
#define enlist_second   enlist_thread()
#define withdraw_second withdraw_thread()
#else
#define attempt_second  attempt(1)
#define enlist_second   enlist(SECOND)
#define withdraw_second withdraw(SECOND)
#endif

#ifdef UNORDERED
#define FIRST (me == 1 -> 1 : 0)
#else
#define FIRST 0
#endif
#define SECOND (1 - FIRST)

active [WAITERS] proctype waiter() {
    byte enlisted; /* how many */
    byte who;
    bool ready, again;

begin:
    attempt(0);
    if
    :: ready -> goto end
    :: !ready
    fi;
try_second:
    attempt_second;
    if
    :: ready -> goto end
    :: !ready
    fi;

    atomic { claim[me] = WAITING; fired[me] = 0; valid[me] = true; enlisted = 0; again = false }
#if defined(SAME) && !defined(ONE_BY_ONE)
    enlist_both();
#else
    enlist(FIRST);
    if
    :: ready -> goto give_up
    :: !ready -> enlisted = 1
    fi;
    enlist_second;
#endif
    if
    :: ready -> goto give_up
    :: !ready -> enlisted = 2
    fi;
    blocked[me] = true;
end_blocked: /* unit_block_until */
    if
    :: atomic { woken[me] -> woken[me] = false; blocked[me] = false }
    :: atomic { late > 0 && claim[me] == WAITING -> late--; claim[me] = TIMED_OUT; blocked[me] = false }
    fi;
    goto withdraw_all;

give_up: /* an object looks ready */
    if
#ifdef BLIND_GIVE_UP
    :: atomic { true -> claim[me] = WOKEN; again = true }
#else
    :: atomic { claim[me] == WAITING -> claim[me] = WOKEN; again = true }
    :: atomic { claim[me] != WAITING && woken[me] -> woken[me] = false }
#endif
    fi;

withdraw_all:
    if
    :: enlisted > 0 && fired[me] != FIRST + 1 -> withdraw(FIRST)
    :: enlisted == 0 || fired[me] == FIRST + 1
    fi;
    if
    :: enlisted > 1 && fired[me] != SECOND + 1 -> withdraw_second
    :: enlisted < 2 || fired[me] == SECOND + 1
    fi;
    atomic {
        valid[me] = false;
        if
        :: again ->
            again = false;
#ifdef NO_RETRY
            permits[enlisted] = permits[enlisted] - 1;
            goto end
#elif defined(SECOND_ALONE)
            goto try_second
#else
            goto begin
#endif
        :: !again && claim[me] == TIMED_OUT -> goto over
        :: !again && claim[me] == WOKEN ->
            assert(fired[me] != 0);
            take_it(fired[me] - 1)
        fi
    }
end:
#ifndef TRADE
    had++;
#endif
over:
    atomic { finished++; enlisted = 0; who = 0; ready = false; again = false }
}

#ifdef TRADE

#if WAITERS > 2
#define even_blocked (blocked[0] || blocked[2])
#else
#define even_blocked blocked[0]
#endif

/* What one sends another receives. Who is alone may wait for ever; two who could trade do not. */
active proctype verdict() {
    atomic {
        timeout;
        assert(sent[0] == received[0] && sent[1] == received[1]);
#if WAITERS > 1
        assert(!even_blocked || !blocked[1])
#endif
    }
}

#else

/* thrum_sem_post; for a thread its end */
active [2] proctype poster() {
    byte n, who;
#define o (_pid - WAITERS)
    do
    :: n == POSTS -> break
    :: n < POSTS -> n++;
#ifdef THREAD
        if
        :: o == 1 ->
            atomic { who = joiner; joiner = NOBODY; ended = true; posted++; n = POSTS }
            if
            :: who == NOBODY
            :: who != NOBODY -> /* thread_ended */
                if
                :: atomic { claim[who] == WAITING -> assert(valid[who]); claim[who] = WOKEN; fired[who] = 2 }
                    watch_done = true;
                    wake(who)
                :: atomic { claim[who] != WAITING -> assert(valid[who]) }
                    atomic { assert(valid[who]); watch_done = true }
                fi
            fi;
            break
        :: o == 0
        fi;
#endif
        lock(o);
        take(o, who);
        atomic {
            posted++;
            if
            :: who == NOBODY -> permits[o]++
            :: else -> fired[who] = o + 1
            fi;
            unlock(o)
        }
        if
        :: who == NOBODY
        :: who != NOBODY -> wake(who)
        fi
    od;
    atomic { finished++; n = 0; who = 0 }
#undef o
}

/* Each permit was had once, or is still there, and nobody waits where there is one. */
active proctype verdict() {
    atomic {
        timeout;
#ifdef THREAD
        assert(finished == WAITERS + 2)
#else
        assert(posted == had + permits[0] + permits[1]);
        assert(finished == WAITERS + 2 || permits[0] + permits[1] == 0)
#endif
    }
}

#endif
