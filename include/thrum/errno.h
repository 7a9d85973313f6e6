// SPDX-License-Identifier: Apache-2.0
/* libthrum: errno in functions that wait.
 *
 *     char byte;
 *     errno = 0;
 *     thrum_yield(); // may return on another worker's kernel thread
 *     if (read(STDIN_FILENO, &byte, 1) < 0)
 *         perror("read"); // reads the errno that read has set
 *
 * errno is a thread-local variable of the kernel thread. The C library declares the function behind it `const`, so a
 * compiler calls it once and keeps the address for the rest of the function, also across a wait, after which the thread
 * may run on another kernel thread. Here errno is asked for each time it is named: 1.4 ns at 3 GHz.
 *
 * <thrum/thrum.h> includes this, unless the program defines THRUM_PLAIN_ERRNO before. It holds for what is compiled after
 * it: inline functions of headers that were included before keep the C library's errno. A source file that does not know
 * of libthrum, and whose functions wait in what they call, includes it by the compiler's -include thrum/errno.h. The value
 * is still the kernel thread's: after a wait it is whatever ran there last has left, as after any call that says nothing
 * about errno. Only thrum_blocking (<thrum/worker.h>) brings one along. */
#ifndef THRUM_ERRNO_H
#define THRUM_ERRNO_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
inline
#else
static __inline__
#endif
    int *
    thrum_errno_location(void) {
    int *(*location)(void) = __errno_location;
    __asm__("" : "+r"(location)); /* from here on the compiler does not know what it calls */
    return location();
}

#ifdef __cplusplus
}
#endif

#undef errno
#define errno (*thrum_errno_location())

#endif
