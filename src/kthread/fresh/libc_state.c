// SPDX-License-Identifier: Apache-2.0
/* libc's own thread-locals, which must not be overwritten as a block: its malloc cache and arena live there and
 * stay. What a program can see of them is put back one by one. Row libc-tls. */
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <netdb.h>
#include <resolv.h>
#include <string.h>

#include "base/rows.h"
#include "kthread/fresh/fresh.h"

/* What libc would free at a real exit. It may call free(), and an allocator with thread-locals of its own may come
 * to life once more in it, as it would there: what it leaves in its key is cleared afterwards. */
bool libc_state_end(void) {
    if (skipped(ROW_LIBC_TLS))
        return false;
    const bool has_error = dlerror() != NULL; /* it was pending, ... */
    if (has_error)
        dlerror(); /* ... and this call frees it */
    const bool has_resolver = _res.options != 0 || _res.nscount != 0;
    if (has_resolver) {
        res_nclose(&_res);
        memset(&_res, 0, sizeof _res); /* the next user initialises it, as in a new thread */
    }
    return has_error || has_resolver;
}

/* uselocale also points the ctype tables at the global locale of this moment: another thread may have called
 * setlocale while this one was idle. */
void libc_state_begin(void) {
    if (skipped(ROW_LIBC_TLS))
        return;
    uselocale(LC_GLOBAL_LOCALE);
    h_errno = 0;
    errno = 0;
}
