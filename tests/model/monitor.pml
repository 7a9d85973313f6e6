// SPDX-License-Identifier: Apache-2.0
/* Ticks from a kernel thread (src/preempt/monitor.h): the monitor sleeps until the first that is due; workers ask for ticks,
 * take them, and go from one kernel thread to another. Run by run-spin.sh; README.md says what is covered and what is left
 * out.
 *
 * One step of the model is one atomic operation of the code. The clock may go on at any time, up to END. The kernel may refuse
 * to queue a signal, REFUSALS times, not after that. A signal waits at a kernel thread until that takes it: then it is a tick of
 * the worker that is there by now, or nobody's. In the end no tick is overdue, none is waited for that does not come, and the
 * last that was sent has come to its worker.
 *
 * Each -D<VARIANT> leaves out one thing that the protocol needs. The search must then fail:
 *   STALE_UNTIL       while the monitor looks `until` is what it was
 *   WEAK_ASKER        he reads `until` before he has said when
 *   BLIND_POKE        he wakes the monitor without changing its word
 *   BLIND_MOVE_ON     the monitor stores when the next is due, whatever was asked for meanwhile
 *   WEAK_SENDER       it reads which kernel thread it is before it says that a signal is sent
 *   MOVER_CLEARS_FIRST the worker says that none is before it says where it is now
 *   MOVER_CLEARS_EARLY ... before the handler of the kernel thread that it is on finds it there
 *   NO_CLEAR          the worker that has moved does not say that none is
 *   NOT_AGAIN         ... and lets be what was sent and has not come to it
 *   ONE_TRY           where a signal cannot be queued the monitor leaves it at that, whatever else is to come */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ASKS
#define ASKS 2
#endif
#ifndef MOVES
#define MOVES 1
#endif

#ifndef REFUSALS
#define REFUSALS 1
#endif
#ifndef END
#define END 3
#endif
#define NEVER   9
#define THREADS (WORKERS + 1)

byte now = 1;
byte word, until = NEVER;
bool asleep;
byte due[WORKERS];     /* 0: none */
bool repeats[WORKERS]; /* in the word of `due` */
bool sent[WORKERS];
bool unseen[WORKERS]; /* a tick was sent since the worker took one or asked for others */
bool interrupted[WORKERS];
byte tid[WORKERS];
byte on[THREADS];      /* the worker there, + 1, as its handler finds it */
bool taken[THREADS];   /* a worker is there, or about to be */
byte pending[THREADS]; /* signals */
byte wanted[WORKERS];  /* the next tick that was asked for and has not been sent */
byte done;             /* workers that do nothing any more */
byte refused;
bool over;

inline poke() {
#ifndef BLIND_POKE
    word = (word + 1) % 8;
#endif
    asleep = false; /* futex_wake */
}

/* monitor_set: at the next moment, then each if `more`. */
inline ask(w, more) {
    when = now + 1;
    d_step {
        sent[w] = false;
        unseen[w] = false;
    };
#ifdef WEAK_ASKER
    seen = until;
#endif
    d_step {
        due[w] = when;
        wanted[w] = when;
        repeats[w] = more;
    }
#ifndef WEAK_ASKER
    seen = until;
#endif
    if
    :: when < seen -> atomic { poke() }
    :: else
    fi
}

/* tick_has_arrived: what has gone astray is sent once more. */
inline arrive(w) {
    d_step {
        was = sent[w];
        sent[w] = false
    };
    d_step {
        was = was || interrupted[w];
        interrupted[w] = false
    };
#ifndef NOT_AGAIN
    if
    :: was ->
        d_step {
            was = interrupted[w];
            interrupted[w] = true
        };
        if
        :: !was -> pending[tid[w]]++
        :: else
        fi
    :: else
    fi
#endif
}

/* To the free thread. */
inline move(w) {
    atomic {
        t = 0;
        do
        :: t < THREADS && taken[t] -> t++
        :: else -> break
        od;
        if
        :: t < THREADS ->
            taken[t] = true;
            on[tid[w]] = 0;
            taken[tid[w]] = false
        :: else
        fi
    };
    if
    :: t < THREADS ->
#ifdef MOVER_CLEARS_FIRST
        sent[w] = false;
#endif
        tid[w] = t;
#ifdef MOVER_CLEARS_EARLY
        sent[w] = false;
#endif
        on[t] = w + 1;
#if !defined(MOVER_CLEARS_FIRST) && !defined(MOVER_CLEARS_EARLY) && !defined(NO_CLEAR)
        arrive(w)
#endif
    :: else
    fi
}

