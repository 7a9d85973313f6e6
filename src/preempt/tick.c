// SPDX-License-Identifier: Apache-2.0
/* See sched/tick.h. */
#include "sched/tick.h"

#include <sys/prctl.h>

#include "os/clock.h"
#include "os/membarrier.h"
#include "os/syscall.h"
#include "preempt/frame_stack.h"
#include "preempt/monitor.h"
#include "preempt/preempt.h"
#include "sched/front.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"
#include "thrum/preempt.h"

/* Workers tick one after another: many signals at the same time would make their kernel threads wait for each other
 * in the kernel. */
static uint64_t next_phase(const struct worker *worker, uint64_t period) {
    uint32_t count = load_acquire(&runtime.count);
    uint64_t phase = period * worker->id / (count > worker->id ? count : worker->id + 1);
    uint64_t now = timer_now();
    return now - (now - phase) % period + period;
}

/* Its timer may just become another (carrier.c): the first tick of the old one is its last (handler.c), and the new
 * one is set there. */
static void set(struct worker *worker, uint64_t first, uint64_t period) {
    struct alarm alarm = {load_relaxed(&worker->tick.thread.alarm.id)};
    bool by_monitor = alarm.id == ALARM_NONE;
    if (by_monitor || load_relaxed(&worker->tick.monitor.due) != 0)
        monitor_set(worker, by_monitor ? first : 0, period != 0);
    alarm_set(&alarm, first, period);
}

/* Where threads have different ranks a sleeper may precede the present one: there is one more tick, at its deadline,
 * if the next comes later. Where all are equal it waits for the end of a slice anyway. */
static bool has_ranks(const struct worker *worker) {
    return load_relaxed(&worker->sched) != NULL;
}

/* A deadline that has passed was not seen by the tick requested for it, or not yet. If another thread is about to
 * fire the timer, ticks do not follow each other at once meanwhile. */
static uint64_t not_over(uint64_t deadline) {
    uint64_t now = timer_now();
    return deadline > now ? deadline : now + THRUM_SLICE_MIN * UINT64_C(1000);
}

/* The earlier of `next` and the tick for a deadline. */
static uint64_t first_tick(uint64_t deadline, uint64_t next) {
    if (deadline >= next)
        return next;
    uint64_t early = not_over(deadline);
    return early < next ? early : next;
}

/* What the worker's order prefers to what it has picked out of turn. Only the present unit adds to the deque. */
static bool others_precede(const struct worker *worker) {
    return !deque_is_empty(&worker->deque) || !fifo_is_empty(&worker->inbox);
}

/* A unit that computes gives way before its slice is over: to a sleeper whose deadline has come, if no other tick has
 * taken a unit away since GAP_US; and when its turn is over, if it was picked out of turn (sched/pool/fair.h). LATE_US: so
 * late a worker whose units switch often fires its timers by itself. */
static uint64_t until_it_gives_way(const struct worker *worker) {
    enum { LATE_US = 100, GAP_US = 200 };
    uint64_t deadline = load_relaxed(&worker->timers.next), left = fair_left(&worker->fair),
             turn = TIMER_NEVER;
    if (left != FAIR_NEVER && left != 0 &&
        others_precede(worker)) /* 0: a tick was there, and could do nothing */
        turn = timer_now() + left;
    if (deadline == TIMER_NEVER)
        return turn;
    uint64_t soonest = load_relaxed(&worker->tick.last.changed) + GAP_US * UINT64_C(1000);
    deadline += LATE_US * UINT64_C(1000);
    deadline = deadline > soonest ? deadline : soonest;
    return deadline < turn ? deadline : turn;
}

static bool present_computes(const struct worker *worker) {
    return load_relaxed(&worker->tick.last.computes) == load_relaxed(&worker->counters.switches) + 1;
}

static uint64_t first_before(const struct worker *worker, uint64_t next) {
    if (has_ranks(worker))
        return first_tick(load_relaxed(&worker->timers.next), next);
    return present_computes(worker) ? first_tick(until_it_gives_way(worker), next) : next;
}

static void ask(struct worker *worker) {
    uint64_t period = load_relaxed(&preempt.period), next = next_phase(worker, period);
    uint64_t first = first_before(worker, next);
    store_relaxed(&worker->tick.request.period, period);
    store_relaxed(&worker->tick.request.early, first < next);
    set(worker, first, period);
}

