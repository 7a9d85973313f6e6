// SPDX-License-Identifier: Apache-2.0
/* See config.h. */
#include "runtime/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/text.h"
#include "context/stack.h"
#include "os/quota.h"
#include "os/topology.h"
#include "sched/worker.h"

enum { STACK_SIZE_MAX = 1 << 30 };

/* NULL: not set, or empty, which is the same. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* Decimal digits, up to *end; 0 if there are none, ULONG_MAX if there are too many. */
static unsigned long number(const char *digits, char **end) {
    int error = errno;
    unsigned long value = strtoul(digits, end, 10);
    errno = error;
    return *digits >= '0' && *digits <= '9' ? value : 0;
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
    int error = read_workers(config->workers, &settings->workers);
    return error != 0 ? error : read_stack_size(config->stack_size, &settings->stack_size);
}

unsigned thrum_workers_default(void) {
    uint32_t workers;
    return read_workers(0, &workers) == 0 ? workers : 0;
}
