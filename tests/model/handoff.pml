// SPDX-License-Identifier: Apache-2.0
/* The life of kept kernel threads (src/kthread/life.h, kthread.c, keep.c, join.c, start.c): who may own a
 * descriptor, how a job is handed to a parked thread, how its end reaches a joiner, and how keeping stops.
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * One step of the model is one atomic operation of the code. A kernel thread and its descriptor have the same
 * number; a descriptor that was freed is not used again, so that any later touch of it is seen.
 *
 * Ghosts (not in the code): `owner`, which says in whose hands a descriptor is; `exited`, which stands for what
 * libc's pthread_join waits for; `abandoned`. A job has a number; `job` and `result` are emptied when they are taken,
 * so a job that is lost or runs twice, or a result that is taken twice, shows.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   WEAK_KEEPING           the ending thread loads `kept` before it has published its end
 *   WEAK_RELEASE           likewise whoever releases a thread, before it is listed
 *   WEAK_STOPPER           the stopper looks for threads before its store to `kept` is visible
 *   NO_TAKE_BACK           the ending thread does not look at `kept` again
 *   NO_RELEASE_CHECK       nor does whoever releases a thread
 *   NO_RETIRE_ENDED        the stopper does not visit the threads whose result nobody has taken
 *   NO_SLEEPING_STATE      the poster wakes nobody
 *   BLIND_SLEEP            the parked thread stores SLEEPING instead of comparing first
 *   NO_JOINER_WAKE         the end does not wake the joiner
 *   BLIND_PUBLISH          the end is stored, not compared: a detach that came in between is lost
 *   BLIND_GIVE_UP          the joiner that gives up stores RUNNING, not compares: an end that came is lost
 *   STOPPER_RETIRES        the stopper itself says RETIRED for a thread that is still parked
 *   BLIND_LEAVE            a parked thread that has been idle for too long leaves without taking itself off the list
 *   BLIND_POKE             whoever makes a listed thread look around stores NOTHING, not compares: a job is lost
 * and with -DFILTER:
 *   NO_FILTER_WAKE         a filter that comes wakes no joiner
 *   WAKE_FIRST             a filter that comes wakes the joiners before it says that threads may be killed
 *   LOOK_FIRST             the joiner looks whether threads may be killed before its AWAITED is there
 *   NO_FILTER_LOOK         it does not look
 */
#ifndef KERNELS
#define KERNELS 2
#endif
#ifndef CLIENTS
#define CLIENTS 1
#endif
#ifndef JOBS /* of each client */
#define JOBS 3
#endif
#ifndef MISHAPS
#define MISHAPS 2
#endif

#ifndef POKES /* above 0: idle threads are looked after (retain.h) */
#define POKES 0
#endif

/* FILTER: keeping stops because a seccomp filter is coming (kthread_filter_comes), and then the kernel may end a thread in the
 * middle of a job, which publishes nothing. */

#define NOTHING  0 /* enum post */
#define SLEEPING 1
#define JOB      2
#define QUIT     3
#define LAST     4

#define IDLE     0 /* enum life: compared with >= ENDED, as in the code */
#define RUNNING  1
#define AWAITED  2
#define DETACHED 3
#define ENDED    4
#define RETIRED  5

#define UNBORN  0 /* owner: nobody has asked for it yet */
#define LISTED  1 /* the idle list */
#define HANDS   2 /* a creator's, a culler's, whoever took the result, or the thread's own at its end */
#define LIVING  3 /* a logical thread's life: of the thread itself and the handle's holder */
#define FREED   4

#define NONE 0 /* job, result: otherwise the job's number */

byte post[KERNELS], life[KERNELS], job[KERNELS], result[KERNELS], owner[KERNELS];
bool parked[KERNELS];   /* asleep on `post` */
bool awaiting[KERNELS]; /* its joiner is asleep on `life` */
bool born[KERNELS], exited[KERNELS];
bool abandoned[KERNELS]; /* the handle's holder has left it alone for good */
bool kept = true;
bool registry; /* its lock */
/* So often may one of these happen: a wake-up without a cause; a job that leaves what makes its thread retire; a
 * limit that forbids listing a thread. Bounded, because endless spurious wake-ups would hide each lost one. */
byte mishaps = MISHAPS;
byte pokes = POKES;
byte clients_done;
bool stopped;
#ifdef FILTER
bool may_be_killed;
bool filtered;        /* it is installed */
bool killed[KERNELS]; /* ghost */
#endif

