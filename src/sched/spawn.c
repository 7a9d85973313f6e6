// SPDX-License-Identifier: Apache-2.0
/* The life of a unit, of which the beginning is here.
 *
 *   1. thrum_spawn takes a descriptor and a stack. The child runs at once, on a call: its parent is enqueued in the run
 *      queue, where a thief may take it (work first: what is in flight stays as little as on a stack). If the parent may
 *      not leave its worker, or the caller asks for it, or the parent has just been stolen, the child is enqueued instead.
 *   2. unit_main (end.c, as the next) runs fn(arg) on the child's stack.
 *   3. finish: the end is published in `join`, the stack goes back to the worker, and the worker resumes the parent, if it
 *      is still there, by a plain return; else it runs what pick finds. A thread that ends from within comes here by
 *      unit_ended instead (exit.c).
 *   4. The joiner reads the result and frees the descriptor (join.c). */
#include <errno.h>
#include <string.h>

#include "base/misuse.h"
#include "sched/attributes.h"
#include "sched/life.h"
#include "sched/upward.h"
#include "sched/worker.h"
#include "thrum/thrum.h"

static __attribute__((noinline)) void clear_extras(struct thrum_unit *unit) {
    unit->permit = 0;
    unit->cancel = 0;
    unit->id = 0;
    unit->deadline = 0;
    unit->name[0] = unit->name[1] = 0;
    unit->has_cleanups = false;
    unit->slice = 0;
    unit->clocked = 0;
}

static void unit_set(struct thrum_unit *unit, void *(*fn)(void *), void *arg, struct thrum_unit *join) {
    unit->fn = fn;
    unit->arg = arg;
    store_relaxed(&unit->join, join);
    unit->called_child = NULL;
    if (__builtin_expect(unit->extras, 0))
        clear_extras(unit);
    unit->kind = UNIT_ULT; /* from here eight bytes that are written at once */
    unit->stack_class = STACK_CLASS_DEFAULT;
    unit->escaped = false;
    unit->priority = 0;
    unit->extras = false;
    unit->cancellable = false;
    unit->at_cancel_point = false;
    unit->measured = false;
    unit->cancels_locks = false;
    unit->begins_solo = false;
    unit->unused = 0;
    unit->preempt = THRUM_PREEMPT_DEFAULT;
}

/* Without `extras` it is 0. */
static void unit_set_deadline(struct thrum_unit *unit, uint64_t deadline) {
    if (deadline == 0)
        return;
    unit->deadline = deadline;
    unit->extras = true;
}

/* Until it ends (worker.h). */
static void announce_user_stack(struct thrum_unit *unit) {
    struct unit_head *head = unit_head_of(unit);
    struct annotate_stack stack = {head->low, (size_t)(unit->stack_top - head->low)};
    head->annotation = annotate_stack_new(stack);
}

/* False: the runtime does not preempt in this way. */
static bool set_preempt(struct thrum_unit *unit, const struct attributes *attributes) {
    unit->preempt = attributes->preempt;
    unit->slice = attributes->slice;
    unit->extras |= attributes->slice != 0;
    return tick_can_preempt((enum thrum_preempt_mode)attributes->preempt, attributes->slice);
}

/* False: `attributes` contradict themselves, or the present runtime. */
static bool unit_set_attributes(struct thrum_unit *unit, const struct attributes *attributes) {
    unit->stack_class = attributes->stack_class;
    unit->priority = attributes->priority;
    unit_set_deadline(unit, attributes->deadline);
    unit->pool = attributes->pool;
    unit->cancellable = attributes->flags & THRUM_SPAWN_CANCELLABLE;
    unit->measured = attributes->flags & THRUM_SPAWN_MEASURED && attributes->stack_top == NULL;
    unit->cancels_locks = attributes->flags & THRUM_SPAWN_CANCEL_LOCKS;
    unit->begins_solo = attributes->flags & THRUM_SPAWN_OWN_KTHREAD;
    if (attributes->stack_top != NULL) {
        unit->stack_top = attributes->stack_top;
        unit_head_of(unit)->low = attributes->stack_low;
        announce_user_stack(unit);
    }
    if (__builtin_expect(attributes->preempt != 0 || attributes->slice != 0, 0) &&
        !set_preempt(unit, attributes))
        return false;
    if (attributes->pool != NULL)
        unit->kind = UNIT_POOLED;
    if (attributes->worker == 0)
        return true;
    return unit->kind == UNIT_ULT && unit_bind(unit, attributes->worker - 1);
}

