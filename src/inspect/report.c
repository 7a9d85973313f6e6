// SPDX-License-Identifier: Apache-2.0
/* See report.h. */
#include "inspect/report.h"

#include <string.h>

#include "base/text.h"
#include "sched/awaits.h"

/* Takes `width` bytes with the space behind it. A row of less than `least` bytes has no such column. */
struct column {
    const char *title;
    size_t width, least;
};

static const struct column worker_columns[] = {
    {"WORKER", 8, 0}, {"KERNEL THREAD", 15, 0}, {"STATE", 28, 0},
    {"TICKS", 8, 59}, {"SWITCHES", 11, 67},     {"STEALS", 9, 87},
    {"PARKS", 9, 96}, {"MIGRATIONS", 12, 106},  {"QUEUED", 6, 76},
};

static const struct column thread_columns[] = {
    {"THREAD", 16, 0},          {"ID", 9, 111},        {"NAME", 17, 0},   {"STATE", 8, 0},
    {"WORKER OR POOL", 17, 76}, {"PRIORITY", 10, 120}, {"STACK", 18, 95}, {"FUNCTION", 22, 52},
    {"WAITS FOR", 0, 120},
};

struct printing {
    const struct inspect_source *source;
    const struct inspect_report *report;
    uint64_t printed;
    struct inspect_search search;
};

/* --- a line ------------------------------------------------------------------------------------------- */

static void put(const struct printing *printing, struct text *text) {
    while (text->length > 0 && text->bytes[text->length - 1] == ' ')
        text->length--;
    text->bytes[text->length++] = '\n';
    printing->report->line(printing->report->context, text->bytes, text->length);
    text->length = 0;
}

/* Cut to the requested width, between characters. */
static void put_row(const struct printing *printing, struct text *text) {
    size_t columns = printing->report->columns;
    if (columns != 0 && text->length > columns) {
        text->length = columns;
        while (text->length > 0 && (text->bytes[text->length] & 0xc0) == 0x80)
            text->length--;
    }
    put(printing, text);
}

/* A line of a table. What is added to a column that the row does not have is taken away again when that ends. */
struct row {
    const struct printing *printing;
    const struct column *column; /* the present one */
    size_t at, begin;            /* where its place is, and where what is in it begins */
    struct text text;
};

static bool has_column(const struct row *row) {
    size_t columns = row->printing->report->columns;
    return columns == 0 || columns >= row->column->least;
}

static void end_column(struct row *row) {
    if (has_column(row))
        row->at += row->column->width;
    else
        row->text.length = row->begin;
}

/* On to the next column; there is a space before it at least. */
static struct text *next(struct row *row) {
    end_column(row);
    row->column++;
    row->begin = row->text.length;
    do
        text_add(&row->text, " ");
    while (row->text.length < row->at && row->text.length < sizeof row->text.bytes - 1);
    return &row->text;
}

static void end_row(struct row *row) {
    end_column(row);
    put_row(row->printing, &row->text);
}

static void print_titles(const struct printing *printing, const struct column *columns, size_t count) {
    struct row row = {.printing = printing, .column = columns};
    text_add(&row.text, columns->title);
    for (size_t i = 1; i < count; i++)
        text_add(next(&row), columns[i].title);
    end_row(&row);
}

static void add_address(struct text *text, uint64_t address) {
    char digits[19];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[address % 16];
        address /= 16;
    } while (address != 0);
    text_add(text, "0x");
    text_add(text, digits + at);
}

/* A name is the program's choice, and the line may go to a terminal: a terminal's control characters become question
 * marks. */
static void add_printable(struct text *text, const char *name) {
    while (*name != '\0') {
        size_t length = text_printable_length(name);
        char character[5] = "?";
        if (length != 0)
            memcpy(character, name, length);
        text_add(text, character);
        name += length != 0 ? length : 1;
    }
}

static void add_name(struct text *text, const struct inspect_thread *thread) {
    if (thread->name[0] != '\0')
        add_printable(text, thread->name);
    else
        text_add(text, thread->is_main       ? "(main)"
                       : thread->is_external ? "(external)"
                       : thread->is_tasklet  ? "(tasklet)"
                                             : "-");
}

