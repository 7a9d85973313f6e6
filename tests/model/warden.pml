// SPDX-License-Identifier: Apache-2.0
/* The warden (src/kthread/retain.c): of the parked threads one at a time sleeps until something is due for the idle
 * ones, does it, and sleeps again. Here are its role, the lock, the chores of each policy, and what they use of the
 * idle list (idle.c), of the parked thread's loop (thrum_kthread_idle) and of ending a thread (kthread_end).
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * Kernel threads park and run jobs that end at once or never; clients start jobs, join them or leave them alone, and
 * end idle threads. One step of the model is one atomic operation or one system call of the code, or what it does
 * under a lock in one go.
 *
 * Time is counted in ticks. A tick comes only when nobody can do anything: who wants to wait for it says so (`paused`).
 * So whatever is overdue at a tick is overdue because nobody looks, not because the machine is slow, and that is what
 * `all_is_well` asserts then and at the end. Times are what is left or has passed, not dates: the states stay few, and
 * a thread may wake for ever.
 *
 * Ghosts (not in the code): `owner`, as in handoff.pml; `at_chores`; `ending`, those who wait for a thread's end.
 *
 * -DPOLICY= which one is on:
 *   1  thread_seconds   the sum of their idle ticks stays about BOUND
 *   2  pressure         all end when memory is short, LOOK ticks later at the latest
 *
 * Each -D<VARIANT> leaves out one thing that the role needs. The search must then fail:
 *   NO_BUSY          the role is taken while the warden is at its chores
 *   NO_AGAIN         the warden does not look whether somebody came meanwhile
 *   NO_LISTED_AGAIN  who lists a thread does not tell a busy warden
 *   NO_LISTED        nor look for one at all
 *   LISTED_FIRST     it looks before the thread is listed
 *   NO_GIVE_UP       a warden that is handed a job keeps the role
 *   NO_HAND_ON       it wakes nobody to take it
 *   NO_CHAIN         who was woken to take it, and is handed a job, does not wake another
 *   BLIND_GIVE_UP    the role is given up without looking, under the lock, whether somebody has taken it
 *   POKE_FIRST       the other is woken before the role is free
 *   LOOK_FIRST       the thread looks for the role before it stores SLEEPING
 *   NO_LEAVE         a warden that ends by itself keeps the role
 *   ENDS_ITSELF      it does not see that the thread that it took off the list is itself
 *   NO_TAKE_OVER     a warden that sleeps for too long is left in the role (policy 1)
 *   POKE_UNLOCKED    a thread is poked without the idle list's lock
 *   CHORES_LOCKED    the lock is held during the chores
 *   NO_FORK_RESET    a fork's child takes over what it finds (with -DFORK)
 *   HANDLER          a signal handler ends idle threads while the joiner that it interrupts holds the lock. Nothing is
 *                    left out here: the code lets it happen; see retain_listed
 *
 * With -DFORK all this happens in a fork's child: the parent's warden, and whoever held the lock, is gone.
 */
#ifndef POLICY
#define POLICY 1
#endif
#ifndef KERNELS
#define KERNELS 2
#endif
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef JOBS /* of each client */
#define JOBS 3
#endif
#ifndef CULLS /* idle threads that each client ends */
#define CULLS 0
#endif
#ifndef LISTED_AT_FIRST /* 1: all kernel threads are idle already, and have not parked yet */
#define LISTED_AT_FIRST 0
#endif
#ifndef MISHAPS /* wake-ups without a cause; bounded, or no lost wake-up would ever show */
#define MISHAPS 1
#endif

/* Ticks. DELAY is delay(): how soon something may be due for a thread that parks now. */
#define BOUND 2
#define LOOK  3
#if POLICY == 1
#define DELAY BOUND
#else
#define DELAY LOOK
#endif
#define NEVER 15
#define OLD   6 /* ages are not counted any further */

#define NOTHING  0 /* enum post */
#define SLEEPING 1
#define JOB      2
#define QUIT     3
#define LEAVE    4