/* Begun by the worker that takes it from a queue. A tasklet has no floating-point control state of its own: reading
 * the creator's and the host's would take longer than all the rest. */
static inline void prepare(struct thrum_unit *unit) {
    if (unit->stack_class != STACK_CLASS_USER)
        unit->stack_top = NULL;
    if (unit->kind != UNIT_TASKLET)
        unit->float_control = arch_float_control();
    store_relaxed(&unit->sp, UNIT_NEW);
}

struct thrum_unit *unit_make(struct worker *worker, const struct attributes *attributes, void *(*fn)(void *),
                             void *arg) {
    struct thrum_unit *unit = unit_new(worker);
    if (unit == NULL)
        return NULL;
    unit_set(unit, fn, arg, JOIN_DETACHED);
    if (!unit_set_attributes(unit, attributes)) {
        unit_free(worker, unit);
        return NULL;
    }
    unit->escaped = true;
    prepare(unit);
    return unit;
}

INSIDE static void enqueue(struct worker *worker, struct thrum_unit *unit) {
    prepare(unit);
    unit_wake(worker, unit);
}

/* True if the creator may wait in the run queue meanwhile, which it may not in a region of its own. (An atomic load
 * of `kind` costs a spawn 3 ns with gcc 12: it is not folded into the comparison. A concurrent move of the creator is
 * seen or not, as if it had come a little later.) */
INSIDE static inline __attribute__((always_inline)) bool may_run_at_once(const struct worker *worker,
                                                                         const struct thrum_unit *self) {
    return self->kind == UNIT_ULT && worker->not_at_once == 0 && !is_in_region();
}

/* Likewise, also of a creator that was stolen: some of its children are queued (note_theft). */
INSIDE static __attribute__((noinline)) bool may_run_now(struct worker *worker, const thrum_attr_t *attr) {
    if (__builtin_expect(worker->queues != 0, 0)) {
        if (worker->current->kind != UNIT_ULT || worker->has_scheduler || is_in_region())
            return false;
        bool was_stolen = worker->current == worker->stolen;
        worker->queues = was_stolen ? worker->queues - 1 : 0;
        if (was_stolen)
            return false;
    }
    if (!may_run_at_once(worker, worker->current) || worker_owes_from(worker, worker->current))
        return false;
    if (attr == NULL)
        return true;
    const struct attributes *attributes = attributes_of(attr);
    return (attributes->flags & ~(unsigned)(THRUM_SPAWN_CANCELLABLE | THRUM_SPAWN_CANCEL_LOCKS)) == 0 &&
           attributes->pool == NULL && attributes->worker == 0 && attributes->stack_top == NULL;
}

LEAVES static inline __attribute__((always_inline)) int spawn_now(struct worker *worker, thrum_t *thread,
                                                                  struct thrum_unit *unit, bool is_own) {
    unsigned stack_class = unit->stack_class;
    unit->stack_top = depot_get(&stack_depots[stack_class], &worker->stacks[stack_class]);
    if (unit->stack_top == NULL) {
        unit_free(worker, unit);
        leave();
        return EAGAIN;
    }
    struct thrum_unit *self = worker->current;
    if (is_own)
        call_own(worker, self, unit);
    else
        run_child(worker, self, unit, self);
    self->called_child = NULL;
    leave();
    if (thread != NULL)
        *thread = unit;
    return 0;
}

static inline bool is_at_hand(const struct depot_cache *cache) {
    return cache->loaded != NULL && cache->loaded->count > 0;
}

