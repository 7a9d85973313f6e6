// SPDX-License-Identifier: Apache-2.0
/* What the configuration and the environment say. */
#ifndef THRUM_RUNTIME_CONFIG_H
#define THRUM_RUNTIME_CONFIG_H

#include <stdint.h>

#include "thrum/thrum.h"

/* 0 or EINVAL. */
int config_workers(const struct thrum_config *config, uint32_t *workers);

#endif