#define UNBORN 0 /* owner */
#define LISTED 1
#define HANDS  2
#define LIVING 3 /* a job's life, until its result is taken */
#define FREED  4

#define NOBODY KERNELS
#define GONE   (KERNELS + 1) /* a thread of the parent's, in a fork's child */

byte post[KERNELS], owner[KERNELS] = LISTED_AT_FIRST;
bool born[KERNELS] = LISTED_AT_FIRST;
bool detached[KERNELS], ended[KERNELS]; /* the job */
bool parked[KERNELS];                   /* asleep on `post`... */
byte left[KERNELS];                     /* ... for so many ticks, 0 for ever */
bool exited[KERNELS];
byte age[KERNELS]; /* ticks since idle_since */
bool list_held;    /* the idle list's lock; only who pokes holds it for longer than a step */

byte warden = NOBODY, until = NEVER; /* until: ticks from now */
bool busy, again;
bool held; /* the lock of these */

bool paused[CLIENTS + 1];
bool memory_short;
byte short_since; /* ticks, or LOOK */
byte mishaps = MISHAPS;
byte at_chores, ending;

#define touch(d)  assert(owner[d] != FREED && owner[d] != UNBORN)
#define is_needed (warden == NOBODY || until_is_late)
#ifdef NO_TAKE_OVER
#define until_is_late false
#else
#define until_is_late (until > DELAY)
#endif

#define in_list(d)   (owner[d] == LISTED)
#define age_if(d)    (in_list(d) -> age[d] : 0)
#define one_if(d)    (in_list(d) -> 1 : 0)
#define is_timed(d)  (parked[d] && left[d] > 0)
#define is_unborn(d) (owner[d] == UNBORN)
#if KERNELS == 2
#define none_listed   (!in_list(0) && !in_list(1))
#define sum_of_ages   (age_if(0) + age_if(1))
#define count         (one_if(0) + one_if(1))
#define oldest        (age_if(0) > age_if(1) -> age_if(0) : age_if(1))
#define anybody_timed (is_timed(0) || is_timed(1))
#else
#define none_listed   (!in_list(0) && !in_list(1) && !in_list(2))
#define sum_of_ages   (age_if(0) + age_if(1) + age_if(2))
#define count         (one_if(0) + one_if(1) + one_if(2))
#define oldest_of_two (age_if(0) > age_if(1) -> age_if(0) : age_if(1))
#define oldest        (oldest_of_two > age_if(2) -> oldest_of_two : age_if(2))
#define anybody_timed (is_timed(0) || is_timed(1) || is_timed(2))
#endif

/* Within a step: takes a thread that is so old, anyone of them, off the list. There is one. */
inline take_off(x, so_old) {
    if
    :: in_list(0) && age[0] >= so_old -> x = 0
    :: in_list(1) && age[1] >= so_old -> x = 1
#if KERNELS > 2
    :: in_list(2) && age[2] >= so_old -> x = 2
#endif
    fi;
    owner[x] = HANDS;
    age[x] = 0
}

/* Within a step: kthread_post, and the wake-up (handoff.pml has them apart) */
inline post_to(d, what, new_owner) {
    assert(owner[d] == HANDS && (post[d] == NOTHING || post[d] == SLEEPING));
    owner[d] = new_owner;
    post[d] = what;
    parked[d] = false;
    left[d] = 0
}

/* kthread_end: libc's join, registry_free */
inline end_it(d) {
    atomic { post_to(d, QUIT, HANDS); ending++ }
    atomic { exited[d] -> ending--; owner[d] = FREED; d = 0 }
}

/* Under the list's lock: poke's compare-and-swap; its wake-up */
inline poke(x) {
    atomic {
        touch(x);
        if
        :: post[x] == SLEEPING -> post[x] = NOTHING; hit = true
        :: else
        fi
    }
    atomic {
        if
        :: hit -> parked[x] = false; left[x] = 0
        :: else
        fi;
        hit = false;
#ifndef POKE_UNLOCKED
        list_held = false;
#endif
        x = 0
    }
}