/* A queued unit gets its stack when it begins, mostly that of the unit before it. Can a stack be had at all?
 * Otherwise it might wait for ever. */
INSIDE static bool has_stack_for(struct worker *worker, const struct thrum_unit *unit) {
    if (unit->stack_class >= STACK_CLASSES)
        return true; /* it needs none */
    struct depot *depot = &stack_depots[unit->stack_class];
    struct depot_cache *cache = worker != NULL ? &worker->stacks[unit->stack_class] : &depot->shared;
    if (worker != NULL && is_at_hand(cache))
        return true;
    char *top = worker != NULL ? depot_get(depot, cache) : depot_get_shared(depot);
    if (top != NULL && worker != NULL)
        depot_put(depot, cache, top);
    else if (top != NULL)
        depot_put_shared(depot, top);
    return top != NULL;
}

/* A unit that is never joined. */
INSIDE static inline struct thrum_unit *tasklet_new(struct worker *worker, void *(*fn)(void *), void *arg) {
    struct thrum_unit *tasklet = unit_new(worker);
    if (tasklet == NULL)
        return NULL;
    unit_set(tasklet, fn, arg, JOIN_DETACHED);
    tasklet->kind = UNIT_TASKLET;
    tasklet->stack_class = STACK_CLASS_NONE;
    tasklet->pool = NULL;
    prepare(tasklet);
    return tasklet;
}

struct thrum_unit *unit_make_tasklet(struct worker *worker, void *(*fn)(void *)) {
    return tasklet_new(worker, fn, NULL);
}

LEAVES static __attribute__((noinline)) int spawn_tasklet(struct worker *worker, thrum_t *thread,
                                                          const struct attributes *attributes,
                                                          void *(*fn)(void *), void *arg) {
    struct thrum_unit *tasklet;
    int error = 0;
    if (attributes->worker != 0 || attributes->stack_top != NULL ||
        attributes->flags & (THRUM_SPAWN_CANCELLABLE | THRUM_SPAWN_MEASURED | THRUM_SPAWN_OWN_KTHREAD)) {
        error = EINVAL;
    } else if ((tasklet = tasklet_new(worker, fn, arg)) == NULL) {
        error = EAGAIN;
    } else {
        tasklet->priority = attributes->priority;
        unit_set_deadline(tasklet, attributes->deadline);
        tasklet->pool = attributes->pool;
        if (thread != NULL) {
            store_relaxed(&tasklet->join, JOIN_NONE);
            *thread = tasklet;
        }
        unit_wake(worker, tasklet);
    }
    leave();
    return error;
}

/* `is_own`: by own_make() or own_take(). */
LEAVES static inline __attribute__((always_inline)) int spawn_as(struct worker *worker, thrum_t *thread,
                                                                 const thrum_attr_t *attr,
                                                                 void *(*fn)(void *), void *arg,
                                                                 bool is_own) {
    if (__builtin_expect(worker == NULL && !load_acquire(&runtime.open), 0)) {
        leave();
        int error = scheduler_start_default();
        return error != 0 ? error : thrum_spawn(thread, attr, fn, arg);
    }
    if (attr != NULL && attributes_of(attr)->flags & THRUM_SPAWN_TASKLET)
        return spawn_tasklet(worker, thread, attributes_of(attr), fn, arg);
    struct thrum_unit *unit = unit_new(worker);
    if (unit == NULL) {
        leave();
        return EAGAIN;
    }
    unit_set(unit, fn, arg, thread == NULL ? JOIN_DETACHED : JOIN_NONE);
    if (attr != NULL && !unit_set_attributes(unit, attributes_of(attr))) {
        unit_free(worker, unit);
        leave();
        return EINVAL;
    }
    if (__builtin_expect(worker != NULL && may_run_now(worker, attr), 1))
        return spawn_now(worker, thread, unit, is_own);
    if (!has_stack_for(worker, unit)) {
        unit_free(worker, unit);
        leave();
        return EAGAIN;
    }
    if (thread != NULL)
        *thread = unit;
    enqueue(worker, unit);
    leave();
    return 0;
}