#define touch(d) assert(owner[d] != FREED && owner[d] != UNBORN)

#if KERNELS == 1
#define none_listed (owner[0] != LISTED)
#elif KERNELS == 2
#define none_listed (owner[0] != LISTED && owner[1] != LISTED)
#else
#define none_listed (owner[0] != LISTED && owner[1] != LISTED && owner[2] != LISTED)
#endif

/* The wake-up comes after the word has been handed over, and names the address alone. */
#ifdef NO_SLEEPING_STATE
#define wake_parked(d) skip
#else
#define wake_parked(d) parked[d] = false
#endif

#ifdef NO_JOINER_WAKE
#define wake_joiner(d) skip
#else
#define wake_joiner(d) awaiting[d] = false
#endif

/* sleep_until_ended: a joiner that says AWAITED looks then whether threads may be killed, and only then sleeps. */
#ifndef FILTER
#define may_announce (!awaiting[d])
#define may_sleep (!awaiting[d])
#define has_slept skip
#else
#ifdef LOOK_FIRST
#define may_look(d) ((life[d] == RUNNING || life[d] == AWAITED) && !awaiting[d] && !unkillable)
#define may_announce (!awaiting[d] && unkillable)
#else
#define may_look(d) (life[d] == AWAITED && !awaiting[d] && !unkillable)
#define may_announce (!awaiting[d] && !unkillable)
#endif
#ifdef NO_FILTER_LOOK
#define may_sleep (!awaiting[d])
#else
#define may_sleep (!awaiting[d] && unkillable)
#endif
#define has_slept unkillable = false
#endif

#ifdef STOPPER_RETIRES
#define STOPPED RETIRED
#else
#define STOPPED RUNNING
#endif

inline move(d, from, to) {
    assert(owner[d] == from);
    owner[d] = to
}

/* kthread_post: whatever was posted before must have been taken */
inline post_to(d, what, old_owner, new_owner) {
    if
    :: atomic { post[d] == SLEEPING -> touch(d); move(d, old_owner, new_owner); post[d] = what }
        wake_parked(d)
    :: atomic { post[d] != SLEEPING -> touch(d); move(d, old_owner, new_owner); assert(post[d] == NOTHING); post[d] = what }
    fi
}

inline free_it(d) {
    touch(d);
    assert(job[d] == NONE);
    owner[d] = FREED;
    life[d] = IDLE; /* this and the next: fewer states to search */
    post[d] = NOTHING;
    result[d] = NONE
}

inline registry_free(d) {
    atomic { !registry -> free_it(d) }
}

/* libc's pthread_join, then registry_free */
inline join_and_free(d) {
    atomic { exited[d] && !registry -> free_it(d) }
}

/* kthread_cull. `told` is the chain of those that were told and must be waited for. */
inline cull() {
    do
    :: atomic { owner[0] == LISTED -> owner[0] = HANDS; x = 0; told = told | 1 } post_to(x, QUIT, HANDS, HANDS)
#if KERNELS > 1
    :: atomic { owner[1] == LISTED -> owner[1] = HANDS; x = 1; told = told | 2 } post_to(x, QUIT, HANDS, HANDS)
#endif
#if KERNELS > 2
    :: atomic { owner[2] == LISTED -> owner[2] = HANDS; x = 2; told = told | 4 } post_to(x, QUIT, HANDS, HANDS)
#endif
    :: atomic { none_listed -> x = 0 } break
    od;
    do
    :: atomic { told & 1 -> told = told & 6 } join_and_free(0)
#if KERNELS > 1
    :: atomic { told == 2 || told == 6 -> told = told & 4 } join_and_free(1)
#endif
#if KERNELS > 2
    :: atomic { told == 4 -> told = 0 } join_and_free(2)
#endif
    :: told == 0 -> break
    od
}

