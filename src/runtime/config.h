// SPDX-License-Identifier: Apache-2.0
/* What the configuration and the environment say. */
#ifndef THRUM_RUNTIME_CONFIG_H
#define THRUM_RUNTIME_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "preempt/preempt.h"
#include "thrum/thrum.h"

/* The runtime's settings. */
struct settings {
    uint32_t workers;
    size_t stack_size; /* of the default class: a power of two */
    struct preempt_settings preempt;
};

/* `config` may be NULL. 0, or EINVAL, after a line if it is the environment that is wrong. */
int config_read(const struct thrum_config *config, struct settings *settings);

#endif