LEAVES static inline __attribute__((always_inline)) int
spawn(struct worker *worker, thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    return spawn_as(worker, thread, attr, fn, arg, false);
}

/* One that has a kernel thread of its own from its beginning: wherever it goes, that is where it is woken. */
static int spawn_solo(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    struct thrum_unit *unit;
    int error = unit_make_later(attr, fn, arg, &unit);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    if (thread != NULL) {
        store_relaxed(&unit->join, JOIN_NONE);
        *thread = unit;
    }
    unit_wake(worker, unit);
    leave();
    return 0;
}

/* Is that the usual case of thrum_spawn, and a block at hand? */
INSIDE static inline bool is_plain_own(struct worker *worker, const thrum_t *thread,
                                       const thrum_attr_t *attr) {
    return attr == NULL && worker != NULL && thread != NULL && may_run_at_once(worker, worker->current) &&
           !worker_owes_from(worker, worker->current) && is_at_hand(&worker->units) &&
           is_at_hand(&worker->stacks[STACK_CLASS_DEFAULT]) && worker->as_new.first != NULL;
}

/* One that has thread-locals of its own. */
static int spawn_with_block(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    int error = 0;
    /* Before there is a block: spawn_as() would begin anew with that. */
    if (worker_here() == NULL && !load_acquire(&runtime.open)) /* pairs with the runtime's start */
        return (error = scheduler_start_default()) != 0 ? error : thrum_spawn(thread, attr, fn, arg);
    struct worker *worker = enter();
    if (is_plain_own(worker, thread, attr)) {
        struct thrum_unit *self = worker->current;
        struct magazine *units = worker->units.loaded, *stacks = worker->stacks[STACK_CLASS_DEFAULT].loaded;
        struct thrum_unit *child = (struct thrum_unit *)(void *)units->objects[--units->count];
        child->stack_top = stacks->objects[--stacks->count];
        own_take(worker, &fn, &arg);
        unit_set(child, fn, arg, JOIN_NONE);
        call_own(worker, self, child);
        self->called_child = NULL;
        leave();
        *thread = child;
        return 0;
    }
    if (__builtin_expect(!own_take(worker, &fn, &arg), 0)) {
        leave();
        if ((error = own_make(&fn, &arg)) != 0)
            return error;
        worker = enter();
    }
    error = spawn_as(worker, thread, attr, fn, arg, true);
    if (error != 0)
        own_unmake(arg);
    return error;
}

static __attribute__((noinline)) int spawn_own(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *),
                                               void *arg) {
    bool is_solo = attr != NULL && attributes_of(attr)->flags & THRUM_SPAWN_OWN_KTHREAD;
    return (is_solo ? spawn_solo : spawn_with_block)(thread, attr, fn, arg);
}

static inline bool is_to_have_block(const struct attributes *attributes) {
    return own_is_wanted((enum thrum_preempt_mode)attributes->preempt);
}

/* A thread control block, or a kernel thread. A tasklet has neither. */
static inline bool is_to_have_own(const struct attributes *attributes) {
    return !(attributes->flags & THRUM_SPAWN_TASKLET) &&
           (attributes->flags & THRUM_SPAWN_OWN_KTHREAD || is_to_have_block(attributes));
}

static __attribute__((noinline)) int spawn_lean(thrum_t *thread, const thrum_attr_t *attr,
                                                void *(*fn)(void *), void *arg) {
    return spawn(enter(), thread, attr, fn, arg);
}

static __attribute__((noinline)) int spawn_any(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *),
                                               void *arg) {
    if (fn == NULL)
        return EINVAL;
    if (attr == NULL ? own_is_default : is_to_have_own(attributes_of(attr)))
        return spawn_own(thread, attr, fn, arg);
    return spawn_lean(thread, attr, fn, arg);
}

INSIDE static void begin_solo(struct thrum_unit *unit, struct worker *solo) {
    solo->solo.depth = 1;
    unit->extras = true; /* it must come to solo_end() */
    unit_set_solo(unit, solo);
}

