// SPDX-License-Identifier: Apache-2.0
/* See inspect.h. Everything is read by copying, as it may be freed or reused at any time: no value that was read is
 * trusted without bounds. */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "inspect/view.h"
#include "os/syscall.h"

enum { CHUNKS_MAX = 1 << 20, UNITS_AT_ONCE = 16 };

/* --- is it one of ours? ------------------------------------------------------------------------------- */

static const char *read_image(const struct inspect_source *source, struct inspect_image *image) {
    static const uint32_t shape[] = INSPECT_SHAPE;
    _Static_assert(sizeof shape == sizeof image->shape, "image.h");
    if (!memory_get(source, source->image, image, sizeof *image))
        return "its memory cannot be read";
    if (memcmp(image->magic, INSPECT_MAGIC, sizeof image->magic) != 0)
        return "unrecognised libthrum; update the thrum command";
    image->version[sizeof image->version - 1] = '\0';
    if (memcmp(image->shape, shape, sizeof shape) != 0)
        return "its libthrum has another version than this thrum command; use the thrum of that version";
    return NULL;
}

const char *inspect_check(const struct inspect_source *source) {
    struct inspect_image image;
    uint32_t open;
    const char *wrong = read_image(source, &image);
    if (wrong != NULL)
        return wrong;
    if (!memory_field(source, image.runtime, struct runtime, open, &open))
        return "its memory cannot be read";
    return open ? NULL : "it has no running libthrum runtime now";
}

/* --- workers ------------------------------------------------------------------------------------------ */

uint64_t view_worker(const struct view *view, uint32_t number) {
    uint64_t worker = 0;
    memory_get(view->source,
               (uintptr_t)view->image.runtime + offsetof(struct runtime, workers) + number * sizeof(void *),
               &worker, sizeof worker);
    return worker;
}

static uint64_t current_of(const struct view *view, uint32_t number) {
    uint64_t current = 0;
    if (view->current != NULL)
        return view->current[number];
    memory_field(view->source, view_worker(view, number), struct worker, current, &current);
    return current;
}

bool view_open(struct view *view, const struct inspect_source *source) {
    uint32_t open;
    view->source = source;
    view->current = NULL;
    if (read_image(source, &view->image) != NULL ||
        !memory_field(source, view->image.runtime, struct runtime, open, &open) || !open ||
        !memory_field(source, view->image.runtime, struct runtime, count, &view->workers) ||
        !memory_get(source, (uintptr_t)view->image.front, &view->front, sizeof view->front))
        return false;
    if (view->workers > WORKERS_MAX)
        view->workers = WORKERS_MAX;
    return true;
}

/* For many questions. */
static void note_current(struct view *view, uint64_t current[WORKERS_MAX]) {
    for (uint32_t i = 0; i < view->workers; i++)
        current[i] = current_of(view, i);
    view->current = current;
}

static bool is_loop(const struct view *view, uint64_t unit) {
    uint8_t kind = UNIT_LOOP;
    memory_field(view->source, unit, struct thrum_unit, kind, &kind);
    return kind == UNIT_LOOP;
}

static enum inspect_worker_state worker_state(const struct view *view, uint64_t worker, uint64_t current) {
    uint32_t stay = WORKER_LEAVING, parking = PARKING_AWAKE;
    memory_field(view->source, worker, struct worker, stay, &stay);
    memory_field(view->source, worker, struct worker, parking.state, &parking);
    if (stay == WORKER_RELIEVES)
        return INSPECT_RELIEF;
    if (!is_loop(view, current))
        return INSPECT_AT_WORK; /* even if it must stop */
    if (stay == WORKER_LEAVING)
        return INSPECT_STOPPED;
    return parking == PARKING_PARKED || parking == PARKING_LOOK ? INSPECT_PARKED : INSPECT_SEARCHING;
}

static uint64_t length(int64_t head, int64_t tail) {
    return tail > head ? (uint64_t)(tail - head) : 0;
}

