// SPDX-License-Identifier: Apache-2.0
/* Where and how a kept thread is woken (src/kthread/place.c), and the affinity masks that this plays with
 * (src/kthread/fresh/creator.c; the calls that set one in cache/reach.c and cache/inherit.c).
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * Creators start threads and join them; kernel threads run the jobs, spin for the next one, give up, sleep; a user
 * sets the masks of creators and of running threads. There are two CPUs. All that place.c learns is chance here: each
 * way that choose() may choose is tried, each spin may be passed up, and what a creator knows of its own mask may be
 * too old. One step of the model is one atomic operation or one system call of the code; what is done to what
 * nobody else can see just then is one step with what comes before it.
 *
 * Ghosts (not in the code): `right`, the mask that a job's code must see; `had`, the masks that a thread has had since
 * it began to create one; `order`, the job that struct place_order was written for; `spinning`; `owner` and the jobs'
 * numbers as in handoff.pml.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   NO_RESTORE          the woken thread does not set its creator's mask
 *   NO_UNKNOWN          HERE and PROBE do not mark the thread's mask as unknown
 *   CONFINE_LATE        they set it after the hand-over
 *   GATE_FIRST          the thread opens its gate before it sets its mask
 *   INHERITED_KNOWN     a new thread takes its mask for the one that its creator saw before
 *   CHANGE_UNSEEN       who sets a running thread's mask does not mark it as unknown
 *   NO_GATE             nor is inside the gate meanwhile
 *   NO_EPOCH            a creator does not look whether masks were set since it asked for its own
 *   NO_CHANGING         nor whether one is just being set
 *   EPOCH_AFTER_ASK     it asks for its mask first and notes the epoch then
 *   NO_FORGET           a thread that creates goes by what it knew of its mask in an earlier job
 *   BLIND_HOT           HOT looks, then stores: the thread has gone to sleep in between
 *   BLIND_SLEEP         the thread that gives up spinning stores SLEEPING instead of comparing
 *   NO_WAKE             the four ways beside HOT wake nobody
 *   BLIND_AWAIT         the joiner that gives up spinning stores AWAITED, not compares: the end is lost
 *   NO_JOINER_WAKE      the end does not wake the joiner
 *   ORDER_LATE          the creator writes the order after the hand-over
 *   LINGER_READS_ORDER  the thread reads it, not its copy, after the end is published
 *   JOINED_LATE         the joiner reads it after the descriptor is given away
 *   BLIND_BEGIN         who is about to spin looks at the count, then adds
 *   NO_GIVE_BACK        who finds that enough spin already leaves itself counted
 *   NO_SPIN_END         who found a job does
 *   NOTED_FIRST         a joiner notes the epoch before it has the mask: a handler that creates a thread in between
 *                       (HANDLER) hands on the old one
 * and, searched for cycles:
 *   ENDLESS_LINGER      the thread spins until a job comes
 *   ENDLESS_JOIN        the joiner spins until the job has ended
 */
#ifndef KERNELS
#define KERNELS 1
#endif
#ifndef CREATORS
#define CREATORS 2
#endif
#ifndef JOBS /* of each creator */
#define JOBS 2
#endif
#ifndef CHANGES /* of anybody's mask */
#define CHANGES 0
#endif
#ifndef MISHAPS /* wake-ups without a cause; bounded, or no lost wake-up would ever show */
#define MISHAPS 1
#endif
#ifndef POKES /* of idle threads (retain.h): HOT then meets one that does not spin, too */
#define POKES 0
#endif
#define MOST  1 /* threads that may spin */
#define LOOKS 1 /* of a spin, beside the last */

#define NOTHING  0 /* enum post */
#define SLEEPING 1
#define JOB      2

#define IDLE     0 /* enum life */
#define RUNNING  1
#define AWAITED  2
#define DETACHED 3
#define ENDED    4

#define UNBORN 0 /* owner */
#define LISTED 1
#define HANDS  2
#define LIVING 3

#define UNKNOWN 0 /* a mask: otherwise the sum of CPU_0 and CPU_1 */
#define CPU_0   1
#define CPU_1   2
#define ALL     3