/* ESRCH: there is no runtime. */
static int make_later(const thrum_attr_t *attr, void *(*fn)(void *), void *arg, struct worker *solo,
                      struct thrum_unit **made) {
    struct worker *worker = enter();
    struct thrum_unit *unit = NULL;
    int error = 0;
    if (worker == NULL && !load_acquire(&runtime.open)) { /* pairs with the runtime's start */
        error = ESRCH;
    } else if ((unit = unit_new(worker)) == NULL) {
        error = EAGAIN;
    } else {
        unit_set(unit, fn, arg, JOIN_DETACHED);
        if (attr != NULL && !unit_set_attributes(unit, attributes_of(attr)))
            error = EINVAL;
        else if (!has_stack_for(worker, unit))
            error = EAGAIN;
        if (error != 0)
            unit_free(worker, unit);
        else
            prepare(unit);
        if (error == 0 && solo != NULL)
            begin_solo(unit, solo);
    }
    leave();
    *made = unit;
    return error;
}

/* As make_later. */
static int make_later_solo(const thrum_attr_t *attr, void *(*fn)(void *), void *arg,
                           struct thrum_unit **made) {
    struct worker *solo;
    if (worker_here() == NULL && !load_acquire(&runtime.open)) /* pairs with the runtime's start */
        return ESRCH;
    int error = solo_make(&solo);
    if (error != 0)
        return error;
    error = make_later(attr, fn, arg, solo, made);
    if (error != 0)
        solo_unmake(solo);
    return error;
}

int unit_make_later(const thrum_attr_t *attr, void *(*fn)(void *), void *arg, struct thrum_unit **made) {
    if (attr != NULL && attributes_of(attr)->flags & THRUM_SPAWN_TASKLET)
        return EINVAL;
    for (int error;;) {
        void *(*own_fn)(void *) = fn;
        void *own_arg = arg;
        bool has_block = attr == NULL ? own_is_default : is_to_have_block(attributes_of(attr));
        bool is_solo = attr != NULL && attributes_of(attr)->flags & THRUM_SPAWN_OWN_KTHREAD;
        if (has_block && (error = own_make(&own_fn, &own_arg)) != 0)
            return error;
        error = is_solo ? make_later_solo(attr, own_fn, own_arg, made)
                        : make_later(attr, own_fn, own_arg, NULL, made);
        if (error != 0 && has_block)
            own_unmake(own_arg);
        if (error != ESRCH || (error = scheduler_start_default()) != 0)
            return error;
    }
}

/* The caller is a ULT. */
static struct attributes attributes_of_self(const struct thrum_unit *self) {
    enum unit_kind place = unit_place(self);
    return (struct attributes){
        .flags = (self->cancellable ? THRUM_SPAWN_CANCELLABLE : 0U) |
                 (self->cancels_locks ? THRUM_SPAWN_CANCEL_LOCKS : 0U) |
                 (self->measured ? THRUM_SPAWN_MEASURED : 0U),
        .stack_class = self->stack_class,
        .priority = self->priority,
        .preempt = self->preempt,
        .pool = place == UNIT_POOLED ? self->pool : NULL,
        .deadline = self->deadline,
        .worker = place == UNIT_BOUND ? self->bound->id + 1 : 0,
        .slice = self->slice,
    };
}

int unit_make_successor(void *(*fn)(void *), void *arg, struct thrum_unit **made) {
    thrum_attr_t attr = {{0}};
    struct worker *worker = enter();
    struct attributes attributes = attributes_of_self(worker->current);
    bool is_solo = unit_place(worker->current) == UNIT_SOLO;
    leave();
    if (attributes.stack_class == STACK_CLASS_USER || is_solo)
        return ENOTSUP;
    memcpy(&attr, &attributes, sizeof attributes);
    return unit_make_later(&attr, fn, arg, made);
}

/* No attributes. Of a creator that is bound, as main is, the child is queued: the creator
 * is mostly the first to join it, and calls it then (join_by_running). */