/* As others call it. */
static void add_thread(const struct printing *printing, struct text *text, uint64_t handle) {
    struct inspect_thread thread;
    add_address(text, handle);
    if (!inspect_find(printing->source, handle, &thread))
        return;
    if (thread.name[0] == '\0' && !thread.is_main && !thread.is_external && !thread.is_tasklet)
        return; /* "-" has a meaning in a column only */
    text_add(text, " ");
    add_name(text, &thread);
}

static void add_function(const struct printing *printing, struct text *text,
                         const struct inspect_thread *thread) {
    const struct inspect_report *report = printing->report;
    bool is_known = thread->function != 0;
    const char *name = report->name != NULL && is_known ? report->name(report->context, thread) : NULL;
    if (name != NULL)
        text_add(text, name);
    else if (!is_known)
        text_add(text, "-");
    else
        add_address(text, thread->function);
}

static void add_counted(struct text *text, uint64_t number, const char *what) {
    text_add_number(text, number);
    text_add(text, what);
}

/* --- workers ------------------------------------------------------------------------------------------ */

static bool print_worker(void *context, const struct inspect_worker *worker) {
    struct printing *printing = context;
    struct row row = {.printing = printing, .column = worker_columns};
    text_add_number(&row.text, worker->number);
    text_add_number(next(&row), (uint64_t)worker->tid);
    text_add(next(&row), inspect_worker_state_word(worker->state));
    if (worker->state == INSPECT_AT_WORK) {
        text_add(&row.text, " ");
        add_thread(printing, &row.text, worker->current);
    }
    text_add(next(&row), inspect_ticks_word(worker->ticks));
    text_add_number(next(&row), worker->switches);
    text_add_number(next(&row), worker->steals);
    text_add_number(next(&row), worker->parks);
    text_add_number(next(&row), worker->migrations);
    text_add_number(next(&row), worker->queued);
    end_row(&row);
    return true;
}

/* --- threads ------------------------------------------------------------------------------------------ */

static void add_where(struct text *text, const struct inspect_thread *thread) {
    if (thread->worker != INSPECT_NOWHERE) {
        text_add(text, "worker ");
        text_add_number(text, (uint64_t)thread->worker);
    } else if (thread->own_tid != 0) {
        text_add(text, "thread ");
        text_add_number(text, (uint64_t)thread->own_tid);
    } else if (thread->pool != 0) {
        add_address(text, thread->pool);
    } else {
        text_add(text, "any");
    }
}

static void add_stack(struct text *text, const struct inspect_thread *thread) {
    bool known = thread->stack_pointer > thread->stack_low && thread->stack_pointer < thread->stack_top;
    if (thread->stack_top == 0) {
        text_add(text, "-");
        return;
    }
    if (known)
        text_add_number(text, thread->stack_top - thread->stack_pointer);
    else
        text_add(text, "?");
    text_add(text, " of ");
    text_add_number(text, thread->stack_top - thread->stack_low);
}

static const char with_a_deadline[] = " (with a deadline)";

static void add_wait(const struct printing *printing, struct text *text,
                     const struct inspect_thread *thread) {
    text_add(text, inspect_awaits(thread->awaits));
    text_add(text, " ");
    if (thread->awaits != AWAITS_END && thread->object != 0)
        add_address(text, thread->object);
    if (thread->awaits != AWAITS_END && thread->owner != 0)
        text_add(text, ", held by ");
    if (thread->owner != 0)
        add_thread(printing, text, thread->owner);
    if (thread->has_deadline)
        text_add(text, with_a_deadline);
}

static void add_id(struct text *text, uint64_t id) {
    if (id != 0)
        text_add_number(text, id);
    else
        text_add(text, "-");
}

