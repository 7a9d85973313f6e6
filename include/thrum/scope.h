// SPDX-License-Identifier: Apache-2.0
/* libthrum: scopes, for structured concurrency.
 *
 *     static int fetch(void *arg) {
 *         struct request *request = arg;
 *         thrum_sleep(10 * THRUM_MS); // any wait ends the thread when the scope is cancelled
 *         return request->number < 0 ? EPROTO : 0;
 *     }
 *
 *     struct request parts[3] = {{1}, {2}, {3}};
 *     thrum_scope_t scope;
 *     int error = thrum_scope_begin(&scope, thrum_now() + 2 * THRUM_S);
 *     if (error == 0) {
 *         for (int i = 0; i < 3; i++)
 *             thrum_scope_spawn(&scope, NULL, fetch, &parts[i]);
 *         error = thrum_scope_end(&scope); // 0; EPROTO: a part failed, the others were cancelled; ETIMEDOUT
 *     }
 *
 * A scope owns the threads that are spawned in it, its *members*. The thread that began it, its *owner*, cannot leave it
 * before all of them have ended. The first of these cancels the scope as a whole, and is the result of thrum_scope_end:
 * - a member returns an error, a number other than 0: this number;
 * - the scope's deadline comes: ETIMEDOUT;
 * - thrum_scope_cancel is called, or the owner is cancelled or exits: ECANCELED;
 * - a scope around it is cancelled: ETIMEDOUT if by its deadline, ECANCELED otherwise.
 * A cancelled scope accepts no member any more. Its members end as by thrum_cancel: where they wait, or at thrum_testcancel, and
 * their cleanups run. One that had not begun still begins, so that it can free what it was given. So each wait of a member ends at the scope's deadline, whatever its own deadline is.
 *
 * NESTING. A scope that a member or the owner of another one begins is inside that one: it is cancelled with it, and has
 * its deadline, unless its own is earlier. Scopes of one thread end in the reverse order of their beginnings.
 *
 * THE OWNER is no member: nothing ends it, and its waits before thrum_scope_end are its own; thrum_scope_deadline says until
 * when they should last. (Work that shall end with the scope is a member's.) If the owner ends inside a scope, by
 * thrum_exit or thrum_cancel, the scope is cancelled, and its members have ended before frames further out are unwound.
 *
 * After N. J. Smith, "Notes on structured concurrency" (2018), and Go's errgroup. */
#ifndef THRUM_SCOPE_H
#define THRUM_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "thrum/thrum.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* An automatic variable of the function that begins and ends it, which must not be left in between by return, goto or longjmp. */
typedef struct {
    uint64_t opaque[32];
} thrum_scope_t;

/* Begins a scope, with a deadline (ns, CLOCK_MONOTONIC; UINT64_MAX: none but those of scopes around it).
 * From: ULT, external. Errors: EINVAL `scope` is NULL, or the innermost scope that the caller has begun; EPERM the caller is a tasklet or a scheduler; EAGAIN no memory. */
int thrum_scope_begin(thrum_scope_t *scope, uint64_t deadline);

/* Spawns a member, which runs fn(arg). Its attributes are `attr`, which may be NULL, and it is cancellable. Returning a number
 * other than 0 is an error and cancels the scope; thrum_exit is a return of 0. It costs some 30 ns more than thrum_spawn.
 *
 * From: the owner and the members; any other thread, while a member that is known to run keeps the scope from ending.
 * Errors: ECANCELED the scope is cancelled, and no thread was created; EINVAL as thrum_spawn, or the scope has ended, or `attr` says
 * THRUM_SPAWN_TASKLET; EAGAIN as thrum_spawn. These do not cancel the scope. */
int thrum_scope_spawn(thrum_scope_t *scope, const thrum_attr_t *attr, int (*fn)(void *arg), void *arg);

/* Cancels the scope and all scopes inside it; does nothing if it is cancelled already. It does not wait.
 * From: as thrum_scope_spawn. Errors: EINVAL `scope` is NULL. */
int thrum_scope_cancel(thrum_scope_t *scope);

/* True if the scope is cancelled. From: as thrum_scope_spawn. */
bool thrum_scope_cancelled(const thrum_scope_t *scope);

/* The deadline of the innermost scope that the caller is the owner or a member of, those around it included; UINT64_MAX:
 * none. For the owner's waits, and for calls outside this library. From: ULT, external. */
uint64_t thrum_scope_deadline(void);

/* Waits until all members have ended, and ends the scope. If the caller is cancelled meanwhile the scope is, too. A cancellation
 * point, also where no member is left.
 *
 * From: the owner.
 * Errors: that by which the scope was cancelled; see above. EINVAL `scope` is NULL, or not the innermost that the caller has
 * begun; then it has not ended. ESRCH thrum_fini was called, or this is the child of a fork, and members never end. */
int thrum_scope_end(thrum_scope_t *scope);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