#ifdef POKE_UNLOCKED
#define hold_list skip
#else
#define hold_list list_held = true
#endif

active [KERNELS] proctype kernel() {
    byte x, next, got;
    bool hit, pokes;
#define me _pid
end_unborn:
    born[me];

park: /* thrum_kthread_idle */
#ifndef LOOK_FIRST
    if
    :: atomic { post[me] == NOTHING -> post[me] = SLEEPING }
    :: post[me] > SLEEPING -> goto posted
    fi;
#endif

watch: /* retain_watch */
    atomic { /* take_role */
        !held ->
        if
#ifdef NO_BUSY
        :: warden == me || is_needed ->
#else
        :: !busy && (warden == me || is_needed) ->
#endif
            warden = me;
            busy = true;
            at_chores++;
            assert(at_chores == 1)
#ifdef CHORES_LOCKED
            ; held = true
#endif
        :: else ->
            if
            :: busy -> again = true
            :: else
            fi;
            goto sleep
        fi
    }

chores: /* do_chores */
#if POLICY == 1
    do /* end_excess */
    :: atomic { !list_held && sum_of_ages > BOUND -> next = oldest }
        if /* idle_pop_since */
        :: atomic { !list_held && !none_listed && oldest >= next -> take_off(x, next) }
            if
#ifndef ENDS_ITSELF
            :: x == me -> goto leaves
#endif
            :: else -> end_it(x)
            fi
        :: !list_held && (none_listed || oldest < next)
        fi
    :: atomic { !list_held && sum_of_ages <= BOUND -> next = 0; break }
    od;
#else
    if /* relieve_pressure */
    :: atomic { memory_short -> memory_short = false; short_since = 0 }
        do
        :: atomic { !list_held && !none_listed -> take_off(x, 0) }
            if
            :: x == me -> next = LEAVE; x = 0
            :: else -> end_it(x)
            fi
        :: atomic { !list_held && none_listed -> break }
        od;
        if
        :: next == LEAVE -> goto leaves
        :: else
        fi
    :: !memory_short
    fi;
#endif

    atomic { /* next_due. No less than a tick, as in the code no less than LOOK_AT_MOST_EVERY_NS. */
        !list_held ->
#if POLICY == 1
        next = ((count == 0 || sum_of_ages > BOUND) -> (count == 0 -> LOOK : 0) : (BOUND - sum_of_ages) / count);
#else
        next = LOOK;
#endif
        next = (next < 1 -> 1 : next)
    }
    atomic { /* chores_done */
#ifdef CHORES_LOCKED
        held = false;
#else
        !held ->
#endif
        if
#ifndef NO_AGAIN
        :: again -> again = false; next = 0; goto chores
#endif
        :: else ->
#ifdef NO_AGAIN
            again = false;
#endif
            until = next;
            busy = false;
            at_chores--;
            next = (next == NEVER -> 0 : next)
        fi
    }

sleep:
#ifdef LOOK_FIRST
    if
    :: atomic { post[me] == NOTHING -> post[me] = SLEEPING }
    :: post[me] != NOTHING
    fi;
#endif
    if
    :: atomic { post[me] == SLEEPING -> parked[me] = true; left[me] = next; next = 0 } /* the kernel compares */
    :: atomic { post[me] != SLEEPING -> next = 0 }
    fi;
end_asleep:
    if
    :: !parked[me]
#if MISHAPS > 0
    :: atomic { parked[me] && mishaps > 0 -> mishaps--; parked[me] = false; left[me] = 0 }
#endif
    fi;
    if
    :: post[me] == NOTHING -> goto park
    :: post[me] == SLEEPING -> goto watch
    :: post[me] > SLEEPING
    fi;

posted:
    atomic { got = post[me]; post[me] = NOTHING; goto wake }
leaves: /* it has taken itself off the list */
    atomic { got = LEAVE; next = 0; x = 0; at_chores-- }
#ifdef CHORES_LOCKED
    held = false;
#endif
#ifdef NO_LEAVE
    goto woken;
#endif

wake: /* retain_wake */
    if
#ifdef NO_GIVE_UP
    :: warden == me
#else
    :: warden == me ->
#ifdef POKE_FIRST
        pokes = true;
        goto poke_one;
#endif
give_up: /* give_up_role */
        atomic {
            !held ->
            if
#ifdef BLIND_GIVE_UP
            :: true ->
#else
            :: warden == me ->
#endif
                warden = NOBODY;
                until = NEVER;
                busy = false;
                again = false;
#ifndef NO_HAND_ON
                pokes = true
#endif
            :: else /* somebody has taken it over just now. unreached: fine (policy 2) */
            fi
        }
#endif
#ifdef NO_CHAIN
    :: warden == NOBODY
#else
    :: atomic { warden == NOBODY -> pokes = true }
#endif
    :: warden != me && warden != NOBODY
    fi;
#ifdef POKE_FIRST
    goto woken;
poke_one:
#endif
    if
    :: atomic { pokes && !list_held && !none_listed -> hold_list; /* idle_poke(NULL): the first */
            if
            :: in_list(0) -> x = 0
            :: in_list(1) -> x = 1
#if KERNELS > 2
            :: in_list(2) -> x = 2
#endif
            fi;
            pokes = false
        }
        poke(x)
    :: atomic { pokes && !list_held && none_listed -> pokes = false }
    :: !pokes
    fi;
#ifdef POKE_FIRST
    if
    :: warden == me -> goto give_up
    :: else
    fi;
#endif

woken:
    if
    :: atomic { got == LEAVE -> exited[me] = true; owner[me] = FREED } goto gone
    :: atomic { got == QUIT -> exited[me] = true } goto gone
    :: atomic {
            got == JOB ->
            got = 0;
            assert(owner[me] == LIVING);
            if /* the job */
            :: true -> goto end_never
            :: true
            fi
        }
    fi;

    if /* keep */
    :: atomic { detached[me] && !list_held -> detached[me] = false; owner[me] = LISTED
            ; goto park
        }
    :: atomic { !detached[me] -> ended[me] = true; goto park }
    fi;
end_never:
    false; /* unreached: fine */
gone:
    atomic { got = 0; x = 0 }
#undef me
} /* unreached: fine */