void tick_begin(struct worker *worker) {
    store_relaxed(&worker->tick.last.at, timer_now());
    store_relaxed(&worker->tick.state, TICK_ON);
    ask(worker);
}

void tick_off(struct worker *worker) {
    uint32_t state = load_relaxed(&worker->tick.state);
    if (state != TICK_ON && state != TICK_OFF) /* OFF: the request came too late */
        return;
    set(worker, 0, 0);
    store_relaxed(&worker->tick.state, TICK_OFF);
}

static bool leave_rest(struct worker *worker, enum tick_state to) {
    uint32_t resting = TICK_REST;
    /* Pairs with tick_rest's fences: its request, and the count, came before REST. */
    if (!cas_acq_rel(&worker->tick.state, &resting, to))
        return false;
    fetch_sub_relaxed(&runtime.idle.resting, 1U);
    return true;
}

void tick_end(struct worker *worker) {
    leave_rest(worker, TICK_OFF);
}

void tick_resume(struct worker *worker) {
    if (!leave_rest(worker, TICK_ON))
        return;
    store_relaxed(&worker->tick.last.at, timer_now());
    ask(worker);
}

/* The next regular tick comes too late for a deadline, or for the end of a turn. */
static void ask_if_sooner(struct worker *worker) {
    if (load_relaxed(&worker->tick.state) != TICK_ON)
        return;
    uint64_t next = next_phase(worker, load_relaxed(&worker->tick.request.period));
    if (first_before(worker, next) < next)
        ask(worker);
}

void tick_has_deadline(struct worker *worker, uint64_t deadline) {
    if (load_relaxed(&worker->tick.state) != TICK_ON || !has_ranks(worker))
        return;
    uint64_t next = next_phase(worker, load_relaxed(&worker->tick.request.period));
    if (first_tick(deadline, next) < next)
        ask(worker);
}

void tick_finds_computing(struct worker *worker) {
    store_relaxed(&worker->tick.last.computes, load_relaxed(&worker->counters.switches) + 1);
    if (!has_ranks(worker))
        ask_if_sooner(worker);
}

bool tick_gives_way(const struct worker *worker, bool has_woken) {
    return !has_ranks(worker) && present_computes(worker) && others_precede(worker) &&
           (has_woken || fair_is_over(&worker->fair));
}

void tick_wake_resting(void) {
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++)
        if (load_relaxed(&runtime.workers[i]->tick.state) == TICK_REST)
            tick_resume(runtime.workers[i]);
}

/* A scheduler of the program's alone knows what it holds, or what is in the pools of a stacked one. All workers fire
 * timers without an owner. A scheduler with pools runs units that are in no pool when its pools are empty: not in the
 * place of one that would return to a pool. */
/* Preempted units may be in a front end's pools, of which the core knows nothing. Its thread that chooses rests no ticks then: it
 * may come to wait for a lock that one of them holds. */
static bool has_others_of_front(const struct worker *worker) {
    return front_relieve != NULL && load_relaxed(&worker->current->fn) == front_shape.entry &&
           load_relaxed(&preempt.away_in_pools) != 0;
}

bool tick_has_others(const struct worker *worker) {
    const struct thrum_sched *sched = worker->sched;
    return has_others_of_front(worker) || worker_is_called_away(worker) || !fifo_is_empty(&worker->inbox) ||
           worker->loop != &worker->base || load_relaxed(&runtime.orphans) ||
           (sched != NULL && (sched->may_hold || scheduler_has_work(sched))) ||
           ((sched == NULL || unit_place(worker->current) != UNIT_POOLED) && has_work_for_any());
}

bool tick_has_others_behind(const struct worker *worker) {
    return worker->sched != NULL && has_work_for_any();
}

bool tick_holds_others_up(const struct worker *worker) {
    return worker->sched != NULL && (!fifo_is_empty(&worker->inbox) || load_relaxed(&runtime.orphans) ||
                                     scheduler_has_work(worker->sched) || has_work_for_any());
}

static bool is_needed(const struct worker *worker) {
    if (load_relaxed(&worker->current->kind) == UNIT_LOOP)
        return tick_holds_others_up(worker);
    return tick_has_others(worker) || tick_has_others_behind(worker) ||
           unit_belongs_elsewhere(worker, worker->current);
}