active [KERNELS] proctype kernel() {
    bool stop_seen;
#define me _pid
end_unborn:
    born[me];
    goto park;

work:
#ifdef FILTER
    if
    :: atomic { filtered && mishaps > 0 -> mishaps--; touch(me); killed[me] = true; result[me] = NONE } goto gone
    :: true
    fi;
#endif
    /* retire_reason */
    if
    :: !kept -> goto leave
    :: atomic { kept && mishaps > 0 -> mishaps-- } goto leave
    :: kept
    fi;

    /* keep: publish(ENDED). A loop of compare-and-swap is one step, the one that succeeds. */
#ifdef WEAK_KEEPING
    stop_seen = !kept;
#endif
    if
#ifdef BLIND_PUBLISH
    :: atomic { life[me] == DETACHED -> touch(me); life[me] = ENDED } goto look_again
#else
    :: atomic { life[me] == DETACHED -> touch(me) } goto list_itself
#endif
    :: atomic { life[me] == RUNNING -> touch(me); life[me] = ENDED }
    :: atomic { life[me] == AWAITED -> touch(me); life[me] = ENDED }
        wake_joiner(me)
    fi;
look_again: /* take_back */
#ifdef NO_TAKE_BACK
    goto park;
#endif
#ifndef WEAK_KEEPING
    stop_seen = !kept;
#endif
    if
    :: !stop_seen
    :: atomic { stop_seen && life[me] == ENDED -> touch(me); life[me] = RETIRED } goto gone /* left to the joiner */
    :: atomic { stop_seen && life[me] != ENDED -> touch(me); stop_seen = false }
    fi;
    goto park;

list_itself:
    atomic { touch(me); assert(life[me] == DETACHED); move(me, LIVING, HANDS); life[me] = IDLE; result[me] = NONE }
    if
    :: atomic { mishaps > 0 -> mishaps-- } goto leave_detached
    :: atomic { true -> touch(me); move(me, HANDS, LISTED) }
    fi;
#ifdef NO_TAKE_BACK
    goto park;
#endif
#ifndef WEAK_KEEPING
    stop_seen = !kept;
#endif
    if
    :: !stop_seen
    :: atomic { stop_seen && owner[me] == LISTED -> owner[me] = HANDS } goto leave_detached /* idle_remove */
    :: atomic { stop_seen && owner[me] != LISTED -> touch(me); stop_seen = false }
    fi;

park: /* thrum_kthread_idle. What it finds it takes at once: nobody else may post meanwhile, see post_to. */
#ifdef BLIND_SLEEP
    post[me] == NOTHING -> post[me] = SLEEPING;
#else
    if
    :: atomic { post[me] == NOTHING -> touch(me); post[me] = SLEEPING }
    :: post[me] != NOTHING
    fi;
#endif
    do
    :: atomic { post[me] == SLEEPING && !parked[me] -> touch(me); parked[me] = true } /* the kernel compares */
    :: atomic { parked[me] && mishaps > 0 -> mishaps--; parked[me] = false }
#if POKES > 0
    :: atomic { post[me] == NOTHING && !parked[me] -> touch(me) } goto park /* poked (retain.h): looks around, sleeps again */
    /* retain_watch: it has been idle for too long, and takes itself off the list */
#ifdef BLIND_LEAVE
    :: atomic { post[me] == SLEEPING && !parked[me] && mishaps > 0 && owner[me] == LISTED -> mishaps-- } goto leave_late
#else
    :: atomic { post[me] == SLEEPING && !parked[me] && mishaps > 0 && owner[me] == LISTED -> mishaps--; owner[me] = HANDS }
        goto leave_detached
#endif
#else
    :: atomic { post[me] == NOTHING && !parked[me] -> assert(false) }
#endif
    :: atomic {
            post[me] == JOB && !parked[me] ->
            touch(me);
            post[me] = NOTHING;
            assert(owner[me] == LIVING && job[me] != NONE);
            result[me] = job[me];
            job[me] = NONE
        }
        goto work
    :: atomic { post[me] == QUIT && !parked[me] -> touch(me); post[me] = NOTHING } goto gone
    :: atomic { post[me] == LAST && !parked[me] -> touch(me); post[me] = NOTHING } break
    od;
#ifdef STOPPER_RETIRES
    goto gone;
#endif

leave:
    if
    :: atomic { life[me] == DETACHED -> touch(me) } goto leave_detached
    :: atomic { life[me] == RUNNING -> touch(me); life[me] = RETIRED }
    :: atomic { life[me] == AWAITED -> touch(me); life[me] = RETIRED }
        wake_joiner(me)
    :: atomic { life[me] != DETACHED && life[me] != RUNNING && life[me] != AWAITED -> assert(false) }
    fi;
    goto gone;
#ifdef BLIND_LEAVE
leave_late:
    owner[me] = HANDS;
#endif
leave_detached: /* libc's pthread_detach, then */
    registry_free(me);
gone:
    atomic { stop_seen = false; exited[me] = true }
#undef me
}

