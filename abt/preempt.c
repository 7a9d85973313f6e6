// SPDX-License-Identifier: Apache-2.0
/* Preemption, which Argobots does not have: threads that do not wait give way after a slice. No thread is preempted unless
 * thrum_abt_set_preempt or THRUM_ABT_PREEMPT says so before ABT_init; then its attribute decides, then its pool, then what was said.
 *
 * A preempted thread is pushed into its pool, as one that the core wakes (run.c), and its worker switches to the host. Only
 * threads in pools of the library's kinds are preempted, as the others' functions are not for signal handlers. A thread is not
 * preempted while it is host to others: between two of its steps its guests would find it in neither state. Main schedulers and the
 * primary thread never are.
 *
 * Mode and slice belong to the unit of the core. They are set whenever a unit is given to a thread, and when its pool changes. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "layer.h"

_Static_assert((int)THRUM_ABT_PREEMPT_DEFAULT == THRUM_PREEMPT_DEFAULT, "");
_Static_assert((int)THRUM_ABT_PREEMPT_NONE == THRUM_PREEMPT_NONE, "");
_Static_assert((int)THRUM_ABT_PREEMPT_LEND == THRUM_PREEMPT_LEND, "");

/* For all later calls of ABT_init, until it is said again. NONE: no thread is preempted whatever it asks for. */
static struct {
    uint8_t mode;
    uint32_t slice;
    bool is_said;
} said;

struct thrum_unit *abt_unit_here(void) {
    const struct worker *worker = enter();
    struct thrum_unit *unit = worker != NULL ? worker->current : NULL;
    leave();
    return unit;
}

void abt_preempt_set(struct abt_thread *thread) {
    const struct abt_pool *pool = thread->pool;
    if (load_relaxed(&thread->preempt_offs) != 0 || thread->kind != ABT_KIND_THREAD ||
        thread->flags & ABT_FLAG_PRIMARY || pool == NULL || pool->type != ABT_POOL_OURS) {
        abt_preempt_hold(thread->unit);
        return;
    }
    uint8_t mode = thread->preempt != THRUM_PREEMPT_DEFAULT ? thread->preempt : load_relaxed(&pool->preempt);
    uint32_t slice = thread->slice != 0 ? thread->slice : load_relaxed(&pool->slice);
    if (slice != thread->unit->slice)
        front_set_slice(thread->unit, slice);
    store_relaxed(&thread->unit->preempt, mode != THRUM_PREEMPT_DEFAULT ? mode : abt.preempt);
}

void abt_preempt_off_slow(struct abt_thread *self) {
    abt_has_more(self);
    store_relaxed(&self->preempt_offs, self->preempt_offs + 1);
    abt_preempt_hold(self->unit);
}

void abt_preempt_on_slow(struct abt_thread *self) {
    store_relaxed(&self->preempt_offs, self->preempt_offs - 1);
    abt_preempt_set(self);
}

static bool is_mode(int mode) {
    return mode == THRUM_ABT_PREEMPT_DEFAULT || mode == THRUM_ABT_PREEMPT_NONE ||
           mode == THRUM_ABT_PREEMPT_LEND;
}

static bool is_slice(unsigned slice) {
    return slice == 0 || (slice >= THRUM_SLICE_MIN && slice <= THRUM_SLICE_MAX);
}

/* THRUM_ABT_PREEMPT: `asked`: threads that ask for it; `lend`: all that do not ask for the contrary; `none`, or nothing:
 * none. */
static void read_environment(void) {
    const char *text = getenv("THRUM_ABT_PREEMPT");
    said.mode = THRUM_PREEMPT_NONE;
    said.slice = 0;
    if (text == NULL || strcmp(text, "") == 0 || strcmp(text, "none") == 0)
        return;
    if (strcmp(text, "asked") == 0)
        said.mode = THRUM_PREEMPT_DEFAULT;
    else if (strcmp(text, "lend") == 0)
        said.mode = THRUM_PREEMPT_LEND;
    else
        text_line("THRUM_ABT_PREEMPT is '", text, "'; it takes lend, asked or none, and is taken as none");
}

void abt_preempt_configure(struct thrum_preempt_config *config) {
    if (!said.is_said)
        read_environment();
    config->mode = said.mode == THRUM_PREEMPT_NONE ? THRUM_PREEMPT_NONE : THRUM_PREEMPT_LEND;
    config->slice = said.slice;
}

void abt_preempt_begin(void) {
    abt.preempts = said.mode != THRUM_PREEMPT_NONE && front_can_preempt(THRUM_PREEMPT_LEND, 0);
    abt_preempted_forget();
    front_relieve = abt.preempts ? abt_relieve : NULL;
    abt.preempt = said.mode == THRUM_PREEMPT_LEND ? THRUM_PREEMPT_LEND : THRUM_PREEMPT_NONE;
}

/* 0, or the error for what a pool or an attribute cannot have. */
static int may_have(int mode, unsigned slice) {
    ABT_CHECK(is_mode(mode) && is_slice(slice), ABT_ERR_INV_ARG);
    if (mode == THRUM_ABT_PREEMPT_NONE ||
        (mode == THRUM_ABT_PREEMPT_DEFAULT && (slice == 0 || !abt.preempts)))
        return ABT_SUCCESS;
    /* This also makes ticks as frequent as the slice needs. */
    return abt.preempts && front_can_preempt(THRUM_PREEMPT_LEND, slice) ? ABT_SUCCESS : ABT_ERR_FEATURE_NA;
}

ABT_EXPORT int thrum_abt_set_preempt(int mode, unsigned slice) {
    ABT_CHECK(is_mode(mode) && is_slice(slice), ABT_ERR_INV_ARG);
    ABT_CHECK(!load_relaxed(&abt.is_on), ABT_ERR_OTHER);
    said.mode = (uint8_t)mode;
    said.slice = slice;
    said.is_said = true;
    return ABT_SUCCESS;
}

ABT_EXPORT int thrum_abt_pool_set_preempt(ABT_pool handle, int mode, unsigned slice) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_POOL);
    int error = may_have(mode, slice);
    if (error != ABT_SUCCESS)
        return error;
    ABT_CHECK(abt_pool_of(handle)->type == ABT_POOL_OURS || mode != THRUM_ABT_PREEMPT_LEND, ABT_ERR_POOL);
    store_relaxed(&abt_pool_of(handle)->preempt, (uint8_t)mode);
    store_relaxed(&abt_pool_of(handle)->slice, slice);
    return ABT_SUCCESS;
}

ABT_EXPORT int thrum_abt_thread_attr_set_preempt(ABT_thread_attr handle, int mode, unsigned slice) {
    ABT_CHECK_HANDLE(handle, ABT_ERR_INV_THREAD_ATTR);
    int error = may_have(mode, slice);
    if (error != ABT_SUCCESS)
        return error;
    struct abt_attr *attr = (struct abt_attr *)(void *)handle;
    attr->preempt = (uint8_t)mode;
    attr->slice = slice;
    return ABT_SUCCESS;
}