#define OTHER 0 /* enum place_how, as far as the joiner minds: NEW, HOT, PLAIN */
#define HERE  1
#define STAY  2
#define PROBE 3

#define NONE 0 /* job, result, order: otherwise the job's number */

#define THREADS (KERNELS + CREATORS)

byte post[KERNELS], life[KERNELS], job[KERNELS], result[KERNELS], owner[KERNELS];
bool parked[KERNELS], awaiting[KERNELS], born[KERNELS];
bool opened[KERNELS]; /* the gate, which gate.pml is about: user code runs */
byte inside[KERNELS];
byte wanted[KERNELS]; /* creator.affinity: the creator's mask as captured */
byte known[KERNELS];  /* fresh.affinity: the thread's own as last set */
byte order[KERNELS], right[KERNELS];
byte mask[THREADS] = ALL; /* the kernel's; kernel threads first, then creators */
byte had[THREADS];        /* a bit for each mask */
byte epoch = 1, changing; /* affinity_epoch, affinities_changing */
byte spinners, spinning;
byte mishaps = MISHAPS, pokes = POKES;
byte creators_done;
bool user_done;

#if KERNELS == 1
#define none_listed (owner[0] != LISTED)
#define all_idle    (parked[0] || owner[0] == UNBORN)
#else
#define none_listed (owner[0] != LISTED && owner[1] != LISTED)
#define all_idle    ((parked[0] || owner[0] == UNBORN) && (parked[1] || owner[1] == UNBORN))
#endif

inline move(d, from, to) {
    assert(owner[d] == from);
    owner[d] = to
}

/* --- what a creator knows of its mask: own_epoch and own_mask are its thread-locals -------------------------- */

/* creator_capture: affinity_capture, affinity_known, affinity_ask. `had` was set as the call began. */
inline capture(t) {
    if
    :: ask = true /* it was too long ago */
#if CHANGES > 0
#ifdef NO_CHANGING
    :: ask = (own_epoch != epoch)
#else
    :: changing == 0 ->
#ifdef NO_EPOCH
        ask = (own_epoch == 0)
#else
        ask = (own_epoch != epoch)
#endif
#endif
#endif
    fi;
    if
    :: !ask
#ifdef EPOCH_AFTER_ASK
    :: ask -> own_mask = mask[t];
        own_epoch = epoch
#else
    :: ask -> own_epoch = epoch;
        own_mask = mask[t]
#endif
    fi;
    atomic { ask = false; assert(had[t] & (1 << own_mask)); had[t] = 0 }
}

/* creator_look_again: affinity_ask in a join, where signals are open: the epoch is read first and noted last. With
 * -DHANDLER a handler may come in between and create a thread, which takes the mask that is known if the epoch says so. */
#ifdef HANDLER
#define handler_creates(t) assert(changing != 0 || own_epoch != epoch || own_mask == mask[t])
#else
#define handler_creates(t) skip
#endif
inline look_again(t) {
#ifdef NOTED_FIRST
    own_epoch = epoch;
    handler_creates(t);
    own_mask = mask[t]
#else
    before = epoch;
#ifdef HANDLER
    own_mask = mask[t];
    handler_creates(t);
    atomic { own_epoch = before; before = 0 }
#else /* nobody else sees what it knows: one step */
    atomic { own_mask = mask[t]; own_epoch = before; before = 0 }
#endif
#endif
}

/* --- the thread ---------------------------------------------------------------------------------------------- */

