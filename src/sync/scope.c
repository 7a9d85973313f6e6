// SPDX-License-Identifier: Apache-2.0
/* Scopes (thrum/scope.h): threads that end together.
 *
 * Representation. The scope, on its owner's stack, has lists of its members and of the scopes inside it, and counts the
 *   members and its owner in `left`. `result` is 0 until the scope is cancelled; the first that changes it cancels.
 * Members. A record of each comes from the scope's own list of free ones, which is filled from a slab and goes back at the end.
 *   A member enters the list when it begins. If the scope is cancelled by then it cancels itself: so each one is either found by
 *   the canceller, or finds out itself. It leaves the list before it ends: while it is there its handle is valid.
 * Where a thread is. A member, and an owner, have a thrum_cleanup whose function is one of two here, so the innermost of these
 *   says in which scope the thread is. This takes no field of its own. The cleanup is also what cancels the members of an owner
 *   that ends by thrum_exit or thrum_cancel.
 * Locks. Each scope has one, for its lists; held by any thread, inside, for a batch of members at most. A thread that holds it
 *   takes no other scope's: the canceller of a scope marks a scope inside it as held, lets the lock go, and cancels that one.
 *   The owner of a scope takes it off its parent's list, and then waits until it is not held.
 *
 * The end, as a story.
 *   1. The owner leaves `left` and waits until that is 0: the last to leave it sets the event `all_left`.
 *   2. It cancels the call at the deadline. If that has begun it waits for its end.
 *   3. It takes the scope off its parent's list. If a canceller of the parent holds it, it waits for that one.
 *   4. From here no other thread knows the scope. It gives the records back.
 *   A member's last access is to `left`, or if it is the last one of all, to the event, which may be freed when it is seen set.
 * Modelled in tests/model/scope.pml. */
#include "sync/scope.h"

#include <errno.h>

#include "base/misuse.h"
#include "base/slab.h"
#include "sched/attributes.h"
#include "sched/cancel.h"
#include "sched/pool/scheduler.h"
#include "sched/worker.h"
#include "thrum/scope.h"
#include "thrum/sync.h"
#include "thrum/time.h"

struct scope;

struct member {
    struct member *next, **link; /* under the scope's lock; in the free list `next` alone */
    struct scope *scope;         /* r/o, as the next two */
    int (*fn)(void *);
    void *arg;
    struct thrum_unit *thread; /* its own to write, before it is in the list */
};

struct scope {
    struct lock lock;
    int result;                   /* written under lock, once; read by any thread */
    uint64_t deadline;            /* r/o: the earliest of its own and its parent's; TIMER_NEVER: none */
    struct scope *parent;         /* r/o */
    struct member *members;       /* under lock: those that the canceller has not seen */
    struct member *told;          /* under lock: those that it has cancelled */
    struct member *free;          /* under lock */
    struct scope *inner;          /* under lock */
    struct scope *next, **link;   /* under the parent's lock */
    bool is_told;                 /* likewise: the canceller of the parent has been here */
    bool is_held;                 /* likewise: it is here */
    bool has_call;                /* the owner's, as the next */
    bool is_left;                 /* the owner no longer counts */
    uint64_t left;                /* members that have not ended, and the owner */
    uint64_t runtime;             /* the owner's: that its members belong to; 0: none yet */
    thrum_call_t call;            /* at the deadline */
    struct thrum_cleanup cleanup; /* the owner's */
    thrum_event_t all_left, call_is_over, is_released;
};

_Static_assert(sizeof(struct scope) <= sizeof(thrum_scope_t), "thrum/scope.h leaves room for it");

/* As thrum_runtime_id: 0 without one. */
static uint64_t runtime_now(void) {
    return load_acquire(&runtime.open) ? scheduler_runtime() : 0;
}

static struct scope *scope_of(thrum_scope_t *scope) {
    return (struct scope *)(void *)scope;
}

/* --- memory ------------------------------------------------------------------------------------------- */

enum { AT_ONCE = 16 };

static struct {
    struct lock lock;
    struct slab slab; /* under lock */
} memory = {.slab = SLAB_INIT(struct member)};

/* NULL: no memory. */
INSIDE static struct member *member_new(struct scope *scope) {
    lock_acquire(&scope->lock);
    if (scope->free == NULL) {
        lock_acquire(&memory.lock);
        for (int i = 0; i < AT_ONCE; i++) {
            struct member *more = slab_alloc_locked(&memory.slab);
            if (more == NULL)
                break;
            more->next = scope->free;
            scope->free = more;
        }
        lock_release(&memory.lock);
    }
    struct member *member = scope->free;
    if (member != NULL)
        scope->free = member->next;
    lock_release(&scope->lock);
    return member;
}

