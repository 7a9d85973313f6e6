// SPDX-License-Identifier: Apache-2.0
/* Waiting for any of several locks (src/sync/wait_any.c with mutex.c and rwlock.c): who owns one, and who may wait. Run by
 * run-spin.sh; README.md says what is covered and what is left out. waitany.pml has what the search for a ready object and the
 * nodes are like for all objects.
 *
 * Waiters that each want one of two locks, give it back when they have it, and may give up at a deadline. Each lock is held
 * at first. By default both are mutexes. With -DRW lock 0 is a readers-writer lock, held for reading: waiter 0 wants to
 * write, waiter 1 to read, and a thread that waits for nothing else reads, too: it waits behind the writer. With -DSTAYS as well
 * lock 0 stays held for reading: a reader behind a writer that gives up must not wait for that.
 *
 * A lock's word has WRITING (of a mutex: LOCKED), a count of readers, WAITERS and SPIN. What is finished under SPIN is one
 * step, but for the claims; a fast path is one cas. Readers are let in at once, not batch by batch.
 *
 * Ghosts (not in the code): `valid`, whether a waiter is in wait_once; `inside`, who owns a lock.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   BLIND_CLAIM      an unlocker hands the lock to the first in the list, whether another lock or the deadline has it or not
 *   BLIND_ENLIST     a node is put into the list though the lock is free by then
 *   BLIND_GIVE_UP    who finds a lock free does not ask whether the other was handed to it meanwhile
 *   NO_WITHDRAW      the node in the other list stays there
 *   NO_WAITERS_BIT   a node in the list does not keep unlockers from the fast path
 *   HAND_AND_FREE    an unlocker that hands the lock over frees it as well
 *   NO_LET_IN        (STAYS) a writer that takes its node off does not let in the readers that wait for it alone
 *   NO_FALL_BACK     (RW) the last reader that finds no writer which it can claim does not let them in either
 */
#ifndef LATE /* deadlines that come */
#define LATE 1
#endif

#define WAITERS 2
#define READER  2 /* RW: the thread that waits for lock 0 alone */
#define NOBODY  7

#define me _pid

#define WAITING   0 /* enum wait_claim */
#define WOKEN     1
#define TIMED_OUT 2

byte claim[WAITERS];
bool valid[WAITERS];
byte fired[WAITERS]; /* the lock that was handed over, + 1 */
bool woken[3];
byte late = LATE, finished;
bool begun;

/* The words. */
bool spin[2], writing[2], waits[2];
byte count[2];
/* The lists: 0 and 1 are the locks' writers, 2 lock 0's readers. */
chan list[3] = [3] of { byte };
byte dismissed[3]; /* of each list: a bit for each waiter whose node an unlocker took off in vain */
byte inside[2];    /* writers, and each reader */

#ifdef RW
#define reads(w, o)   ((o) == 0 && (w) != 0)
#define any_waits(o)  (len(list[o]) > 0 || ((o) == 0 && len(list[2]) > 0))
#define is_plain(who) ((who) == READER)
#else
#define reads(w, o)   false
#define any_waits(o)  (len(list[o]) > 0)
#define is_plain(who) false
#endif
#define list_of(w, o) (reads(w, o) -> 2 : (o))
#define is_free(w, o) (!writing[o] && (reads(w, o) -> len(list[o]) == 0 : count[o] == 0))

inline lock(o) {
    atomic { !spin[o] -> spin[o] = true }
}

/* With the word that the lists ask for. */
inline unlock(o) {
#ifdef NO_WAITERS_BIT
    atomic { waits[o] = false; spin[o] = false }
#else
    atomic { waits[o] = any_waits(o); spin[o] = false }
#endif
}

/* waiters_take: SPIN is held. */
inline take(l, who) {
    do
    :: atomic { len(list[l]) == 0 -> who = NOBODY; break }
    :: atomic { len(list[l]) > 0 -> list[l] ? who; assert(is_plain(who) || valid[who]) }
        if
#ifdef RW
        :: is_plain(who) -> break
#endif
#ifdef BLIND_CLAIM
        :: atomic { !is_plain(who) -> claim[who] = WOKEN; break }
#else
        :: atomic { !is_plain(who) && claim[who] == WAITING -> claim[who] = WOKEN; break }
        :: atomic { !is_plain(who) && claim[who] != WAITING -> dismissed[l] = dismissed[l] | (1 << who) }
#endif
        fi
    od
}