/* When to look at the worker's pools. A pool whose time has passed, and which has nothing, is looked at at the next
 * tick. */
INSIDE static uint64_t pools_until(const struct worker *worker) {
    uint64_t until = worker->sched != NULL ? scheduler_wait_until(worker->sched) : TIMER_NEVER;
    uint64_t now = until != TIMER_NEVER ? timer_now() : 0;
    return until > now ? until : now + load_relaxed(&preempt.period);
}

void tick_rest(struct worker *worker) {
    if (load_relaxed(&worker->tick.state) == TICK_NEVER || worker->loop != &worker->base)
        return;
    uint64_t deadline = load_relaxed(&worker->timers.next), pools = pools_until(worker);
    deadline = pools < deadline ? pools : deadline;
    store_relaxed(&worker->tick.request.early, false);
    set(worker, deadline == TIMER_NEVER ? 0 : not_over(deadline), 0);
    fence_seq_cst(); /* REST comes after `due` for the one that ends the rest: pairs with leave_rest's cas */
    if (load_relaxed(&worker->tick.state) == TICK_REST)
        return; /* still: another signal had come while it came to rest */
    /* First: the thread that ends the rest counts it out; pairs with the loads after a push. */
    fetch_add_seq_cst(&runtime.idle.resting, 1U);
    store_relaxed(&worker->tick.state, TICK_REST);
    /* Pairs with fence_frequent in idle_wake_check, and with the fences of others that wake. */
    fence_rare(runtime.fenced);
    if (is_needed(worker))
        tick_resume(worker);
}

/* A unit that started since the last tick may have done nothing yet: this tick is late, as the kernel thread was not
 * running, or the next one follows closely; or a handoff from one carrier to another has taken until now. A unit
 * preempted then would be so again and again, where the kernel takes turns as regularly as ticks do. Behind a late
 * tick the next may come at once, as ticks have fixed times: the slice begins with the late one. With the shortest
 * periods an interrupt takes half, so a unit that still stands where it resumed is taken to have done nothing for
 * longer. */
static bool has_just_begun(struct tick *tick, uint64_t period, bool is_first) {
    uint64_t now = timer_now();
    bool is_late = is_first && tick->last.late;
    if (is_late)
        tick->last.changed = now;
    return is_late || now - tick->last.changed < (tick->last.stands ? period / 4 * 3 : period / 2);
}

/* --- units that wait in the kernel -------------------------------------------------------------------- */

static const uint64_t shortest = THRUM_SLICE_MIN * UINT64_C(1000);

/* What it waits for may take many turns of its own, each of which would cost its worker a slice. A call that has
 * ended meanwhile returns at once. So a unit that is found there again after the shortest slice still waits, and
 * others run.
 *
 * If all that a worker runs wait so, they would take a part of a CPU for ever. After each round of such turns the
 * next ones are twice as long, until a round takes ROUND_MS: a unit whose call has ended is not asked for at most so
 * long. A unit that computes to the end of its slice, or has done something in its turn, makes them short again. */
void tick_look_soon(struct worker *worker) {
    struct tick *tick = &worker->tick;
    uint64_t period = load_relaxed(&preempt.period);
    uint64_t span = tick->kernel_wait.span > shortest ? tick->kernel_wait.span : shortest;
    if (load_relaxed(&tick->state) != TICK_ON || period <= 2 * shortest)
        return;
    tick->kernel_wait.again = load_relaxed(&worker->counters.switches) + 1;
    store_relaxed(&tick->request.period, period);
    store_relaxed(&tick->request.early, true);
    set(worker, timer_now() + span, period);
}

static void kernel_wait_reset(struct tick *tick) {
    tick->kernel_wait.span = 0;
    tick->kernel_wait.turns = 0;
}