active [KERNELS] proctype kernel() {
    byte own_epoch, own_mask, looks;
    bool ask, first = true;
#ifdef LINGER_READS_ORDER
    byte noted;
#endif
#define me _pid
end_unborn:
    born[me];
    goto park;

begin: /* place_begin, then begin_job; of a new thread the part in kthread_main */
#ifdef GATE_FIRST
    atomic { opened[me] = true; right[me] = (first -> mask[me] : wanted[me]) }
#endif
    atomic {
        assert(order[me] == job[me]);
#ifdef LINGER_READS_ORDER
        noted = order[me];
#endif
        if
        :: first -> /* creator_inherited */
#ifdef INHERITED_KNOWN
            known[me] = wanted[me]
#else
            known[me] = UNKNOWN
#endif
        :: !first -> /* creator_apply */
#ifndef NO_FORGET
            own_epoch = 0;
            own_mask = UNKNOWN;
#endif
            if
            :: known[me] == wanted[me]
            :: known[me] != wanted[me] ->
#ifndef NO_RESTORE
                mask[me] = wanted[me];
#endif
                known[me] = wanted[me]
            fi
        fi;
#ifndef GATE_FIRST
        opened[me] = true; /* open_up */
        right[me] = (first -> mask[me] : wanted[me]);
#endif
        first = false;
        wanted[me] = UNKNOWN;
        assert(mask[me] == right[me])
    }

    /* the program's code: it may create a thread, too */
    if
    :: true
#if CHANGES > 0
    :: atomic { had[me] == 0 -> had[me] = 1 << mask[me] } capture(me)
#endif
    fi;
    assert(mask[me] == right[me]);
    atomic { /* end_of_user_code, gate_close */
        inside[me] == 0 ->
        assert(mask[me] == right[me]);
        opened[me] = false;
        right[me] = UNKNOWN;
        result[me] = job[me];
        job[me] = NONE
    }

    /* keep: publish(ENDED) */
    if
    :: atomic {
            life[me] == DETACHED ->
            life[me] = IDLE;
            result[me] = NONE;
            order[me] = NONE;
            move(me, LIVING, LISTED)
        }
    :: atomic { life[me] == RUNNING -> life[me] = ENDED }
    :: atomic { life[me] == AWAITED -> life[me] = ENDED }
#ifndef NO_JOINER_WAKE
        awaiting[me] = false
#endif
    :: atomic { life[me] == IDLE || life[me] == ENDED -> assert(false) }
    fi;

    /* place_linger */
#ifdef LINGER_READS_ORDER
    assert(order[me] == noted || order[me] == NONE);
#endif
    if
    :: true -> goto park /* on the creator's CPU, or passed up */
    /* spin_begin */
#ifdef BLIND_BEGIN
    :: spinners < MOST ->
        atomic { spinners++; spinning++; assert(spinning <= MOST) }
#else
    :: atomic { spinners < MOST -> spinners++; spinning++; assert(spinning <= MOST) }
#endif
#if KERNELS > 1
    :: spinners >= MOST -> spinners++;
#ifndef NO_GIVE_BACK
        spinners--;
#endif
        goto park
#endif
    fi;
    looks = LOOKS;
    do /* spin_for_post */
    :: atomic { post[me] != NOTHING -> looks = 0; spinning-- } break
#ifdef ENDLESS_LINGER
    :: post[me] == NOTHING
#else
    :: atomic { post[me] == NOTHING && looks > 0 -> looks-- }
    :: atomic { post[me] == NOTHING && looks == 0 -> spinning-- } break
#endif
    od;
#ifdef NO_SPIN_END
    if
    :: post[me] == NOTHING -> spinners--
    :: post[me] != NOTHING
    fi;
#else
    spinners--;
#endif

park: /* thrum_kthread_idle */
    if
#ifdef BLIND_SLEEP
    :: post[me] == NOTHING -> post[me] = SLEEPING
#else
    :: atomic { post[me] == NOTHING -> post[me] = SLEEPING }
#endif
    :: post[me] != NOTHING
    fi;
end_parked:
    do
    :: atomic { post[me] == SLEEPING && !parked[me] -> parked[me] = true } /* the kernel compares */
#if MISHAPS > 0
    :: atomic { parked[me] && mishaps > 0 -> mishaps--; parked[me] = false }
#endif
#if POKES > 0
    :: post[me] == NOTHING && !parked[me] -> goto park
#else
    :: atomic { post[me] == NOTHING && !parked[me] -> assert(false) }
#endif
    :: atomic {
            post[me] == JOB && !parked[me] ->
            post[me] = NOTHING;
            assert(owner[me] == LIVING && job[me] != NONE);
            goto begin
        }
    od
#undef me
} /* unreached: fine */