/* It was claimed by lock o. */
inline hand(o, who) {
    if
#ifdef RW
    :: is_plain(who) -> skip
#endif
    :: !is_plain(who) -> assert(valid[who]); fired[who] = o + 1
    fi
}

inline wake(who) {
    atomic { assert(!woken[who]); woken[who] = true }
}

#ifdef RW
/* admit_readers: SPIN is held. `taken`: a bit for each. */
inline admit_readers(who, taken) {
    do
    :: take(2, who);
        if
        :: atomic { who == NOBODY -> break }
        :: atomic { who != NOBODY -> hand(0, who); taken = taken | (1 << who); count[0]++ }
        fi
    od
}

inline wake_all(taken) {
    do
    :: atomic { taken & 2 -> taken = taken & ~2; assert(!woken[1]); woken[1] = true }
    :: atomic { taken & 4 -> taken = taken & ~4; assert(!woken[READER]); woken[READER] = true }
    :: !taken -> break
    od
}
#endif

/* --- taking and giving back ------------------------------------------------------------------------------ */

inline own(w, o) {
    atomic {
        assert((reads(w, o) -> !writing[o] && count[o] > 0 : writing[o] && count[o] == 0 && inside[o] == 0));
        inside[o]++
    }
}

/* hand_over of mutex.c; unlock_writer of rwlock.c. */
inline unlock_write(o, who, taken) {
    inside[o]--;
    if
    :: atomic { !spin[o] && !waits[o] -> writing[o] = false }
    :: atomic { !spin[o] && waits[o] -> spin[o] = true }
#ifdef RW
        if
        :: o == 0 -> admit_readers(who, taken)
        :: o != 0
        fi;
#endif
        if
        :: taken == 0 -> take(o, who)
        :: taken != 0 -> who = NOBODY /* unreached: fine */
        fi;
        atomic {
            if
            :: who == NOBODY -> writing[o] = false
            :: who != NOBODY -> hand(o, who)
#ifdef HAND_AND_FREE
                writing[o] = false
#endif
            fi
        }
        unlock(o);
        if
        :: who != NOBODY -> wake(who)
        :: who == NOBODY
        fi;
#ifdef RW
        wake_all(taken)
#endif
    fi
}

#ifdef RW
inline unlock_read(o, who, taken) {
    inside[o]--;
    if
    :: atomic { !spin[o] && (count[o] > 1 || !waits[o]) -> count[o]-- }
    :: atomic { !spin[o] && count[o] == 1 && waits[o] -> spin[o] = true }
        take(o, who); /* unlock_last_reader */
        if
        :: atomic { who != NOBODY -> hand(o, who); writing[o] = true }
        :: who == NOBODY ->
#ifndef NO_FALL_BACK
            admit_readers(who, taken)
#endif
        fi;
        count[o]--;
        unlock(o);
        if
        :: who != NOBODY -> wake(who)
        :: who == NOBODY
        fi;
        wake_all(taken)
    fi
}
#endif

inline give_back(w, o, who, taken) {
    if
#ifdef RW
    :: reads(w, o) -> unlock_read(o, who, taken)
#endif
    :: !reads(w, o) -> unlock_write(o, who, taken)
    fi
}

/* --- thrum_wait_any -------------------------------------------------------------------------------------- */

/* thrum_mutex_try_lock and the like: a cas, or with SPIN. */
inline attempt(o) {
    atomic {
        !spin[o] ->
        ready = is_free(me, o);
        if
        :: ready && reads(me, o) -> count[o]++ /* unreached: fine */
        :: ready && !reads(me, o) -> writing[o] = true
        :: !ready
        fi
    }
}

inline enlist(o) {
    atomic {
        !spin[o] ->
#ifdef BLIND_ENLIST
        ready = false;
#else
        ready = is_free(me, o);
#endif
        if
        :: !ready -> list[list_of(me, o)] ! me
#ifndef NO_WAITERS_BIT
            waits[o] = true
#endif
        :: ready
        fi
    }
}

#define is_dismissed(o) (dismissed[list_of(me, o)] & (1 << me))