static void has_waited_through(struct worker *worker, uint64_t switches) {
    enum { ROUND_MS = 50 };
    struct tick *tick = &worker->tick;
    if (!tick->kernel_wait.has_not_moved) {
        kernel_wait_reset(tick);
        return;
    }
    bool in_a_row = switches - tick->kernel_wait.switches <= 1;
    tick->kernel_wait.switches = switches;
    tick->kernel_wait.turns = in_a_row ? tick->kernel_wait.turns + 1 : 1;
    uint64_t queued = worker_count_queued(worker), period = load_relaxed(&preempt.period);
    if (tick->kernel_wait.turns <= queued)
        return;
    uint64_t longest = ROUND_MS * UINT64_C(1000000) / (queued + 1), span = tick->kernel_wait.span;
    longest = longest < period / 2 ? longest : period / 2;
    span = span > shortest ? 2 * span : 2 * shortest;
    tick->kernel_wait.span = span < longest ? span : longest;
    tick->kernel_wait.turns = 0;
}

static bool waits_again(struct worker *worker, uint64_t switches) {
    struct tick *tick = &worker->tick;
    bool still = tick->kernel_wait.again == switches + 1 && tick->kernel_wait.in_kernel;
    tick->kernel_wait.again = 0;
    tick->kernel_wait.in_kernel = false;
    if (still)
        has_waited_through(worker, switches);
    return still;
}

/* nanosleep() tells a sleeper how long it still has to sleep, which is too long by the slack of timers: with slices
 * no longer than the slack a loop that sleeps for the rest never ends. 50 us is the kernel's default. On the kernel
 * thread. Children inherit it, which costs them nothing but some more wake-ups. */
static void fit_slack(struct tick *tick, uint64_t period) {
    enum { USUAL_NS = 50000, PART = 16 };
    uint64_t slack = period / PART;
    if (period > 4 * USUAL_NS || tick->thread.slack == slack)
        return;
    long now = sys(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0);
    tick->thread.slack = slack;
    if (now <= 0 || (uint64_t)now <= slack)
        return;
    if (tick->thread.slack_before == 0)
        tick->thread.slack_before = (uint64_t)now;
    sys(SYS_prctl, PR_SET_TIMERSLACK, slack, 0, 0, 0);
}

void tick_slack_back(const struct tick *tick) {
    if (tick->thread.slack != 0 && tick->thread.slack_before != 0)
        sys(SYS_prctl, PR_SET_TIMERSLACK, tick->thread.slack_before, 0, 0, 0);
}

/* --- slices ------------------------------------------------------------------------------------------- */

bool tick_ends_slice(struct worker *worker, const struct thrum_unit *unit, uint64_t slice) {
    struct tick *tick = &worker->tick;
    uint64_t switches = load_relaxed(&worker->counters.switches),
             period = load_relaxed(&tick->request.period);
    bool same = tick->last.unit == unit && tick->last.switches == switches;
    bool early = load_relaxed(&tick->request.early);
    bool waits = waits_again(worker, switches), urgent = waits || load_relaxed(&tick->asked.urgent);
    if (urgent)
        store_relaxed(&tick->asked.urgent, 0);
    fit_slack(tick, load_relaxed(&preempt.period));
    if ((early || period != load_relaxed(&preempt.period)) && load_relaxed(&tick->state) == TICK_ON)
        ask(worker);
    else
        ask_if_sooner(worker); /* than the one after this, before which a turn may end that lasts still */
    bool came_early = tick->last.came_early, has_begun = !has_just_begun(tick, period, !same);
    tick->last.came_early = tick->last.late = false;
    tick->last.unit = unit;
    tick->last.switches = switches;
    if (!same)
        tick->last.ran = 0;
    if (came_early) /* no part of a slice has passed since the last one that counts */
        return urgent;
    tick->last.ran = tick->last.ran != 0 ? tick->last.ran + 1 : has_begun;
    bool is_over = tick->last.ran * period >= slice;
    if (is_over && !waits)
        kernel_wait_reset(tick);
    return urgent || is_over;
}

/* --- for requesters ----------------------------------------------------------------------------------- */

/* Workers whose next tick is an old period away. A worker that requests one itself right now, for the old period,
 * does so again then. */
static void ask_all(void) {
    for (uint32_t i = 0; i < load_acquire(&runtime.count); i++)
        if (load_relaxed(&runtime.workers[i]->tick.state) == TICK_ON)
            ask(runtime.workers[i]);
}

