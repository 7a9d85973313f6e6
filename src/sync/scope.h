// SPDX-License-Identifier: Apache-2.0
/* Scopes, as the runtime sees them. See scope.c. */
#ifndef THRUM_SYNC_SCOPE_H
#define THRUM_SYNC_SCOPE_H

void scope_fork_child(void);

#endif