static void give_back(struct member *first) {
    enter();
    lock_acquire(&memory.lock);
    for (struct member *next; first != NULL; first = next) {
        next = first->next;
        slab_free_locked(&memory.slab, first);
    }
    lock_release(&memory.lock);
    leave();
}

void scope_fork_child(void) {
    lock_reset(&memory.lock);
    memory.slab.free = NULL;
}

/* --- lists -------------------------------------------------------------------------------------------- */

static void member_enlist(struct member **list, struct member *member) {
    member->next = *list;
    member->link = list;
    if (*list != NULL)
        (*list)->link = &member->next;
    *list = member;
}

static void member_delist(struct member *member) {
    *member->link = member->next;
    if (member->next != NULL)
        member->next->link = member->link;
}

/* --- cancelling --------------------------------------------------------------------------------------- */

/* False: there are no more. */
INSIDE static bool cancel_batch(struct scope *scope) {
    enum { BATCH = 64 };
    lock_acquire(&scope->lock);
    for (int i = 0; i < BATCH && scope->members != NULL; i++) {
        struct member *member = scope->members;
        member_delist(member);
        member_enlist(&scope->told, member);
        thrum_cancel(member->thread);
    }
    bool more = scope->members != NULL;
    lock_release(&scope->lock);
    return more;
}

/* The next scope inside this one that has not been told; it is held. */
INSIDE static struct scope *hold_inner(struct scope *scope) {
    lock_acquire(&scope->lock);
    struct scope *inner = scope->inner;
    while (inner != NULL && inner->is_told)
        inner = inner->next;
    if (inner != NULL)
        inner->is_told = inner->is_held = true;
    lock_release(&scope->lock);
    return inner;
}

/* The owner of `inner` may be waiting for this. */
NOT_INSIDE static void release_inner(struct scope *scope, struct scope *inner) {
    enter();
    lock_acquire(&scope->lock);
    inner->is_held = false;
    bool is_awaited = inner->link == NULL;
    lock_release(&scope->lock);
    if (is_awaited)
        thrum_event_set(&inner->is_released);
    leave();
}

/* What cancels a scope cancels those inside it as this. */
static int result_inside(int result) {
    return result == ETIMEDOUT ? ETIMEDOUT : ECANCELED;
}

/* Does not wait. */
NOT_INSIDE static void cancel(struct scope *scope, int result) {
    enter();
    lock_acquire(&scope->lock);
    bool is_first = scope->result == 0;
    if (is_first)
        store_release(&scope->result, result); /* pairs with thrum_scope_spawn and thrum_scope_cancelled */
    lock_release(&scope->lock);
    leave();
    if (!is_first)
        return;
    for (bool more = true; more;) {
        enter();
        more = cancel_batch(scope);
        leave();
    }
    for (struct scope *inner;;) {
        enter();
        inner = hold_inner(scope);
        leave();
        if (inner == NULL)
            return;
        cancel(inner, result_inside(result));
        release_inner(scope, inner);
    }
}

/* The call at the deadline. */
static void time_is_over(void *arg) {
    struct scope *scope = arg;
    cancel(scope, ETIMEDOUT);
    thrum_event_set(&scope->call_is_over);
}

/* --- where a thread is -------------------------------------------------------------------------------- */

static void owner_ends(void *scope);
static void member_ends(void *member);

/* The innermost scope that the caller owns or is a member of; NULL: none. */
INSIDE static struct scope *scope_here(const struct thrum_unit *self) {
    const struct thrum_cleanup *cleanup = self->has_cleanups ? self->cleanups : NULL;
    for (; cleanup != NULL; cleanup = cleanup->outer) {
        if (cleanup->fn == owner_ends)
            return cleanup->arg;
        if (cleanup->fn == member_ends)
            return ((struct member *)cleanup->arg)->scope;
    }
    return NULL;
}

/* --- members ------------------------------------------------------------------------------------------ */

/* Its record is free from here on, and so may the scope be when it counts no more. */
static void leave_scope(struct scope *scope) {
    /* Pairs with those of the others: what members did is before the end of the scope. */
    if (fetch_sub_acq_rel(&scope->left, 1) == 1)
        thrum_event_set(&scope->all_left);
}