static uint64_t queued(const struct view *view, uint64_t worker) {
    int64_t deque[2] = {0, 0}, yields[2] = {0, 0};
    uint32_t inbox = 0;
    memory_field(view->source, worker, struct worker, deque.head, &deque[0]);
    memory_field(view->source, worker, struct worker, deque.tail, &deque[1]);
    memory_field(view->source, worker, struct worker, yields.head, &yields[0]);
    memory_field(view->source, worker, struct worker, yields.tail, &yields[1]);
    memory_field(view->source, worker, struct worker, inbox.count, &inbox);
    return length(deque[0], deque[1]) + length(yields[0], yields[1]) + inbox;
}

static bool describe_worker(const struct view *view, uint32_t number, struct inspect_worker *told) {
    uint64_t worker = view_worker(view, number);
    *told = (struct inspect_worker){.number = number, .current = current_of(view, number)};
    if (!memory_field(view->source, worker, struct worker, tid, &told->tid) ||
        !memory_field(view->source, worker, struct worker, counters.switches, &told->switches) ||
        !memory_field(view->source, worker, struct worker, counters.steals, &told->steals) ||
        !memory_field(view->source, worker, struct worker, counters.parks, &told->parks) ||
        !memory_field(view->source, worker, struct worker, counters.migrations, &told->migrations))
        return false;
    told->state = worker_state(view, worker, told->current);
    told->queued = queued(view, worker);
    view_ticks(view, worker, told);
    return true;
}

/* Without stopped workers, and without the relief workers. */
static uint64_t count_workers(const struct view *view) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < view->workers; i++) {
        enum inspect_worker_state state = worker_state(view, view_worker(view, i), current_of(view, i));
        count += state != INSPECT_STOPPED && state != INSPECT_RELIEF;
    }
    return count;
}

bool inspect_workers(const struct inspect_source *source,
                     bool (*tell)(void *context, const struct inspect_worker *worker), void *context) {
    struct view view;
    if (!view_open(&view, source))
        return false;
    for (uint32_t i = 0; i < view.workers; i++) {
        struct inspect_worker worker;
        if (describe_worker(&view, i, &worker) && !tell(context, &worker))
            break;
    }
    return true;
}