/* --- the creator --------------------------------------------------------------------------------------------- */

inline confine(d, to) {
#ifndef NO_UNKNOWN
    known[d] = UNKNOWN;
#endif
    mask[d] = to
}

#ifdef ORDER_LATE
#define note_creation(d) skip
#else
#define note_creation(d) order[d] = j
#endif

active [CREATORS] proctype creator() {
    byte n, d, j, looks, how, own_epoch, own_mask, before;
    bool ask, detached;
#define me _pid
    atomic {
        if
        :: me == KERNELS + 1 -> mask[me] = CPU_0
        :: else
        fi
    }
    do
    :: atomic { n == JOBS -> creators_done++; n = 0; own_epoch = 0; own_mask = UNKNOWN } break
    :: n < JOBS ->
        atomic { /* kthread_start begins: idle_pop, or registry_new */
            if
            :: owner[0] == LISTED -> d = 0
            :: none_listed && owner[0] == UNBORN -> d = 0
#if KERNELS > 1
            :: owner[1] == LISTED -> d = 1
            :: none_listed && owner[0] != UNBORN && owner[1] == UNBORN -> d = 1
#endif
            fi;
            owner[d] = HANDS;
            j = (me - KERNELS) * JOBS + n + 1;
            n++;
            had[me] = 1 << mask[me]
        }
        capture(me);
        atomic { /* prepare; place_new or place_post up to its cas: note_creation */
            assert(job[d] == NONE && result[d] == NONE);
            job[d] = j;
            wanted[d] = own_mask;
            if
            :: life[d] = DETACHED; detached = true
            :: life[d] = RUNNING
            fi;
            note_creation(d);
            if
            :: !born[d] -> mask[d] = mask[me]; born[d] = true; goto post_it /* it inherits the mask of just now */
            :: born[d]
            fi
        }
        if
#ifdef BLIND_HOT
        :: post[d] == NOTHING ->
            atomic { move(d, HANDS, LIVING); post[d] = JOB; goto posted }
#else
        :: atomic { post[d] == NOTHING -> move(d, HANDS, LIVING); post[d] = JOB; goto posted }
#endif
        /* choose: the creator runs on some CPU of its mask. confine is the last that it does to what is still its own,
         * so it is one step with the choice. */
        :: atomic { post[d] != NOTHING -> assert(post[d] == SLEEPING) } /* PLAIN */
        :: atomic { post[d] != NOTHING && !detached -> how = STAY }
#ifndef CONFINE_LATE
        :: atomic { post[d] != NOTHING && !detached && own_mask & CPU_0 -> how = HERE; confine(d, CPU_0) }
        :: atomic { post[d] != NOTHING && !detached && own_mask & CPU_1 -> how = HERE; confine(d, CPU_1) }
        :: atomic { post[d] != NOTHING && !detached && own_mask == ALL -> how = PROBE; confine(d, ALL - CPU_0) }
        :: atomic { post[d] != NOTHING && !detached && own_mask == ALL -> how = PROBE; confine(d, ALL - CPU_1) }
#endif
        fi;
post_it:
        if /* kthread_post */
        :: atomic { post[d] == SLEEPING -> move(d, HANDS, LIVING); post[d] = JOB }
#ifndef NO_WAKE
            parked[d] = false
#endif
        :: atomic { post[d] != SLEEPING -> move(d, HANDS, LIVING); assert(post[d] == NOTHING); post[d] = JOB }
        fi;
#ifdef CONFINE_LATE
        confine(d, CPU_0);
#endif
posted:
#ifdef ORDER_LATE
        order[d] = j;
#endif
        if
        :: atomic { detached -> goto next }
        :: atomic { !detached -> assert(order[d] == j) } /* kthread_join: place_wait */
        fi;
        atomic {
            if
            :: how != PROBE -> how = OTHER; goto sleep /* nothing to gain, or a yield has failed lately */
            :: how != PROBE -> looks = 0               /* yield_for_end */
            :: how != HERE -> looks = LOOKS /* also after a yield, where it brought the thread to another CPU */
            fi;
            how = OTHER
        }
#if CHANGES > 0
        if
        :: looks > 0 -> look_again(me)
        :: true
        fi;
#endif
        do /* spin_for_end */
        :: atomic { life[d] == ENDED -> goto take }
#ifdef ENDLESS_JOIN
        :: life[d] != ENDED
#else
        :: atomic { life[d] != ENDED && looks > 0 -> looks-- }
        :: atomic { life[d] != ENDED && looks == 0 -> break }
#endif
        od;
sleep: /* sleep_until_ended */
#ifdef BLIND_AWAIT
        if
        :: life[d] == RUNNING -> life[d] = AWAITED
        :: life[d] != RUNNING
        fi;
#endif
        do
        :: atomic { life[d] == RUNNING && !awaiting[d] -> life[d] = AWAITED }
        :: atomic { life[d] == AWAITED && !awaiting[d] -> awaiting[d] = true } /* the kernel compares */
#if MISHAPS > 0
        :: atomic { awaiting[d] && mishaps > 0 -> mishaps--; awaiting[d] = false }
#endif
        :: atomic { life[d] == ENDED && !awaiting[d] -> break }
        od;
take: /* place_joined, reap: life := IDLE */
        atomic {
            looks = 0;
            assert(result[d] == j);
            result[d] = NONE;
#ifndef JOINED_LATE
            assert(order[d] == j);
#endif
            order[d] = NONE;
            life[d] = IDLE;
            move(d, LIVING, HANDS)
        }
        move(d, HANDS, LISTED); /* kthread_release */
#ifdef JOINED_LATE
        assert(order[d] == NONE);
#endif
next:
        atomic { d = 0; j = 0; detached = false }
    od
#undef me
}