/* In a scope that is cancelled it ends at its first wait, as those do that the canceller finds. */
INSIDE static void member_begins(struct member *member) {
    struct scope *scope = member->scope;
    member->thread = worker_here()->current;
    member->thread->escaped = true;
    lock_acquire(&scope->lock);
    bool is_late = scope->result != 0;
    member_enlist(is_late ? &scope->told : &scope->members, member);
    if (is_late)
        thrum_cancel(member->thread);
    lock_release(&scope->lock);
}

/* Under the lock. */
static void member_free(struct scope *scope, struct member *member) {
    member->next = scope->free;
    scope->free = member;
}

/* It ends, by itself or by being cancelled. */
static void member_ends(void *arg) {
    struct member *member = arg;
    struct scope *scope = member->scope;
    enter();
    lock_acquire(&scope->lock);
    member_delist(member);
    member_free(scope, member);
    lock_release(&scope->lock);
    leave();
    leave_scope(scope);
}

static void *member_main(void *arg) {
    struct member *member = arg;
    struct scope *scope = member->scope;
    enter();
    member_begins(member);
    leave();
    thrum_cleanup_push(member_ends, member);
    int result = member->fn(member->arg);
    if (result != 0)
        cancel(scope, result);
    thrum_cleanup_pop(1);
    return NULL;
}

static int spawn(struct scope *scope, const thrum_attr_t *attr, struct member *member) {
    thrum_attr_t own;
    if (attr != NULL)
        own = *attr;
    else
        thrum_attr_init(&own);
    thrum_attr_set_flags(&own, attributes_of(&own)->flags | THRUM_SPAWN_CANCELLABLE);
    fetch_add_relaxed(&scope->left, 1);
    int error = thrum_spawn(NULL, &own, member_main, member);
    if (error != 0) {
        enter();
        lock_acquire(&scope->lock);
        member_free(scope, member);
        lock_release(&scope->lock);
        leave();
        leave_scope(scope);
    } else if (load_relaxed(&scope->runtime) == 0) {
        store_relaxed(&scope->runtime, runtime_now()); /* by the owner: there were no members */
    }
    return error;
}

int thrum_scope_spawn(thrum_scope_t *object, const thrum_attr_t *attr, int (*fn)(void *), void *arg) {
    if (is_null(object) || fn == NULL)
        return EINVAL;
    struct scope *scope = scope_of(object);
    if (load_relaxed(&scope->left) == 0)
        return misuse(EINVAL, "thrum_scope_spawn: this scope has not begun, or has ended");
    if (load_acquire(&scope->result) != 0) /* pairs with cancel */
        return ECANCELED;
    enter();
    struct member *member = member_new(scope);
    leave();
    if (member == NULL)
        return EAGAIN;
    member->scope = scope;
    member->fn = fn;
    member->arg = arg;
    return spawn(scope, attr, member);
}

/* --- the owner ---------------------------------------------------------------------------------------- */

/* From here the parent's canceller finds it; if that has been there already, it is cancelled from the start. */
INSIDE static void enter_parent(struct scope *scope) {
    struct scope *parent = scope->parent;
    lock_acquire(&parent->lock);
    scope->next = parent->inner;
    scope->link = &parent->inner;
    if (parent->inner != NULL)
        parent->inner->link = &scope->next;
    parent->inner = scope;
    scope->is_told = parent->result != 0;
    scope->result = scope->is_told ? result_inside(parent->result) : 0;
    lock_release(&parent->lock);
}

/* Another thread is about to set it: no cancellation point, as that thread uses the scope until then. */
static void await_other(thrum_event_t *event) {
    int cancels = thrum_set_cancel(0);
    thrum_event_wait(event);
    thrum_set_cancel(cancels);
}

static void leave_parent(struct scope *scope) {
    struct scope *parent = scope->parent;
    enter();
    lock_acquire(&parent->lock);
    *scope->link = scope->next;
    if (scope->next != NULL)
        scope->next->link = scope->link;
    scope->link = NULL;
    bool is_held = scope->is_held;
    lock_release(&parent->lock);
    leave();
    if (is_held)
        await_other(&scope->is_released);
}

/* Its runtime has ended, or this is a child of fork: no thread uses it but the caller, and no member ends any more. */
static bool is_lost(const struct scope *scope) {
    uint64_t its = load_relaxed(&scope->runtime);
    return its != 0 && its != runtime_now();
}