/* kthread_release: the caller owns the descriptor */
inline release(d) {
#ifdef WEAK_RELEASE
    stop_seen = !kept;
#endif
    if
    :: atomic { mishaps > 0 -> mishaps-- } post_to(d, QUIT, HANDS, HANDS); join_and_free(d)
    :: atomic { true -> touch(d); move(d, HANDS, LISTED); d = 0 }
#ifndef NO_RELEASE_CHECK
#ifndef WEAK_RELEASE
        stop_seen = !kept;
#endif
        if
        :: stop_seen -> cull()
        :: else
        fi
#endif
    fi
}

active [CLIENTS] proctype client() {
    byte n, d, j, told, x;
    bool stop_seen, patient;
#ifdef FILTER
    bool unkillable; /* may_be_killed was read as false since it last slept */
#endif

    do
    :: atomic { n == JOBS -> clients_done++; n = 0 } break
    :: n < JOBS ->
        atomic { /* kthread_start, up to the hand-over: nobody else looks, see `owner` */
            j = (_pid - KERNELS) * JOBS + n + 1;
            n++;
            if
            :: owner[0] == LISTED -> d = 0
#if KERNELS > 1
            :: owner[1] == LISTED -> d = 1
#endif
#if KERNELS > 2
            :: owner[2] == LISTED -> d = 2
#endif
            :: none_listed && owner[0] == UNBORN -> d = 0
#if KERNELS > 1
            :: none_listed && owner[0] != UNBORN && owner[1] == UNBORN -> d = 1
#endif
#if KERNELS > 2
            :: none_listed && owner[0] != UNBORN && owner[1] != UNBORN && owner[2] == UNBORN -> d = 2
#endif
            :: else -> j = 0; goto next /* the model has no more kernel threads (unreached: fine) */
            fi;
            owner[d] = HANDS;
            assert(job[d] == NONE && result[d] == NONE);
            job[d] = j;
            if
            :: life[d] = DETACHED
            :: life[d] = RUNNING
            fi
        }
        if
        :: atomic { life[d] == DETACHED -> born[d] = true } post_to(d, JOB, HANDS, LIVING); goto next
        :: atomic { life[d] == RUNNING -> born[d] = true } post_to(d, JOB, HANDS, LIVING)
        fi;

        /* --- what the program does with the handle --- */
        if
        :: true -> goto sleep /* waits for ever */
        :: true -> patient = true; goto sleep /* waits until a deadline passes, or it is cancelled */
        :: true -> goto detach
        :: true -> abandoned[d] = true; goto next /* never asks for it */
        fi;

sleep: /* sleep_until_ended: load and compare-and-swap are one step, the one that succeeds */
        do
        :: atomic { life[d] == RUNNING && may_announce -> touch(d); life[d] = AWAITED }
#ifdef FILTER
        :: atomic { life[d] == RUNNING && !may_announce && unkillable -> touch(d); unkillable = false } /* the kernel compared */
#ifndef NO_FILTER_LOOK
        :: atomic { may_look(d) && !may_be_killed -> touch(d); unkillable = true }
        :: atomic { may_look(d) && may_be_killed -> touch(d) } goto ask_libc
#endif
#endif
        :: atomic { life[d] == AWAITED && may_sleep -> touch(d); awaiting[d] = true; has_slept } /* the kernel compares */
        :: atomic { awaiting[d] && mishaps > 0 -> mishaps--; awaiting[d] = false }
        :: atomic { awaiting[d] && patient -> patient = false; awaiting[d] = false } goto give_up
        :: atomic { life[d] >= ENDED && !awaiting[d] -> touch(d) } goto take
        :: atomic { (life[d] == IDLE || life[d] == DETACHED) && !awaiting[d] -> assert(false) }
        od;
give_up: /* stop_awaiting. It is joinable still: after a cancellation even if it has ended meanwhile. */
        if
        :: atomic { life[d] == AWAITED -> touch(d); life[d] = RUNNING }
#ifdef BLIND_GIVE_UP
        :: atomic { life[d] != AWAITED -> touch(d); life[d] = RUNNING }
#else
        :: atomic { life[d] != AWAITED -> touch(d) }
#endif
        fi;
        if
        :: true -> goto sleep
        :: true -> goto detach
        fi;

#ifdef FILTER
ask_libc: /* stop_awaiting, then join_in_libc */
        if
        :: atomic { life[d] == AWAITED -> touch(d); life[d] = RUNNING }
        :: atomic { life[d] != AWAITED -> touch(d) }
        fi;
        if
        :: atomic { exited[d] -> touch(d); assert(killed[d] == (life[d] < ENDED)); assert(killed[d] || result[d] == j) }
            join_and_free(d); goto next
        :: atomic { patient -> patient = false } goto give_up
        fi;
#endif

take:
        atomic { touch(d); assert(result[d] == j); result[d] = NONE }
        if /* reap */
        :: atomic { life[d] == ENDED -> touch(d); move(d, LIVING, HANDS); life[d] = IDLE } release(d)
        :: life[d] == RETIRED -> join_and_free(d)
#ifndef STOPPER_RETIRES
        :: atomic { life[d] == RUNNING -> touch(d) } join_and_free(d) /* seen ENDED, since told to leave */
#endif
        fi;
        goto next;

detach: /* kthread_detach: load and compare-and-swap are one step */
        if
        :: atomic { life[d] == RUNNING -> touch(d); life[d] = DETACHED }
        :: atomic { life[d] == ENDED -> touch(d); move(d, LIVING, HANDS); life[d] = IDLE; result[d] = NONE } release(d)
        :: life[d] == RETIRED -> registry_free(d)
        :: atomic { life[d] == IDLE || life[d] == AWAITED || life[d] == DETACHED -> assert(false) }
        fi;
next:
        atomic { d = 0; j = 0; x = 0; patient = false; stop_seen = false; has_slept }
    od
}