#ifdef NO_GATE
#define enter(t) skip
#define leave(t) skip
#else
#define enter(t) inside[t]++
#define leave(t) inside[t]--
#endif

#if CHANGES > 0
/* Sets masks by handle or tid (pthread_setaffinity_np, sched_setaffinity): of a creator, which is not one of ours, or
 * of a thread that runs a job, with a visit. */
active proctype user() {
    byte n, t, to, visited; /* the job */
    do
    :: atomic { true -> n = 0; user_done = true } break
    :: n < CHANGES ->
        atomic { /* gate_visit_begin, creator_affinity_changes */
            n++;
            if
            :: t = KERNELS
#if CREATORS > 1
            :: t = KERNELS + 1
#endif
            :: opened[0] -> t = 0; visited = job[0]; enter(0)
#if KERNELS > 1
            :: opened[1] -> t = 1; visited = job[1]; enter(1)
#endif
            fi;
            changing++
        }
        atomic { /* the call; then creator_affinity_changed */
            if
            :: to = CPU_0
            :: to = CPU_1
            :: to = ALL
            fi;
            mask[t] = to;
            had[t] = had[t] | (1 << to);
            if
            :: visited != NONE ->
#ifndef CHANGE_UNSEEN
                known[t] = UNKNOWN;
#endif
                if
                :: job[t] == visited -> right[t] = to
                :: else
                fi
            :: else
            fi;
            to = 0
        }
        epoch++;
        atomic {
            changing--;
            if
            :: visited != NONE -> leave(t) /* gate_visit_end */
            :: else
            fi;
            visited = NONE;
            t = 0
        }
    od
}
#endif

#if POKES > 0
/* idle_poke, now and then, as in handoff.pml */
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
        :: atomic { owner[x] == LISTED && post[x] == SLEEPING -> pokes--; post[x] = NOTHING; parked[x] = false }
        :: atomic { true -> pokes-- }
        fi
    od
}
#endif

/* When all is over each kernel thread has given up spinning and sleeps, without anybody's help. */
active proctype verdict() {
    atomic {
        creators_done == CREATORS && all_idle;
#if CHANGES > 0
        user_done;
#endif
        spinners == 0;
        assert(spinning == 0)
    }
}