/* Its lock, and its parent's, may have been another thread's. */
static void forget(struct scope *scope) {
    scope->is_held = false;
    if (scope->parent == NULL)
        return;
    lock_reset(&scope->parent->lock);
    leave_parent(scope);
}

/* All members leave. The caller may be cancelled here, and then waits again in owner_ends. */
static void await_members(struct scope *scope) {
    if (!scope->is_left) {
        scope->is_left = true;
        leave_scope(scope);
    }
    thrum_event_wait(&scope->all_left);
}

/* No member is left, and none comes any more. */
static void end(struct scope *scope) {
    if (scope->has_call && thrum_call_cancel(scope->call) != 0)
        await_other(&scope->call_is_over);
    if (scope->parent != NULL)
        leave_parent(scope);
    give_back(scope->free);
}

/* The cleanup: it ends by thrum_exit or thrum_cancel, so that nothing here is a cancellation point. */
static void owner_ends(void *arg) {
    struct scope *scope = arg;
    if (is_lost(scope)) {
        forget(scope);
        return;
    }
    cancel(scope, ECANCELED);
    await_members(scope);
    end(scope);
}

static bool is_innermost(const struct scope *scope) {
    const struct thrum_unit *self = unit_self(enter());
    bool is = self->has_cleanups && self->cleanups == &scope->cleanup;
    leave();
    return is;
}

/* Its parent's canceller cancels it at the parent's. */
static int set_deadline(struct scope *scope, uint64_t deadline) {
    if (scope->parent != NULL && scope->parent->deadline <= deadline) {
        scope->deadline = scope->parent->deadline;
        return 0;
    }
    scope->deadline = deadline;
    if (deadline == TIMER_NEVER)
        return 0;
    if (deadline <= timer_now()) {
        cancel(scope, ETIMEDOUT);
        return 0;
    }
    int error = thrum_call_at(&scope->call, deadline, time_is_over, scope);
    scope->has_call = error == 0;
    scope->runtime = runtime_now(); /* the call may have started it */
    return error;
}

int thrum_scope_begin(thrum_scope_t *object, uint64_t deadline) {
    if (is_null(object))
        return EINVAL;
    if (!unit_here_may_wait())
        return EPERM;
    struct scope *scope = scope_of(object);
    if (is_innermost(scope))
        return misuse(EINVAL, "thrum_scope_begin: this scope has begun already");
    *scope = (struct scope){.left = 1, .runtime = runtime_now()};
    scope->cleanup = (struct thrum_cleanup){.fn = owner_ends, .arg = scope};
    scope->parent = scope_here(unit_self(enter()));
    leave();
    if (scope->parent != NULL) {
        enter();
        enter_parent(scope);
        leave();
    }
    int error = set_deadline(scope, deadline);
    if (error != 0) {
        if (scope->parent != NULL)
            leave_parent(scope);
        return error;
    }
    thrum_cleanup_enter(&scope->cleanup);
    return 0;
}

int thrum_scope_cancel(thrum_scope_t *scope) {
    if (is_null(scope))
        return EINVAL;
    cancel(scope_of(scope), ECANCELED);
    return 0;
}

bool thrum_scope_cancelled(const thrum_scope_t *scope) {
    /* Pairs with cancel. */
    return !is_null(scope) && load_acquire(&((const struct scope *)(const void *)scope)->result) != 0;
}

uint64_t thrum_scope_deadline(void) {
    const struct scope *scope = scope_here(unit_self(enter()));
    leave();
    return scope != NULL ? scope->deadline : TIMER_NEVER;
}

/* In a child of fork the caller has become an external kernel thread, without the cleanups that it had as a unit. */
static int end_lost(struct scope *scope, bool is_innermost_here) {
    if (is_innermost_here)
        thrum_cleanup_leave(0);
    forget(scope);
    return load_relaxed(&scope->left) > 1 ? ESRCH : scope->result;
}

int thrum_scope_end(thrum_scope_t *object) {
    if (is_null(object))
        return EINVAL;
    struct scope *scope = scope_of(object);
    bool is_next = is_innermost(scope);
    if (is_lost(scope))
        return end_lost(scope, is_next);
    if (!is_next)
        return misuse(EINVAL, "thrum_scope_end: this scope is not the innermost that the caller has begun");
    await_members(scope);
    /* What cancelled a scope around this one cancelled the caller first, then the members: they may have ended before it waited. */
    thrum_testcancel();
    thrum_cleanup_leave(0);
    end(scope);
    return scope->result;
}