static void print_row(const struct printing *printing, const struct inspect_thread *thread) {
    struct row row = {.printing = printing, .column = thread_columns};
    add_address(&row.text, thread->handle);
    add_id(next(&row), thread->id);
    add_name(next(&row), thread);
    text_add(next(&row), inspect_state_word(thread->state));
    add_where(next(&row), thread);
    text_add_number(next(&row), thread->priority);
    add_stack(next(&row), thread);
    add_function(printing, next(&row), thread);
    if (thread->state != INSPECT_WAITS) {
        end_row(&row);
        return;
    }
    size_t columns = printing->report->columns;
    add_wait(printing, next(&row), thread);
    if (has_column(&row) && (columns == 0 || row.text.length <= columns)) {
        end_row(&row);
        return;
    }
    row.text.length = row.begin;
    put_row(printing, &row.text);
    text_add(&row.text, "    waits for ");
    add_wait(printing, &row.text, thread);
    put_row(printing, &row.text);
}

static bool print_thread(void *context, const struct inspect_thread *thread) {
    struct printing *printing = context;
    const struct inspect_report *report = printing->report;
    struct inspect_thread told = *thread;
    if (printing->printed == report->most)
        return false;
    printing->printed++;
    if (told.tid != 0 && report->stack_pointer != NULL)
        told.stack_pointer = report->stack_pointer(report->context, thread);
    print_row(printing, &told);
    if (report->after != NULL)
        report->after(report->context, thread);
    return true;
}

static void print_rest(const struct printing *printing, const char *margin, uint64_t count) {
    struct text text = {.length = 0};
    text_add(&text, margin);
    text_add(&text, "... and ");
    add_counted(&text, count, " more");
    put(printing, &text);
}

/* --- what is wrong ------------------------------------------------------------------------------------ */

enum { MEMBERS = 16 };

static void print_member(const struct printing *printing, uint64_t handle) {
    struct inspect_thread thread;
    struct text text = {.length = 0};
    text_add(&text, "  ");
    add_thread(printing, &text, handle);
    if (inspect_find(printing->source, handle, &thread) && thread.state == INSPECT_WAITS) {
        text_add(&text, " waits for ");
        add_wait(printing, &text, &thread);
    }
    put(printing, &text);
}

static bool print_cycle(void *context, const struct inspect_thread *thread) {
    struct printing *printing = context;
    uint64_t members[MEMBERS];
    bool has_deadline;
    size_t length = inspect_cycle(&printing->search, thread, members, MEMBERS, &has_deadline);
    if (length != 0) {
        struct text text = {.length = 0};
        text_add(&text, "DEADLOCK: ");
        add_counted(&text, length, length == 1 ? " thread waits for itself" : " threads wait for each other");
        if (has_deadline)
            text_add(&text, with_a_deadline);
        put(printing, &text);
        for (size_t i = 0; i < length && i < MEMBERS; i++)
            print_member(printing, members[i]);
        if (length > MEMBERS)
            print_rest(printing, "  ", length - MEMBERS);
    }
    return printing->search.steps != 0;
}

static void print_line(const struct printing *printing, const char *line) {
    struct text text = {.length = 0};
    text_add(&text, line);
    put(printing, &text);
}

/* Why none comes, as far as the kernel tells. */
static const char *silence_of(const struct inspect_worker *worker) {
    if (worker->ticks == INSPECT_TICKS_BLOCKED)
        return " blocks its signal";
    switch (worker->kernel_state) {
    case 'R': return " gets no CPU";
    case 'D': return " waits in the kernel, where no signal interrupts it";
    case 'T':
    case 't': return " is stopped";
    default: return " takes none";
    }
}

static bool print_silence(void *context, const struct inspect_worker *worker) {
    const struct printing *printing = context;
    struct text text = {.length = 0};
    text_add(&text, "NO TICK: worker ");
    text_add_number(&text, worker->number);
    text_add(&text, " has had none for ");
    text_add_number(&text, worker->since_tick / 1000000000);
    text_add(&text, ".");
    text_add_number(&text, worker->since_tick / 100000000 % 10);
    text_add(&text, " s while it runs ");
    add_thread(printing, &text, worker->current);
    text_add(&text, ": kernel thread ");
    text_add_number(&text, (uint64_t)worker->tid);
    text_add(&text, silence_of(worker));
    put(printing, &text);
    return true;
}

