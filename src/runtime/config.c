// SPDX-License-Identifier: Apache-2.0
/* See config.h. */
#include "runtime/config.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arch_tcb.h"
#include "base/text.h"
#include "context/stack.h"
#include "os/quota.h"
#include "os/topology.h"
#include "runtime/variables.h"
#include "sched/worker.h"

enum { STACK_SIZE_MAX = 1 << 30 };

/* NULL: not set, or empty, which is the same. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

static bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

/* Decimal digits, up to *end; 0 if there are none, which is no number where 0 is one; ULONG_MAX if there are too many. */
static unsigned long number(const char *digits, char **end) {
    int error = errno;
    unsigned long value = strtoul(digits, end, 10);
    errno = error;
    return is_digit(*digits) ? value : 0;
}

/* --- workers ------------------------------------------------------------------------------------------ */

static uint32_t cpus(void) {
    struct cpus set;
    cpus_allowed(&set);
    uint32_t allowed = cpus_count(&set), quota = quota_cpus();
    uint32_t least = quota < allowed ? quota : allowed;
    if (least > WORKERS_MAX)
        return WORKERS_MAX;
    return least > 0 ? least : 1;
}

static int workers_by_environment(uint32_t *workers) {
    const char *value = variable("THRUM_WORKERS");
    char *end;
    *workers = 0;
    if (value == NULL)
        return 0;
    unsigned long wanted = number(value, &end);
    if (*end != '\0' || wanted == 0 || wanted > WORKERS_MAX) {
        text_line("THRUM_WORKERS is '", value, "'; it takes a number from 1 to 1024");
        return EINVAL;
    }
    *workers = (uint32_t)wanted;
    return 0;
}

static int read_workers(unsigned wanted, uint32_t *workers) {
    if (wanted > WORKERS_MAX)
        return EINVAL;
    int error = 0;
    *workers = wanted;
    if (wanted == 0)
        error = workers_by_environment(workers);
    if (*workers == 0)
        *workers = cpus();
    return error;
}

/* --- the default size of stacks ----------------------------------------------------------------------- */

static unsigned shift_of(char suffix) {
    switch (suffix) {
    case 'k':
    case 'K': return 10;
    case 'm':
    case 'M': return 20;
    case 'g':
    case 'G': return 30;
    default: return 0;
    }
}

static int stack_size_by_environment(size_t *size) {
    const char *value = variable("THRUM_STACK_SIZE");
    char *end;
    *size = 0;
    if (value == NULL)
        return 0;
    unsigned long wanted = number(value, &end);
    unsigned shift = shift_of(*end);
    if (end[shift != 0] != '\0' || wanted == 0 || wanted > (unsigned long)STACK_SIZE_MAX >> shift) {
        text_line("THRUM_STACK_SIZE is '", value, "'; it takes a number of bytes, or of k, m or g, up to 1g");
        return EINVAL;
    }
    *size = wanted << shift;
    return 0;
}

static int read_stack_size(size_t wanted, size_t *size) {
    if (wanted > STACK_SIZE_MAX)
        return EINVAL;
    int error = 0;
    *size = wanted;
    if (wanted == 0)
        error = stack_size_by_environment(size);
    if (*size == 0)
        *size = STACK_SIZE_UNLESS_TOLD;
    *size = stack_fixed_size(stack_class_of(*size));
    return error;
}

/* --- preemption --------------------------------------------------------------------------------------- */

struct choice {
    const char *name;
    unsigned value;
};

/* `wanted`, or if it is 0 what the variable says: one of the choices, of which the first is the usual one. */
static int read_choice(unsigned wanted, const char *name, const char *takes, const struct choice *choices,
                       unsigned count, unsigned *value) {
    const char *said = variable(name);
    *value = wanted != 0 ? wanted : choices[0].value;
    if (wanted != 0 || said == NULL)
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (strcmp(said, choices[i].name) == 0) {
            *value = choices[i].value;
            return 0;
        }
    struct text text;
    text_start(&text);
    text_add(&text, name);
    text_add(&text, " is '");
    text_add(&text, said);
    text_add(&text, "'; it takes ");
    text_add(&text, takes);
    text_finish(&text);
    return EINVAL;
}

/* `auto`: where the program changes thread control blocks by an instruction. Otherwise each change is a system call,
 * also those of main, which may not be needed at all. */
static enum thrum_preempt_mode mode_by_itself(void) {
    return arch_tcb_is_cheap() ? THRUM_PREEMPT_LEND : THRUM_PREEMPT_NONE;
}