/* The second half of kthread_cull: each thread that has ended and is not joined is told to leave. */
inline expel() {
    atomic { !registry -> registry = true }
    do
    :: atomic { x < KERNELS && owner[x] != UNBORN && owner[x] != FREED && life[x] == ENDED -> life[x] = STOPPED }
        post_to(x, LAST, LIVING, LIVING);
        x++
    :: atomic { x < KERNELS && (owner[x] == UNBORN || owner[x] == FREED || life[x] != ENDED) -> x++ }
    :: atomic { x == KERNELS -> x = 0; registry = false } break
    od
}

#ifdef FILTER
/* The last of kthread_filter_comes: each sleeping joiner looks again. */
inline wake_joiners() {
    atomic { !registry -> registry = true }
    do
    :: atomic { x < KERNELS && owner[x] != UNBORN && owner[x] != FREED && life[x] == AWAITED -> life[x] = RUNNING }
        wake_joiner(x);
        x++
    :: atomic { x < KERNELS && (owner[x] == UNBORN || owner[x] == FREED || life[x] != AWAITED) -> x++ }
    :: atomic { x == KERNELS -> x = 0; registry = false } break
    od;
}
#endif

/* kthread_stop_keeping, once, at any time; perhaps after idle threads were given up for another reason. A new generation
 * of the main thread's rights (kthread_change_rights) stops keeping in the same way for the threads of earlier ones. */
active proctype stopper() {
    byte told, x;
#ifdef CULLS
    cull();
    expel();
#endif
#ifndef WEAK_STOPPER
    kept = false;
#endif
    cull();
#ifndef NO_RETIRE_ENDED
    expel();
#endif
#ifdef WEAK_STOPPER
    kept = false;
#endif
#ifdef FILTER
#ifndef WAKE_FIRST
    may_be_killed = true;
#endif
#ifndef NO_FILTER_WAKE
    wake_joiners();
#endif
#ifdef WAKE_FIRST
    may_be_killed = true;
#endif
    filtered = true;
#endif
    stopped = true
}

#if POKES > 0
/* idle_poke, now and then: under the idle list's lock, so that nobody takes the thread off meanwhile */
active proctype warden() {
    byte x;
    do
    :: pokes == 0 -> break
    :: pokes > 0 ->
        if
        :: x = 0
#if KERNELS > 1
        :: x = 1
#endif
        fi;
        if
#ifdef BLIND_POKE
        :: atomic { owner[x] == LISTED -> pokes--; parked[x] = false }
            post[x] = NOTHING
#else
        :: atomic { owner[x] == LISTED && post[x] == SLEEPING -> pokes--; post[x] = NOTHING; parked[x] = false }
#endif
        :: atomic { true -> pokes-- }
        fi
    od
}
#endif

/* When all is over every kernel thread has left: one that stays parked is an invalid end state. */
active proctype verdict() {
    byte x;
    atomic {
        clients_done == CLIENTS && stopped;
        do
        :: x < KERNELS ->
            !born[x] || exited[x];
#ifdef FILTER
            assert(!born[x] || owner[x] == FREED || (abandoned[x] && life[x] == RETIRED) || killed[x]);
#else
            assert(!born[x] || owner[x] == FREED || (abandoned[x] && life[x] == RETIRED));
#endif
            x++
        :: else -> break
        od
    }
}