/* queue_leave, forget_reader; forget_writer. */
inline withdraw(o) {
#ifdef NO_WITHDRAW
    skip
#else
    if
    :: atomic { is_dismissed(o) -> dismissed[list_of(me, o)] = dismissed[list_of(me, o)] & ~(1 << me) }
    :: atomic { !spin[o] && !is_dismissed(o) -> spin[o] = true; list[list_of(me, o)] ?? eval(me) }
#if defined(RW) && !defined(NO_LET_IN)
        if
        :: o == 0 && !reads(me, o) && !writing[o] && len(list[o]) == 0 -> admit_readers(who, taken)
        :: o != 0 || reads(me, o) || writing[o] || len(list[o]) > 0
        fi;
#endif
        unlock(o);
#ifdef RW
        wake_all(taken)
#endif
    fi
#endif
}

active [WAITERS] proctype waiter() {
    byte enlisted, who, taken, o;
    bool ready, again;

    begun;
begin:
    attempt(0);
    if
    :: atomic { ready -> o = 0; goto has_it }
    :: !ready
    fi;
    attempt(1);
    if
    :: atomic { ready -> o = 1; goto has_it }
    :: !ready
    fi;

    atomic { claim[me] = WAITING; fired[me] = 0; valid[me] = true; enlisted = 0; again = false }
    enlist(0);
    if
    :: ready -> goto give_up
    :: !ready -> enlisted = 1
    fi;
    enlist(1);
    if
    :: ready -> goto give_up
    :: !ready -> enlisted = 2
    fi;
    if /* unit_block_until */
    :: atomic { woken[me] -> woken[me] = false }
    :: atomic { late > 0 && claim[me] == WAITING -> late--; claim[me] = TIMED_OUT }
    fi;
    goto withdraw_all;

give_up: /* a lock looks free */
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
    :: enlisted > 0 && fired[me] != 1 -> withdraw(0)
    :: enlisted == 0 || fired[me] == 1
    fi;
    if
    :: enlisted > 1 && fired[me] != 2 -> withdraw(1)
    :: enlisted < 2 || fired[me] == 2
    fi;
    atomic {
        valid[me] = false;
        who = 0;
        if
        :: again -> again = false; goto begin
        :: !again && claim[me] == TIMED_OUT -> goto over
        :: !again && claim[me] == WOKEN -> assert(fired[me] != 0); o = fired[me] - 1
        fi
    }
has_it:
    own(me, o);
    give_back(me, o, who, taken);
over:
    atomic { finished++; enlisted = 0; who = 0; taken = 0; o = 0; ready = false; again = false }
}

/* --- the others ------------------------------------------------------------------------------------------ */

#ifdef RW

active proctype reader() {
    byte who, taken;

    begun;
    atomic {
        assert(me == READER);
        !spin[0] ->
        if
        :: is_free(READER, 0) -> count[0]++; goto has_it
        :: !is_free(READER, 0) -> list[2] ! READER; waits[0] = true
        fi
    }
    atomic { woken[READER] -> woken[READER] = false }
has_it:
    own(READER, 0);
    unlock_read(0, who, taken);
    atomic { finished++; who = 0; taken = 0 }
}

#ifdef STAYS
#define THREADS 4
#define STAYING 1
#else

active proctype holder_reading() {
    byte who, taken;
    begun;
    unlock_read(0, who, taken);
    atomic { finished++; who = 0; taken = 0 }
}

#define THREADS 5
#define STAYING 0
#endif

#else

active proctype holder() {
    byte who, taken;
    begun;
    unlock_write(0, who, taken);
    atomic { finished++; who = 0; taken = 0 }
}

#define THREADS 4
#define STAYING 0
#endif

active proctype other_holder() {
    byte who, taken;
    begun;
    unlock_write(1, who, taken);
    atomic { finished++; who = 0; taken = 0 }
}

/* All have ended, and the locks are free, but for the one that stays held. */
active proctype verdict() {
    atomic {
        timeout;
        assert(finished == THREADS);
        assert(!writing[0] && !writing[1] && count[0] == STAYING && !waits[0] && !waits[1]);
        assert(inside[0] == STAYING && inside[1] == 0 && !any_waits(0) && !any_waits(1))
    }
}

init {
    atomic {
#ifdef RW
        count[0] = 1;
#else
        writing[0] = true;
#endif
        writing[1] = true;
        inside[0] = 1;
        inside[1] = 1;
        begun = true
    }
}