static void look_again_later(void) {
    sys(SYS_nanosleep, &(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Which ones seem silent, a bit each; the kernel is not asked. */
static bool note_silent(struct view view, uint64_t silent[WORKERS_MAX / 64]) {
    struct inspect_source source = *view.source;
    struct inspect_worker worker;
    bool is_any = false;
    source.kernel_thread = NULL;
    view.source = &source;
    for (uint32_t i = 0; i < view.workers; i++)
        if (describe_worker(&view, i, &worker) && worker.is_silent) {
            silent[i / 64] |= UINT64_C(1) << i % 64;
            is_any = true;
        }
    return is_any;
}

/* Twice: the ticks may have been turned on just now, and the time not been noted yet. */
bool inspect_silent_workers(const struct inspect_source *source,
                            bool (*tell)(void *context, const struct inspect_worker *worker), void *context) {
    struct view view;
    struct inspect_worker worker;
    uint64_t silent[WORKERS_MAX / 64] = {0};
    if (!view_open(&view, source))
        return false;
    if (!note_silent(view, silent))
        return true;
    look_again_later();
    for (uint32_t i = 0; i < view.workers; i++)
        if (silent[i / 64] >> i % 64 & 1 && describe_worker(&view, i, &worker) && worker.is_silent &&
            !tell(context, &worker))
            break;
    return true;
}

/* --- threads ------------------------------------------------------------------------------------------ */

static int32_t worker_running(const struct view *view, uint64_t handle) {
    for (uint32_t i = 0; i < view->workers; i++)
        if (current_of(view, i) == handle)
            return (int32_t)i;
    return INSPECT_NOWHERE;
}

static int32_t number_of(const struct view *view, const struct worker *worker) {
    uint32_t number;
    bool known = worker != NULL && memory_field(view->source, worker, struct worker, id, &number);
    return known && number < WORKERS_MAX ? (int32_t)number : INSPECT_NOWHERE;
}

/* The owner of what it waits for. */
static uint64_t owner_of(const struct view *view, enum awaits awaits, uint64_t object) {
    uint32_t word = 0;
    uint64_t owner = 0;
    if (awaits == AWAITS_END)
        return object;
    if (awaits == AWAITS_MUTEX && memory_field(view->source, object, struct mutex, word, &word) &&
        word & MUTEX_LOCKED)
        memory_field(view->source, object, struct mutex, owner, &owner);
    if ((awaits == AWAITS_READ || awaits == AWAITS_WRITE) &&
        memory_field(view->source, object, struct rwlock, word, &word) && word & RWLOCK_WRITING)
        memory_field(view->source, object, struct rwlock, writer, &owner);
    return owner;
}

static bool is_fronts(const struct view *view, const struct thrum_unit *unit) {
    return unit->fn != NULL && unit->fn == view->front.entry;
}

/* What the front end has for it; 0: it is none of its threads. */
static uint64_t fronts_thread(const struct view *view, const struct thrum_unit *unit) {
    if (is_fronts(view, unit))
        return (uintptr_t)unit->arg;
    return unit->is_primary ? (uintptr_t)view->front.primary : 0;
}

/* AWAITS_NOTHING: it does not wait. */
static enum awaits awaits_of(const struct view *view, const struct thrum_unit *unit) {
    enum awaits kind = awaits_kind(unit->awaits);
    uint64_t thread = fronts_thread(view, unit);
    uint32_t state;
    if (thread == 0 || kind != AWAITS_NOTHING ||
        !memory_get(view->source, thread + view->front.state, &state, sizeof state))
        return kind;
    return state == view->front.waits ? AWAITS_RESUME : AWAITS_NOTHING;
}

static void describe_wait(const struct view *view, const struct thrum_unit *unit, enum awaits awaits,
                          struct inspect_thread *told) {
    told->state = INSPECT_WAITS;
    told->awaits = (uint8_t)awaits;
    if (awaits_kind(unit->awaits) != awaits) /* the front end's thread says so itself */
        return;
    told->object = awaits_object(unit->awaits);
    told->owner = owner_of(view, awaits, told->object);
    told->has_deadline = (unit->awaits & AWAITS_TIMED) != 0;
}

static void describe_state(const struct view *view, const struct thrum_unit *unit,
                           struct inspect_thread *told) {
    enum awaits awaits = awaits_of(view, unit);
    if (unit->join == JOIN_ENDED)
        told->state = INSPECT_ENDED;
    else if (awaits != AWAITS_NOTHING)
        describe_wait(view, unit, awaits, told);
    else if (told->is_external || (told->own_tid != 0 && unit->sp != UNIT_NEW) ||
             (told->worker = worker_running(view, told->handle)) != INSPECT_NOWHERE)
        told->state = INSPECT_RUNS;
    else
        told->state = unit->sp == UNIT_NEW ? INSPECT_NEW : INSPECT_READY;
    if (unit->kind == UNIT_BOUND && told->worker == INSPECT_NOWHERE)
        told->worker = number_of(view, unit->bound);
}

/* Those that have begun and not ended. */
static void describe_stack(const struct view *view, const struct thrum_unit *unit,
                           struct inspect_thread *told) {
    if (unit->stack_top == NULL || told->is_tasklet || told->state == INSPECT_NEW ||
        told->state == INSPECT_ENDED)
        return;
    uint64_t top = (uintptr_t)unit->stack_top, low = 0, size;
    if (unit->stack_class >= STACK_CLASSES)
        memory_field(view->source, top - sizeof(struct unit_head), struct unit_head, low, &low);
    else if (memory_field(view->source,
                          (uintptr_t)view->image.stacks + unit->stack_class * sizeof(struct depot),
                          struct depot, shape.size, &size))
        low = top - size;
    if (low == 0 || low >= top)
        return;
    told->stack_low = low;
    told->stack_top = top;
}

/* The kernel thread under it. */
static int32_t tid_of(const struct view *view, const struct thrum_unit *unit,
                      const struct inspect_thread *told) {
    int32_t tid = 0;
    if (told->state == INSPECT_RUNS && told->own_tid != 0)
        tid = told->own_tid;
    else if (told->state == INSPECT_RUNS && told->worker != INSPECT_NOWHERE)
        memory_field(view->source, view_worker(view, (uint32_t)told->worker), struct worker, tid, &tid);
    else if (unit->sp == UNIT_KEPT && unit->tcb != NULL)
        memory_field(view->source, unit->tcb, struct carrier, tid, &tid);
    return tid;
}

/* The function that it runs, or will; of a front end's thread, that one's. */
static uint64_t function_of(const struct view *view, const struct thrum_unit *unit) {
    uint64_t function = (uintptr_t)unit->fn;
    if (is_fronts(view, unit))
        memory_get(view->source, (uintptr_t)unit->arg + view->front.function, &function, sizeof function);
    return function;
}

/* False: unused, or none that a user knows. */
static bool is_users(const struct thrum_unit *unit) {
    return unit->kind != UNIT_FREE && unit->kind != UNIT_LOOP && unit->kind <= UNIT_SOLO;
}

/* False: as is_users. */
static bool describe(const struct view *view, uint64_t handle, const struct thrum_unit *unit,
                     struct inspect_thread *told) {
    if (!is_users(unit))
        return false;
    *told = (struct inspect_thread){.handle = handle,
                                    .id = unit->extras || unit->is_primary ? unit->id : 0,
                                    .is_tasklet = unit->kind == UNIT_TASKLET,
                                    .is_main = unit->is_primary,
                                    .is_external = unit->kind == UNIT_EXTERNAL,
                                    .worker = INSPECT_NOWHERE,
                                    .priority = unit->priority};
    if (unit->extras || unit->is_primary)
        memcpy(told->name, unit->name, sizeof told->name - 1);
    if (unit->kind == UNIT_POOLED || told->is_tasklet)
        told->pool = (uintptr_t)unit->pool;
    if (unit->kind == UNIT_SOLO)
        memory_field(view->source, unit->bound, struct worker, tid, &told->own_tid);
    describe_state(view, unit, told);
    describe_stack(view, unit, told);
    if (told->state != INSPECT_ENDED && !told->is_external && !told->is_main) {
        told->function = function_of(view, unit);
        told->argument = (uintptr_t)unit->arg;
    }
    told->tid = tid_of(view, unit, told);
    bool switched_out = told->state == INSPECT_READY || told->state == INSPECT_WAITS;
    if (switched_out && !told->is_external && (intptr_t)unit->sp > 0)
        told->stack_pointer = (uintptr_t)unit->sp;
    return true;
}

bool inspect_find(const struct inspect_source *source, uint64_t handle, struct inspect_thread *thread) {
    struct view view;
    struct thrum_unit unit;
    return handle % _Alignof(struct thrum_unit) == 0 && view_open(&view, source) &&
           memory_get(source, handle, &unit, sizeof unit) && describe(&view, handle, &unit, thread);
}

uint64_t inspect_awaited(const struct inspect_source *source, uint64_t handle, bool *has_deadline) {
    struct view view;
    struct thrum_unit unit;
    struct inspect_thread thread = {.owner = 0};
    enum awaits awaits;
    if (handle % _Alignof(struct thrum_unit) != 0 || !view_open(&view, source) ||
        !memory_get(source, handle, &unit, sizeof unit) || !is_users(&unit) || unit.join == JOIN_ENDED ||
        (awaits = awaits_of(&view, &unit)) == AWAITS_NOTHING)
        return 0;
    describe_wait(&view, &unit, awaits, &thread);
    *has_deadline |= thread.has_deadline;
    return thread.owner;
}

bool inspect_is_external(const struct inspect_source *source, uint64_t handle) {
    uint8_t kind;
    return memory_field(source, handle, struct thrum_unit, kind, &kind) && kind == UNIT_EXTERNAL;
}

/* --- all of them -------------------------------------------------------------------------------------- */

struct telling {
    struct view view;
    struct inspect_summary *summary;
    bool (*tell)(void *context, const struct inspect_thread *thread);
    void *context;
};

static bool waits_for_outside(const struct inspect_thread *thread) {
    return thread->has_deadline || thread->awaits == AWAITS_TIME || thread->awaits == AWAITS_CALL ||
           thread->awaits == AWAITS_WORKER;
}

static bool tell_of(struct telling *telling, uint64_t handle, const struct thrum_unit *unit) {
    struct inspect_thread thread;
    if (!describe(&telling->view, handle, unit, &thread))
        return true;
    telling->summary->threads[thread.state]++;
    telling->summary->waiting_for_outside += thread.state == INSPECT_WAITS && waits_for_outside(&thread);
    return telling->tell(telling->context, &thread);
}

/* The units of a chunk lie one behind the other. */
static bool tell_of_chunk(struct telling *telling, uint64_t chunk, const struct depot_shape *shape,
                          bool *keep_going) {
    struct thrum_unit units[UNITS_AT_ONCE];
    for (unsigned at = 0; at < shape->per_chunk && *keep_going; at += UNITS_AT_ONCE) {
        unsigned count = shape->per_chunk - at < UNITS_AT_ONCE ? shape->per_chunk - at : UNITS_AT_ONCE;
        uint64_t first = chunk + shape->size * (at + 1);
        if (!memory_get(telling->view.source, first, units, count * sizeof *units))
            return false;
        for (unsigned i = 0; i < count && *keep_going; i++)
            *keep_going = tell_of(telling, first + i * sizeof *units, &units[i]);
    }
    return true;
}

/* False: a chunk was unmapped during the inspection, and with it the way to the rest. */
static bool tell_of_all(struct telling *telling, bool *keep_going) {
    const struct inspect_source *source = telling->view.source;
    struct depot_shape shape;
    struct depot_chunk header;
    uint64_t chunk;
    if (!memory_field(source, telling->view.image.units, struct depot, shape, &shape) ||
        !memory_field(source, telling->view.image.units, struct depot, chunks, &chunk))
        return false;
    if (shape.size != sizeof(struct thrum_unit) || shape.per_chunk > shape.chunk / shape.size)
        return false;
    for (unsigned i = 0; chunk != 0 && *keep_going && i < CHUNKS_MAX; i++) {
        if (!memory_get(source, chunk, &header, sizeof header) ||
            !tell_of_chunk(telling, chunk, &shape, keep_going))
            return false;
        chunk = (uintptr_t)header.next;
    }
    return true;
}

static bool say_nothing(void *context, const struct inspect_thread *thread) {
    (void)context, (void)thread;
    return true;
}

bool inspect_threads(const struct inspect_source *source, struct inspect_summary *summary,
                     bool (*tell)(void *context, const struct inspect_thread *thread), void *context) {
    struct inspect_summary unwanted;
    uint64_t current[WORKERS_MAX];
    struct telling telling = {.summary = summary != NULL ? summary : &unwanted,
                              .tell = tell != NULL ? tell : say_nothing,
                              .context = context};
    *telling.summary = (struct inspect_summary){.is_whole = false};
    if (!view_open(&telling.view, source))
        return false;
    note_current(&telling.view, current);
    memcpy(telling.summary->version, telling.view.image.version, sizeof telling.summary->version);
    telling.summary->workers = count_workers(&telling.view);
    struct thrum_unit primary;
    bool keep_going = true;
    if (memory_field(source, telling.view.image.runtime, struct runtime, primary, &primary))
        keep_going = tell_of(
            &telling, (uintptr_t)telling.view.image.runtime + offsetof(struct runtime, primary), &primary);
    telling.summary->is_whole = tell_of_all(&telling, &keep_going);
    return true;
}

bool inspect_all_wait(const struct inspect_summary *summary) {
    const uint64_t *threads = summary->threads;
    return threads[INSPECT_WAITS] != 0 && summary->waiting_for_outside == 0 &&
           threads[INSPECT_RUNS] + threads[INSPECT_NEW] + threads[INSPECT_READY] == 0;
}
