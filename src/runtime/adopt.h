// SPDX-License-Identifier: Apache-2.0
/* thrum_init in a runtime that a library has started (thrum_acquire): what of its configuration still applies. */
#ifndef THRUM_RUNTIME_ADOPT_H
#define THRUM_RUNTIME_ADOPT_H

#include "runtime/config.h"

/* By the primary. Adds or stops workers until there are as many as `wanted` says. What `config` (which may be NULL) asks for and
 * `running`, the runtime, does not have is said in one line. */
void adopt_settings(const struct thrum_config *config, const struct settings *wanted,
                    const struct settings *running);

#endif