LEAVES static __attribute__((noinline)) int spawn_plain(struct worker *worker, thrum_t *thread,
                                                        void *(*fn)(void *), void *arg) {
    struct thrum_unit *child;
    if (__builtin_expect(worker == NULL || worker->current->kind != UNIT_BOUND || thread == NULL ||
                             watch_on || !is_at_hand(&worker->stacks[STACK_CLASS_DEFAULT]),
                         0) ||
        (child = unit_new(worker)) == NULL)
        return spawn(worker, thread, NULL, fn, arg);
    unit_set(child, fn, arg, JOIN_NONE);
    prepare(child);
    *thread = child;
    run_queue_push(worker, child);
    leave();
    return 0;
}

/* spawn() and spawn_now() for the usual case, which must be short: no attributes, a creator that may wait in the run queue, and a
 * descriptor and a stack that the worker has at hand. Everything else is theirs, before anything has changed. */
int thrum_spawn(thrum_t *thread, const thrum_attr_t *attr, void *(*fn)(void *), void *arg) {
    if (__builtin_expect(attr != NULL || fn == NULL || own_is_default, 0))
        return spawn_any(thread, attr, fn, arg);
    struct worker *worker = enter();
    if (__builtin_expect(worker == NULL || thread == NULL, 0))
        return spawn_plain(worker, thread, fn, arg);
    struct thrum_unit *self = worker->current;
    struct magazine *units = worker->units.loaded, *stacks = worker->stacks[STACK_CLASS_DEFAULT].loaded;
    if (__builtin_expect(!may_run_at_once(worker, self) || switch_is_slow(worker) || units == NULL ||
                             units->count == 0 || stacks == NULL || stacks->count == 0,
                         0))
        return spawn_plain(worker, thread, fn, arg);
    struct thrum_unit *child = (struct thrum_unit *)(void *)units->objects[--units->count];
    child->stack_top = stacks->objects[--stacks->count];
    unit_set(child, fn, arg, JOIN_NONE);
    worker->current = child;
    arch_call(child, self, &self->sp, unit_first_frame(child));
    self->called_child = NULL;
    leave();
    *thread = child;
    return 0;
}

/* It keeps its mode, and gets a kernel thread of its own again. */
int thrum_revive(thrum_t unit, void *(*fn)(void *), void *arg) {
    int error = fn == NULL ? EINVAL : handle_check(unit);
    if (error != 0)
        return error;
    struct worker *solo = NULL;
    bool is_tasklet = load_relaxed(&unit->kind) == UNIT_TASKLET;
    bool is_own = !is_tasklet && own_is_wanted((enum thrum_preempt_mode)unit->preempt);
    error = !is_tasklet && unit->begins_solo ? solo_make(&solo) : 0;
    if (error == 0 && is_own && (error = own_make(&fn, &arg)) != 0 && solo != NULL)
        solo_unmake(solo);
    if (error != 0)
        return error;
    struct worker *worker = enter();
    /* Pairs with unit_publish_end. */
    error = load_acquire(&unit->join) != JOIN_ENDED ? EBUSY : has_stack_for(worker, unit) ? 0 : EAGAIN;
    if (error == 0) {
        annotate_happens_after(unit);
        uint32_t slice = unit->slice;
        uint64_t deadline = unit->deadline;
        if (unit->extras)
            clear_extras(unit);
        unit->slice = slice;
        unit->deadline = deadline;
        unit->fn = fn;
        unit->arg = arg;
        unit->called_child = NULL;
        unit->escaped = true;
        unit->extras = slice != 0 || deadline != 0;
        unit->at_cancel_point = false;
        if (unit->stack_class == STACK_CLASS_USER)
            announce_user_stack(unit);
        store_relaxed(&unit->join, JOIN_NONE);
        if (solo != NULL)
            begin_solo(unit, solo);
        enqueue(worker, unit);
    }
    leave();
    if (error != 0 && is_own)
        own_unmake(arg);
    if (error != 0 && solo != NULL)
        solo_unmake(solo);
    return error;
}
