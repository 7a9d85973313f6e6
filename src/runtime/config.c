// SPDX-License-Identifier: Apache-2.0
/* See config.h. */
#include "runtime/config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "os/quota.h"
#include "os/topology.h"
#include "sched/worker.h"

static uint32_t cpus(void) {
    struct cpus set;
    cpus_allowed(&set);
    uint32_t allowed = cpus_count(&set), quota = quota_cpus();
    uint32_t least = quota < allowed ? quota : allowed;
    return least > 0 ? least : 1;
}

int config_workers(const struct thrum_config *config, uint32_t *workers) {
    unsigned long wanted = config != NULL ? config->workers : 0;
    const char *variable = getenv("THRUM_WORKERS");
    if (wanted == 0 && variable != NULL && *variable != '\0') {
        char *end;
        int error = errno;
        wanted = strtoul(variable, &end, 10);
        errno = error;
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