/* retain_listed. Signals are open in a join: with -DHANDLER one comes while the joiner holds the lock, and its handler
 * calls fork, which finds no room and ends idle threads (make_room in cache/process.c, kthread_cull). If one of them is
 * the warden, or about to look for the role, it waits for the lock and the joiner for its end. */
inline retain_listed(d) {
    atomic {
        !held ->
        if
#ifdef NO_LISTED_AGAIN
        :: busy -> skip
#else
        :: busy -> again = true
#endif
        :: !busy && is_needed -> pokes = true
        :: else
        fi
#ifdef HANDLER
        ; held = true
#endif
    }
#ifdef HANDLER
    if
    :: atomic { !list_held && !none_listed -> take_off(x, 0) } end_it(x)
    :: true
    fi;
    held = false;
#endif
}

active [CLIENTS] proctype client() {
    byte n, d, x, culls;
    bool hit, pokes;
#define me (_pid - KERNELS)
#ifdef FORK
    atomic { /* retain_fork_child, idle_fork_child */
        warden = GONE;
        if
        :: until = NEVER
        :: until = 0
        :: until = 1
        fi;
        if
        :: true
        :: busy = true
        fi;
        if
        :: true
        :: held = true
        fi;
#ifndef NO_FORK_RESET
        warden = NOBODY;
        until = NEVER;
        busy = false;
        held = false
#endif
    }
#endif
    do
    :: n == JOBS && culls == CULLS -> break
    :: n < JOBS || culls < CULLS -> paused[me] = true; !paused[me]
    :: n < JOBS ->
        atomic { /* kthread_start. Whether an idle one will do depends on its kind, too. */
            !list_held -> /* a new thread does not need the lock; it waits here all the same */
            n++;
            if
            :: in_list(0) && !(warden == 0 && busy) -> d = 0; owner[d] = HANDS
            :: in_list(1) && !(warden == 1 && busy) -> d = 1; owner[d] = HANDS
#if KERNELS > 2
            :: in_list(2) && !(warden == 2 && busy) -> d = 2; owner[d] = HANDS
#endif
#if !LISTED_AT_FIRST
            :: is_unborn(0) -> d = 0; owner[d] = HANDS
            :: !is_unborn(0) && is_unborn(1) -> d = 1; owner[d] = HANDS
#if KERNELS > 2
            :: !is_unborn(0) && !is_unborn(1) && is_unborn(2) -> d = 2; owner[d] = HANDS
#endif
#endif
            :: else -> goto next
            fi;
            age[d] = 0;
            born[d] = true;
            if
            :: detached[d] = true
            :: true
            fi
        }
        if
        :: atomic { detached[d] -> post_to(d, JOB, LIVING); goto next }
        :: atomic { !detached[d] -> post_to(d, JOB, LIVING) }
            if
            :: true -> goto next /* nobody ever joins it */
            :: true
            fi
        fi;
end_join:
        atomic { ended[d] -> ended[d] = false; owner[d] = HANDS } /* kthread_join, reap */
#ifdef LISTED_FIRST
        retain_listed(d);
#endif
        atomic { /* kthread_release: idle_push */
            !list_held ->
            owner[d] = LISTED
        }
#if !defined LISTED_FIRST && !defined NO_LISTED
        retain_listed(d);
#endif
        if /* idle_poke(thread) */
        :: atomic { pokes && !list_held && in_list(d) -> pokes = false; hold_list }
            poke(d)
        :: atomic { pokes && !list_held && !in_list(d) -> pokes = false }
        :: !pokes
        fi;
next:
        d = 0
#if CULLS > 0
    :: atomic { culls < CULLS && !list_held && !none_listed -> culls++; take_off(d, 0) } /* evict_one, kthread_cull */
        end_it(d)
#endif
    od
#undef me
}

