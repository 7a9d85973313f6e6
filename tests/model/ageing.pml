// SPDX-License-Identifier: Apache-2.0
/* Idle threads that end by themselves (src/kthread/retain.h, departures in keep.c) against those that want them: a
 * creator, a joiner, and a thread that culls, or copies the process without libc's knowing.
 * Run by run-spin.sh; README.md says what is covered and what is left out.
 *
 * A thread's deadline passes whenever it sleeps: when exactly is not modelled. One step is one atomic operation or one
 * system call of the code, or what it does under a lock in one go.
 *
 * Ghost (not in the code): `in_libc`, how many threads are on their way out, with libc's locks perhaps.
 *
 * Each -D<VARIANT> leaves out one thing. The search must then fail:
 *   NO_REMOVE       a thread leaves without taking itself off the list
 *   BLIND_RETIRE    it says RETIRED without looking whether a joiner was quicker
 *   CHECK_FIRST     it looks for copies before it is counted as departing
 *   NO_CHECK        it does not look for them at all
 *   COUNT_LATE      it is counted as departing only after it has left the list
 *   END_EARLY       it is no longer counted before it is on the list of the departed
 *   NO_REAP         the culler does not wait for those that have departed
 *   NO_UNJOINED     nor for those that left unjoined
 *   HIDE_LATE       one that leaves unjoined is no longer counted before it says so
 *   FREE_EARLY      who reaps does not wait until the thread has left libc
 */
#define KERNELS 2

#define NOTHING  0 /* enum post */
#define SLEEPING 1
#define JOB      2
#define QUIT     3

#define IDLE     0 /* enum life */
#define RUNNING  1
#define DETACHED 2
#define ENDED    3
#define RETIRED  4

byte post[KERNELS], life[KERNELS];
bool listed[KERNELS], exited[KERNELS], freed[KERNELS], left_tid[KERNELS];
bool departed[KERNELS];
byte departing, copies, in_libc;
bool joinable[KERNELS]; /* its handle is the client's */
byte jobs_done, jobs_given = KERNELS;

/* Within a step: one that has departed, if there is one */
#define any_departed (departed[0] || departed[1])
inline take_departed(x) {
    if
    :: departed[0] -> x = 0
    :: departed[1] -> x = 1
    fi;
    departed[x] = false
}

/* libc's join, registry_free */
inline reap(x) {
    do
    :: atomic { any_departed -> take_departed(x) }
#ifndef FREE_EARLY
        exited[x];
#endif
        atomic { assert(exited[x] && !freed[x]); freed[x] = true; x = 0 }
    :: atomic { !any_departed -> break }
    od
}

active [KERNELS] proctype kernel() {
    byte x;
#define me _pid
job:
    atomic {
        jobs_done++;
        assert(!freed[me] && !exited[me]);
        if
        :: life[me] == DETACHED -> life[me] = IDLE; listed[me] = true
        :: life[me] == RUNNING || life[me] == IDLE /* at first */ -> life[me] = ENDED; joinable[me] = true
        fi
    }
park:
    if
    :: atomic { post[me] == NOTHING -> post[me] = SLEEPING }
    :: post[me] == SLEEPING
    :: post[me] > SLEEPING -> goto posted
    fi;
end_asleep:
    if
    :: post[me] > SLEEPING -> goto posted
    :: true /* the deadline */
    fi;

    /* end_own; departures_begin */
#ifdef CHECK_FIRST
    if
    :: copies == 0
    :: copies != 0 -> goto park
    fi;
    departing++;
#else
#ifndef COUNT_LATE
    departing++;
#endif
#ifndef NO_CHECK
    if
    :: copies == 0
    :: copies != 0 ->
#ifndef COUNT_LATE
        departing--;
#endif
        goto park
    fi;
#endif
#endif
    if
#ifdef NO_REMOVE
    :: atomic { listed[me] -> goto leave }
#else
    :: atomic { listed[me] -> listed[me] = false; goto leave } /* idle_remove */
#endif
    :: !listed[me]
    fi;
    /* departures_unjoined */
#ifdef HIDE_LATE
    departing--;
#endif
    if
#ifdef BLIND_RETIRE
    :: atomic { life[me] >= RUNNING -> left_tid[me] = true; life[me] = RETIRED; in_libc++ }
#else
    :: atomic { life[me] == ENDED -> left_tid[me] = true; life[me] = RETIRED; in_libc++ }
#endif
#if !defined HIDE_LATE && !defined COUNT_LATE
        departing--;
#endif
        goto exit
    :: else ->
#if !defined HIDE_LATE && !defined COUNT_LATE
        departing--;
#endif
        goto park
    fi;

leave: /* depart */
#ifdef COUNT_LATE
    departing++;
#endif
    assert(post[me] == SLEEPING);
    in_libc++;
    reap(x);
#ifdef END_EARLY
    departing--;
    departed[me] = true;
#else
    departed[me] = true;
    departing--;
#endif
exit:
    atomic { in_libc--; exited[me] = true; goto gone }

posted:
    atomic {
        if
        :: post[me] == JOB -> post[me] = NOTHING; goto job
        :: post[me] == QUIT -> in_libc++; goto exit
        fi
    }
gone:
    atomic { assert(post[me] != JOB); x = 0 }
#undef me
}

/* Joins what has ended, takes what is idle for one more job, culls, copies. */
active proctype client() {
    byte x, d, y;
    bool mine[KERNELS];
    do
    :: atomic { joinable[0] -> d = 0; joinable[0] = false } goto join
    :: atomic { joinable[1] -> d = 1; joinable[1] = false } goto join
    :: atomic { jobs_given < 4 && listed[0] -> listed[0] = false; d = 0; jobs_given++ } goto start
    :: atomic { jobs_given < 4 && listed[1] -> listed[1] = false; d = 1; jobs_given++ } goto start
    :: true -> goto cull
    :: true -> break

join:
        if
        :: atomic { life[d] == ENDED -> life[d] = IDLE }
            listed[d] = true /* kthread_release */
        :: life[d] == RETIRED -> exited[d]; assert(!freed[d]); freed[d] = true
        fi;
        d = 0;
        goto next

start:
        assert(!freed[d] && !exited[d]);
        if
        :: life[d] = RUNNING
        :: life[d] = DETACHED
        fi;
        atomic { assert(post[d] < JOB); post[d] = JOB; d = 0 }
        goto next

cull: /* kthread_before_copy, with kthread_cull: without that those that stay are parked, and in no lock of libc's */
        copies++;
        if
        :: true ->
            do
            :: atomic { listed[0] -> listed[0] = false; post[0] = QUIT; mine[0] = true }
            :: atomic { listed[1] -> listed[1] = false; post[1] = QUIT; mine[1] = true }
            :: atomic { !listed[0] && !listed[1] -> break }
            od;
            y = 0;
            do
            :: y < KERNELS && mine[y] -> exited[y]; assert(!freed[y]); freed[y] = true; mine[y] = false; y++
            :: y < KERNELS && !mine[y] -> y++
            :: y == KERNELS -> y = 0; break
            od
        :: true
        fi;
        departing == 0; /* await_departures */
#ifndef NO_REAP
        reap(x);
#endif
#ifndef NO_UNJOINED
        do
        :: y < KERNELS ->
            if
            :: life[y] == RETIRED && left_tid[y] -> exited[y]
            :: else
            fi;
            y++
        :: y == KERNELS -> y = 0; break
        od;
#endif
        assert(in_libc == 0);
        assert(in_libc == 0); /* while it is copied */
        copies--;
next:
        skip
    od
}
