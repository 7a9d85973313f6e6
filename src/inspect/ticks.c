// SPDX-License-Identifier: Apache-2.0
/* What interrupts a worker (sched/tick.h), and whether something keeps that away. */
#include "inspect/view.h"

#include <string.h>

#include "os/file.h"

/* The least silence that a slice of the longest periods cannot explain: two of them. */
static uint64_t longest_silence(const struct tick *tick) {
    uint64_t two = 2 * tick->request.period;
    return two > INSPECT_SILENCE_NS ? two : INSPECT_SILENCE_NS;
}

/* A thread that only gives way where it asks to is not meant. */
static bool may_be_preempted(const struct view *view, uint64_t current) {
    struct preempt has;
    uint8_t mode = THRUM_PREEMPT_NONE, kind = UNIT_LOOP;
    if (!memory_get(view->source, (uintptr_t)view->image.preempt, &has, sizeof has) ||
        !memory_field(view->source, current, struct thrum_unit, preempt, &mode) ||
        !memory_field(view->source, current, struct thrum_unit, kind, &kind))
        return false;
    if (mode == THRUM_PREEMPT_DEFAULT)
        mode = (uint8_t)has.settings.mode;
    return has.on && mode != THRUM_PREEMPT_NONE && kind != UNIT_TASKLET;
}

static bool is_blocked(const struct view *view, const struct inspect_kernel_thread *thread) {
    int32_t signal = 0;
    memory_field(view->source, view->image.preempt, struct preempt, settings.signal, &signal);
    return signal > 0 && signal <= 64 && (thread->blocked >> (signal - 1) & 1) != 0;
}

static enum inspect_ticks ticks_of(const struct tick *tick) {
    switch (tick->state) {
    case TICK_OFF: return INSPECT_TICKS_OFF;
    case TICK_REST: return INSPECT_TICKS_REST;
    case TICK_ON: return tick->thread.other != tick->thread.mask ? INSPECT_TICKS_MASKED : INSPECT_TICKS_ON;
    default: return INSPECT_TICKS_NONE;
    }
}

void view_ticks(const struct view *view, uint64_t worker, struct inspect_worker *told) {
    const struct inspect_source *source = view->source;
    struct tick tick;
    struct inspect_kernel_thread thread = {.state = 0};
    if (!memory_field(source, worker, struct worker, tick, &tick))
        return;
    told->ticks = ticks_of(&tick);
    if (tick.state != TICK_ON)
        return;
    if (source->kernel_thread != NULL)
        source->kernel_thread(source->context, told->tid, &thread);
    if (is_blocked(view, &thread))
        told->ticks = INSPECT_TICKS_BLOCKED;
    if (source->now > tick.last.at && tick.last.at != 0)
        told->since_tick = source->now - tick.last.at;
    told->is_silent = told->state == INSPECT_AT_WORK && told->since_tick > longest_silence(&tick) &&
                      may_be_preempted(view, told->current);
    told->kernel_state = thread.state;
}

/* --- of a kernel thread ------------------------------------------------------------------------------- */

bool inspect_parse_status(const char *status, struct inspect_kernel_thread *told) {
    static const char state[] = "\nState:\t", blocked[] = "\nSigBlk:\t";
    const char *at = strstr(status, state), *mask = strstr(status, blocked);
    if (at == NULL || mask == NULL)
        return false;
    told->state = at[sizeof state - 1];
    told->blocked = file_hexadecimal(mask + sizeof blocked - 1);
    return true;
}
