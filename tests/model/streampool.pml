// SPDX-License-Identifier: Apache-2.0
/* A stream's own pool: abt/pool_list.c, with abt_pools_sleep() and wake_sleeper() of abt/sleepers.c. Run by run-spin.sh; README.md says
 * what is covered and what is left out.
 *
 * `stream` becomes the pool's owner, pushes, takes a thread out and pushes it again as one that yields does, and gives the pool up
 * or not. `pusher` is another kernel thread; `taker` takes out all that is pushed, and sleeps while there is nothing.
 * A store may stay in a store buffer: the owner's to `busy` until it releases it, or a membarrier; the pusher's to the inbox until
 * the inbox's lock is released.
 *
 * Checked: one at a time is at the list; no thread is lost, or taken twice; a taker that sleeps is woken.
 *
 * Without membarrier no pool has an owner.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_MEMBARRIER     the revoker has a fence for itself only
 *   READ_FIRST        the owner reads whose the pool is before it says that it is busy, and not again
 *   NO_WAIT           the revoker does not wait until the owner is not busy
 *   BUSY_FIRST        the revoker looks whether it is before it takes the ownership away
 *   GIVEN_UP_UNLOCKED the owner gives the pool up while a revoker has the lock, and another stream becomes its owner
 *   PUSH_BLIND        a pusher that finds no owner pushes into the list although a stream has become the owner since
 *   LOOK_UNLOCKED     the taker that is about to sleep looks at the inbox without its lock
 *   LOOK_FIRST        ... or before it has said that it sleeps
 * ... or, with --cycles, find an execution that never ends:
 *   NO_INBOX          one that takes does not empty the inbox
 */
#ifndef OWN_PUSHES
#define OWN_PUSHES 2
#endif
#ifndef PUSHES
#define PUSHES 2
#endif
#define ALL (OWN_PUSHES + PUSHES)

bool owned;           /* the stream's worker is the owner */
bool was_shared;
bool busy, late_busy; /* ... in the store buffer: a store of 1 */
bool locked, inbox_locked;
byte list, inbox, late_inbox;
bool sleepers, woken;
byte at_list;         /* a ghost, as the next */
byte taken;

inline lock() {
    atomic { !locked -> locked = true }
}
inline lock_inbox() {
    atomic { !inbox_locked -> inbox_locked = true }
}
inline unlock_inbox() {
    d_step { inbox = inbox + late_inbox; late_inbox = 0; inbox_locked = false }
}

inline come() {
    d_step { assert(at_list == 0); at_list++ }
}
inline go() {
    at_list--
}

inline empty_inbox() {
    lock_inbox();
    list = list + inbox;
    inbox = 0;
    unlock_inbox()
}

/* wake_sleeper, under its lock */
inline wake_if(seen) {
    if
    :: seen ->
        d_step {
            if
            :: sleepers -> sleepers = false; woken = true
            :: else
            fi
        }
    :: else
    fi
}

/* Another than the owner, or one that is not the owner any more. */
inline begin_shared() {
    lock();
    if
    :: owned ->
        was_shared = true;
#ifdef BUSY_FIRST
        !busy;
#endif
        owned = false;
#ifndef NO_MEMBARRIER
        d_step { busy = busy || late_busy; late_busy = false };
#endif
#if !defined(NO_WAIT) && !defined(BUSY_FIRST)
        !busy
#endif
        skip
    :: else
    fi;
    come()
}
inline end_shared() {
    go();
    locked = false
}

/* is_own: the caller, the stream, is the owner, and at the list. */
inline begin_own() {
    is_own = owned;
    if
    :: is_own ->
        late_busy = true;
#ifndef READ_FIRST
        is_own = owned;
#endif
        if
        :: is_own -> come()
        :: else -> d_step { late_busy = false; busy = false }
        fi
    :: else
    fi
}
inline end_own() {
    go();
    d_step { late_busy = false; busy = false }
}
inline look_at_inbox() {
#ifndef NO_INBOX
    if
    :: inbox > 0 -> empty_inbox()
    :: else
    fi
#else
    skip
#endif
}

inline push_under_lock() {
    come();
    look_at_inbox();
    list++;
    seen = sleepers;
    go();
    locked = false
}

/* push_inbox, push_shared */
inline push_elsewhere() {
    seen_owner = owned;
    if
    :: seen_owner
    :: else ->
        lock();
#ifdef PUSH_BLIND
        seen_owner = false;
#else
        seen_owner = owned;
#endif
        if
        :: seen_owner -> locked = false
        :: else -> push_under_lock()
        fi
    fi;
    if
    :: seen_owner ->
        lock_inbox();
        late_inbox++;
        seen = sleepers;
        unlock_inbox()
    :: else
    fi;
    wake_if(seen)
}

/* The store buffer drains at any time. */
active proctype buffers() {
end_buffers:
    do
    :: atomic { late_busy -> busy = true; late_busy = false }
    :: atomic { late_inbox > 0 -> inbox = inbox + late_inbox; late_inbox = 0 }
    od
} /* unreached: fine */

active proctype stream() {
    bool is_own, seen;
    byte pushes;

    /* abt_pool_own */
    lock();
    if
    :: !was_shared -> owned = true
    :: else
    fi;
    locked = false;
    do
    :: pushes < OWN_PUSHES ->
        pushes++;
        begin_own();
        if
        :: is_own ->
            look_at_inbox();
            list++;
            end_own();
            seen = sleepers;
            wake_if(seen)
        :: else -> /* it is not the owner any more */
            lock();
            push_under_lock();
            wake_if(seen)
        fi;
        /* one that yields: out, and in again */
        begin_own();
        if
        :: is_own ->
            look_at_inbox();
            if
            :: list > 0 -> list--; list++
            :: else
            fi;
            end_own()
        :: else
        fi
    :: else -> break
    od;
    /* abt_pool_own_no_more; or it stays */
    if
    :: owned ->
#ifndef GIVEN_UP_UNLOCKED
        lock();
#endif
        owned = false;
#ifdef GIVEN_UP_UNLOCKED
        /* the next owner's kernel thread is at the list at once */
        come();
        go()
#else
        locked = false
#endif
    :: true
    fi
}

active proctype pusher() {
    bool seen, seen_owner;
    byte pushes;

    do
    :: pushes < PUSHES -> pushes++; push_elsewhere()
    :: else -> break
    od
}

active proctype taker() {
    byte found;

    do
    :: taken == ALL -> break
    :: else ->
        if
        :: list + inbox > 0 ->
            begin_shared();
            look_at_inbox();
            if
            :: list > 0 -> list--; taken++
            :: else
            fi;
            end_shared()
        :: else ->
            /* abt_pools_sleep, abt_pool_is_empty_for_sure */
            woken = false;
#ifndef LOOK_FIRST
            sleepers = true;
#endif
            begin_shared();
#ifndef LOOK_UNLOCKED
            empty_inbox();
#endif
            found = list + inbox;
            end_shared();
#ifdef LOOK_FIRST
            sleepers = true;
#endif
            if
            :: found > 0 -> sleepers = false /* give_up; a waker may have been first */
            :: else -> woken
            fi
        fi
    od
}

active proctype verdict() {
    atomic { timeout; assert(taken == ALL && list == 0 && inbox == 0 && late_inbox == 0) }
}