/* Also where a tool rules all preemption out. */
static bool has_mode(enum thrum_preempt_mode mode) {
    switch (mode) {
    case THRUM_PREEMPT_DEFAULT:
    case THRUM_PREEMPT_NONE: return true;
    case THRUM_PREEMPT_YIELD: return preempt.settings.mode != THRUM_PREEMPT_NONE;
    case THRUM_PREEMPT_LEND:
    case THRUM_PREEMPT_OWN_TLS: return preempt_lends(preempt.settings.mode);
    case THRUM_PREEMPT_KLT: return preempt_carries(preempt.settings.mode);
    default: return false;
    }
}

bool tick_can_preempt(enum thrum_preempt_mode mode, uint32_t slice) {
    uint64_t wanted = slice * UINT64_C(1000), period = load_relaxed(&preempt.period);
    if (!has_mode(mode))
        return false;
    while (preempt.on && wanted != 0 && wanted < period)
        if (cas_relaxed(&preempt.period, &period, wanted)) {
            ask_all();
            break;
        }
    return true;
}

/* --- at once ------------------------------------------------------------------------------------------ */

static void ring(struct worker *worker) {
    /* Pairs with the exchange of the handler: that sees `urgent`. */
    if (exchange_acq_rel(&worker->tick.asked.interrupted, 1U) == 0 &&
        alarm_ring(load_relaxed(&worker->tid), preempt.settings.signal) != 0)
        store_relaxed(&worker->tick.asked.interrupted, 0);
}

/* To itself it is like a tick that comes in a region. A sender that sees that a signal is on its way has been seen by
 * the one that takes it: both change `interrupted` atomically. Modelled in tests/model/interrupt.pml. */
void tick_interrupt(struct worker *worker) {
    if (load_relaxed(&worker->tick.state) == TICK_NEVER)
        return;
    store_relaxed(&worker->tick.asked.urgent, 1);
    if (worker == worker_here())
        ARCH_TLS_CLEAR_TOP(thrum_nopreempt);
    else
        ring(worker);
}

/* --- its kernel thread -------------------------------------------------------------------------------- */

/* A timer has room for its signal from the beginning; others use the limit of queued signals. This sends one tick
 * that was not requested. */
static bool can_be_sent(int32_t tid) {
    return alarm_ring(tid, preempt.settings.signal) == 0;
}

bool tick_source(struct alarm *alarm, int32_t tid) {
    enum thrum_tick_source source = preempt.settings.source;
    alarm->id = ALARM_NONE;
    if (source != THRUM_TICK_MONITOR && alarm_make(alarm, tid, preempt.settings.signal) == 0)
        return true;
    return source != THRUM_TICK_TIMER && can_be_sent(tid) && monitor_start() == 0;
}

bool tick_thread_begin(struct worker *worker) {
    if (!tick_source(&worker->tick.thread.alarm, worker->tid))
        return false;
    store_relaxed(&worker->tick.asked.interrupted, 0);
    store_relaxed(&worker->tick.state, TICK_OFF);
    return true;
}

void tick_has_moved(struct worker *worker) {
    if (load_relaxed(&worker->tick.state) == TICK_ON)
        ask(worker);
}

void tick_has_arrived(struct worker *worker) {
    struct tick *tick = &worker->tick;
    /* This and the next pair with the exchanges of the monitor and of ring: they see the tid. */
    bool by_monitor = exchange_acq_rel(&tick->monitor.sent, 0U) != 0;
    bool at_once = exchange_acq_rel(&tick->asked.interrupted, 0U) != 0;
    if (by_monitor || at_once || load_relaxed(&tick->asked.urgent))
        ring(worker);
}

void tick_end_for_good(struct worker *worker) {
    leave_rest(worker, TICK_OFF);
    store_relaxed(&worker->tick.state, TICK_NEVER);
}

void tick_thread_end(struct worker *worker) {
    if (load_relaxed(&worker->tick.state) == TICK_NEVER)
        return;
    leave_rest(worker, TICK_OFF);
    store_relaxed(&worker->tick.state, TICK_NEVER);
    set(worker, 0, 0);
    alarm_delete(&worker->tick.thread.alarm);
    tick_slack_back(&worker->tick);
    worker->tick.thread.slack = worker->tick.thread.slack_before = 0;
    if (worker->tick.frame.left != NULL) {
        enter();
        frame_stack_give(worker->tick.frame.left);
        leave();
        worker->tick.frame.left = NULL;
    }
}