static void print_findings(struct printing *printing, const struct inspect_summary *summary) {
    inspect_silent_workers(printing->source, print_silence, printing);
    inspect_threads(printing->source, NULL, print_cycle, printing);
    if (!printing->search.is_whole)
        print_line(printing,
                   "There are too many chains of waiting threads, or too long ones, to search all of "
                   "them for cycles.");
    if (inspect_all_wait(summary))
        print_line(printing, "HINT: all threads wait, and none for a time, a blocking call or a deadline: "
                             "unless an external kernel thread wakes one, none will run again.");
    if (!summary->is_whole)
        print_line(printing, "Memory was freed while it was read: some threads are missing here.");
}

/* --- all ---------------------------------------------------------------------------------------------- */

static void print_summary(const struct printing *printing, const struct inspect_summary *summary) {
    static const char *const states[] = {" running, ", " new, ", " ready, ", " waiting, ", " ended"};
    struct text text = {.length = 0};
    uint64_t all = 0;
    for (unsigned i = 0; i < INSPECT_STATES; i++)
        all += summary->threads[i];
    text_add(&text, "libthrum ");
    text_add(&text, summary->version);
    text_add(&text, ": ");
    add_counted(&text, summary->workers, summary->workers == 1 ? " worker, " : " workers, ");
    add_counted(&text, all, all == 1 ? " thread: " : " threads: ");
    for (unsigned i = 0; i < INSPECT_STATES; i++)
        add_counted(&text, summary->threads[i], states[i]);
    put(printing, &text);
}

static void print_blocks(struct text *text, const struct inspect_resources *told) {
    if (told->carries) {
        add_counted(text, told->donors, told->donors == 1 ? " carrier, " : " carriers, ");
        add_counted(text, told->spare, " spare");
        return;
    }
    add_counted(text, told->own_blocks,
                told->own_blocks == 1 ? " own thread block, " : " own thread blocks, ");
    add_counted(text, told->own_spare, " spare; ");
    add_counted(text, told->spare, " spare to lend; ");
    add_counted(text, told->donors, told->donors == 1 ? " donor" : " donors");
}

/* The line about blocking calls only where there was one lately. */
static void print_resources(const struct printing *printing) {
    struct inspect_resources told;
    struct text text = {.length = 0};
    if (!inspect_get_resources(printing->source, &told))
        return;
    text_add(&text, "preemption: ");
    text_add(&text, told.mode);
    if (told.signal != 0) {
        text_add(&text, ", signal ");
        add_counted(&text, (uint64_t)told.signal, "; ");
        add_counted(&text, told.preempted, " preempted; ");
        print_blocks(&text, &told);
    }
    put(printing, &text);
    if (told.blocking_threads == 0)
        return;
    text_add(&text, "blocking calls: ");
    add_counted(&text, told.blocking_calls, " on ");
    add_counted(&text, told.blocking_threads,
                told.blocking_threads == 1 ? " kernel thread" : " kernel threads");
    put(printing, &text);
}

bool inspect_print(const struct inspect_source *source, const struct inspect_report *report) {
    struct printing printing = {.source = source, .report = report, .search = inspect_search_begin(source)};
    struct inspect_summary summary;
    uint64_t all = 0;
    if (!inspect_threads(source, &summary, NULL, NULL))
        return false;
    for (unsigned i = 0; i < INSPECT_STATES; i++)
        all += summary.threads[i];
    print_summary(&printing, &summary);
    print_resources(&printing);
    print_titles(&printing, worker_columns, sizeof worker_columns / sizeof *worker_columns);
    inspect_workers(source, print_worker, &printing);
    print_titles(&printing, thread_columns, sizeof thread_columns / sizeof *thread_columns);
    inspect_threads(source, NULL, print_thread, &printing);
    if (all > printing.printed)
        print_rest(&printing, "", all - printing.printed);
    print_findings(&printing, &summary);
    return true;
}
