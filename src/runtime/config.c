// SPDX-License-Identifier: Apache-2.0
/* See config.h. */
#include "runtime/config.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/text.h"
#include "os/quota.h"
#include "sched/worker.h"

static uint32_t cpus(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    uint32_t allowed = count > 0 ? (uint32_t)count : 1, quota = quota_cpus();
    return quota < allowed ? quota : allowed;
}

int config_workers(const struct thrum_config *config, uint32_t *workers) {
    unsigned long wanted = config != NULL ? config->workers : 0;
    const char *variable = getenv("THRUM_WORKERS");
    if (wanted == 0 && variable != NULL && *variable != '\0') {
        char *end;
        wanted = strtoul(variable, &end, 10);
        if (*end != '\0' || *variable < '0' || *variable > '9' || wanted == 0 || wanted > WORKERS_MAX) {
            text_line("THRUM_WORKERS is '", variable, "'; it takes a number from 1 to 1024");
            return EINVAL;
        }
    }
    if (wanted > WORKERS_MAX)
        return EINVAL;
    *workers = wanted != 0 ? (uint32_t)wanted : cpus();
    if (*workers > WORKERS_MAX)
        *workers = WORKERS_MAX;
    return 0;
}