static int read_mode(unsigned wanted, struct preempt_settings *settings) {
    enum { AUTO = THRUM_PREEMPT_KLT + 1 };
    static const struct choice choices[] = {
        {"auto", AUTO},
        {"none", THRUM_PREEMPT_NONE},
        {"yield", THRUM_PREEMPT_YIELD},
        {"lend", THRUM_PREEMPT_LEND},
        {"own-tls", THRUM_PREEMPT_OWN_TLS},
        {"klt", THRUM_PREEMPT_KLT},
    };
    unsigned value;
    int error = read_choice(wanted, "THRUM_PREEMPT", "auto, none, yield, lend, own-tls or klt", choices,
                            sizeof choices / sizeof *choices, &value);
    settings->is_lazy = value == AUTO && wanted != AUTO;
    settings->mode = settings->is_lazy ? mode_by_itself() : (enum thrum_preempt_mode)value;
    return error == 0 && settings->mode > THRUM_PREEMPT_KLT ? EINVAL : error;
}

static int read_source(unsigned wanted, enum thrum_tick_source *source) {
    static const struct choice choices[] = {
        {"auto", THRUM_TICK_DEFAULT}, {"timer", THRUM_TICK_TIMER}, {"monitor", THRUM_TICK_MONITOR}};
    unsigned value;
    int error = read_choice(wanted, "THRUM_TICK", "auto, timer or monitor", choices,
                            sizeof choices / sizeof *choices, &value);
    *source = (enum thrum_tick_source)value;
    return error == 0 && value > THRUM_TICK_MONITOR ? EINVAL : error;
}

static int read_blocks(bool *by_donors) {
    static const struct choice choices[] = {{"auto", false}, {"donors", true}};
    unsigned value;
    int error =
        read_choice(0, "THRUM_BLOCKS", "auto or donors", choices, sizeof choices / sizeof *choices, &value);
    *by_donors = value;
    return error;
}

static int read_slice(unsigned wanted, uint64_t *ns) {
    enum { SLICE_UNLESS_TOLD = 10000 }; /* µs */
    const char *value = variable("THRUM_SLICE");
    char *end = NULL;
    unsigned long slice = wanted != 0 ? wanted : value != NULL ? number(value, &end) : SLICE_UNLESS_TOLD;
    *ns = slice * UINT64_C(1000);
    if (slice >= THRUM_SLICE_MIN && slice <= THRUM_SLICE_MAX && (end == NULL || *end == '\0'))
        return 0;
    if (end != NULL)
        text_line("THRUM_SLICE is '", value, "'; it takes microseconds, from 50 to 1000000");
    return EINVAL;
}

static bool is_real_time(long signal) {
    return signal >= SIGRTMIN && signal <= SIGRTMAX;
}

static int read_signal(int wanted, int *signal) {
    enum { SIGNAL_UNLESS_TOLD = 4 }; /* after SIGRTMIN */
    const char *value = variable("THRUM_SIGNAL");
    char *end = NULL;
    *signal = wanted != 0 ? wanted : SIGRTMIN + SIGNAL_UNLESS_TOLD;
    if (wanted == 0 && value != NULL) {
        bool relative = strncmp(value, "rtmin+", 6) == 0;
        const char *digits = relative ? value + strlen("rtmin+") : value;
        unsigned long given = number(digits, &end);
        bool is_number = is_digit(*digits) && *end == '\0' && given <= (unsigned long)SIGRTMAX;
        *signal = is_number ? (int)given + (relative ? SIGRTMIN : 0) : 0;
    }
    if (is_real_time(*signal))
        return 0;
    if (end != NULL)
        text_line("THRUM_SIGNAL is '", value, "'; it takes the number of a real-time signal, or rtmin+N");
    return EINVAL;
}

/* What is not used is not looked at. */
static int read_preempt(const struct thrum_preempt_config *config, struct preempt_settings *settings) {
    int error = read_mode(config->mode, settings);
    if (error != 0 || settings->mode == THRUM_PREEMPT_NONE)
        return error;
    error = read_source(config->source, &settings->source);
    if (error == 0)
        error = read_blocks(&settings->by_donors);
    if (error == 0)
        error = read_slice(config->slice, &settings->slice);
    return error != 0 ? error : read_signal(config->signal, &settings->signal);
}

/* --- all of them -------------------------------------------------------------------------------------- */

/* Later versions may have more to say there. */
static bool is_understood(const struct thrum_config *config) {
    for (unsigned i = 0; i < sizeof config->reserved / sizeof *config->reserved; i++)
        if (config->reserved[i] != 0)
            return false;
    return true;
}

int config_read(const struct thrum_config *config, struct settings *settings) {
    static const struct thrum_config defaults;
    if (config == NULL)
        config = &defaults;
    if (!is_understood(config))
        return EINVAL;
    variables_check();
    int error = read_workers(config->workers, &settings->workers);
    if (error == 0)
        error = read_stack_size(config->stack_size, &settings->stack_size);
    settings->preempt = (struct preempt_settings){.mode = THRUM_PREEMPT_NONE};
    return error != 0 ? error : read_preempt(&config->preempt, &settings->preempt);
}

unsigned thrum_workers_default(void) {
    uint32_t workers;
    return read_workers(0, &workers) == 0 ? workers : 0;
}