#if POLICY == 2
active proctype memory() {
    do
    :: paused[CLIENTS] = true;
end_wait:
        !paused[CLIENTS]
    :: memory_short = true; break
    od
}
#endif

/* Nobody can do anything. */
#if CLIENTS == 1
#define anybody_paused (paused[0] || paused[1])
#else
#define anybody_paused (paused[0] || paused[1] || paused[2])
#endif

inline all_is_well() {
    assert(!held && !list_held && !busy && !again);
    assert(at_chores == 0 && ending == 0);
    if
    :: warden < NOBODY -> assert(parked[warden] && left[warden] == (until == NEVER -> 0 : until))
    :: else
    fi;
    do
    :: i < KERNELS ->
        assert(!parked[i] || post[i] == SLEEPING); /* no job is lost */
        if
        :: in_list(i) ->
            assert(parked[i]);
            assert(warden < NOBODY && until <= DELAY);
#if POLICY == 2
            assert(!memory_short || short_since < LOOK || age[i] < LOOK)
#endif
        :: else
        fi;
        i++
    :: else -> break
    od;
#if POLICY == 1
    assert(sum_of_ages <= BOUND + count * DELAY)
#endif
}

active proctype clock() {
    byte i;
    do
    :: atomic {
            timeout ->
            all_is_well();
            if
            :: anybody_timed || anybody_paused
            :: else -> break
            fi;
            i = 0;
            do
            :: i < KERNELS ->
                age[i] = ((in_list(i) && age[i] < OLD) -> age[i] + 1 : age[i]);
                if
                :: is_timed(i) -> left[i]--; parked[i] = (left[i] > 0)
                :: else
                fi;
                i++
            :: else -> break
            od;
            until = ((until == NEVER || until == 0) -> until : until - 1);
            short_since = ((memory_short && short_since < LOOK) -> short_since + 1 : short_since);
            paused[0] = false;
            paused[1] = false
#if CLIENTS > 1
            ; paused[2] = false
#endif
        }
progress_of_time:
        i = 0
    od
}