proctype worker(byte w) {
    byte asks = ASKS, moves = MOVES, when, seen, t;
    bool was;
    do
    :: asks > 0 ->
        asks--;
        if
        :: ask(w, false)
        :: ask(w, true)
        fi
    :: moves > 0 ->
        moves--;
        move(w)
    :: asks == 0 && moves == 0 -> break
    od;
    done++
}

/* A kernel thread takes what is pending there. */
proctype kernel_thread(byte t) {
end:
    do
    :: atomic {
            pending[t] > 0 ->
            pending[t]--;
            if
            :: on[t] != 0 ->
                interrupted[on[t] - 1] = false;
                sent[on[t] - 1] = false;
                unseen[on[t] - 1] = false
            :: else
            fi
        }
    :: over -> break
    od
}

proctype clock() {
    do
    :: now < END -> now++
    :: now == END -> break
    od
}

proctype monitor() {
    byte w, at, next, earliest, seen, to;
    bool was;
    do
    :: over -> break
    :: else ->
#ifndef STALE_UNTIL
        until = NEVER;
#endif
        seen = word;
        earliest = NEVER;
        w = 0;
        do
        :: w < WORKERS ->
            at = due[w];
            do
            :: at != 0 && at <= now ->
#ifdef BLIND_MOVE_ON
                next = (repeats[w] && now < END -> now + 1 : 0);
                d_step {
                    wanted[w] = (due[w] == at -> next : wanted[w]);
                    due[w] = next
                };
                was = true;
#else
                atomic { /* the cas, on the word that holds both */
                    if
                    :: due[w] == at ->
                        next = (repeats[w] && now < END -> now + 1 : 0);
                        due[w] = next;
                        wanted[w] = next;
                        was = true
                    :: else ->
                        at = due[w];
                        was = false
                    fi
                };
#endif
                if
                :: was ->
                    at = next;
#ifdef WEAK_SENDER
                    to = tid[w];
#endif
                    d_step {
                        was = sent[w];
                        sent[w] = true;
                        unseen[w] = true
                    };
                    if
                    :: !was ->
#ifndef WEAK_SENDER
                        to = tid[w];
#endif
                        if
                        :: pending[to]++
                        :: atomic {
                                refused < REFUSALS && now < END -> refused++
                            };
                            sent[w] = false;
#ifndef ONE_TRY
                            atomic { /* the cas: where none is due behind it */
                                if
                                :: next == 0 && due[w] == 0 ->
                                    due[w] = (now < END -> now + 1 : END);
                                    repeats[w] = false;
                                    wanted[w] = due[w];
                                    at = due[w]
                                :: next == 0 && due[w] != 0 -> at = due[w]
                                :: else
                                fi
                            }
#endif
                        fi
                    :: else
                    fi
                :: else
                fi
            :: else -> break
            od;
            if
            :: at != 0 && at < earliest -> earliest = at
            :: else
            fi;
            w++
        :: else -> break
        od;
        until = earliest;
        atomic {
            if
            :: word == seen -> asleep = true
            :: else
            fi
        };
end_asleep:
        atomic {
            !asleep || now >= until || over -> asleep = false
        }
    od
}

/* Nothing goes on any more. */
proctype watcher() {
    byte w;
    timeout;
    assert(done == WORKERS);
    for (w : 0 .. WORKERS - 1) {
        assert(due[w] == 0 || due[w] > now);
        assert(wanted[w] == 0 || wanted[w] > now);
        assert(!sent[w]);
        assert(!unseen[w]);
    }
    over = true
}

init {
    byte i;
    atomic {
        for (i : 0 .. WORKERS - 1) {
            tid[i] = i;
            on[i] = i + 1;
            taken[i] = true;
            run worker(i);
        }
        for (i : 0 .. THREADS - 1) {
            run kernel_thread(i);
        }
        run clock();
        run monitor();
        run watcher();
    }
}
