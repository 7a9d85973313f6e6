// SPDX-License-Identifier: Apache-2.0
/* libthrum: errno in functions that wait.
 *
 *     char byte;
 *     errno = 0;
 *     thrum_yield(); // may return on another worker's kernel thread
 *     if (read(STDIN_FILENO, &byte, 1) < 0)
 *         perror("read"); // the errno that read has set
 *
 * errno is a thread-local variable of the kernel thread. The C library declares the function behind it `const`, so a
 * compiler calls it once and keeps the address for the rest of the function, also across a wait. After the wait the thread
 * may run on another kernel thread. Here every use of errno looks the address up again, which costs 1.4 ns at 3 GHz.
 *
 * <thrum/thrum.h> includes this header unless the program defines THRUM_PLAIN_ERRNO first. It affects the code after it:
 * inline functions of headers included earlier keep the C library's errno. A source file that does not know libthrum, but
 * whose callees may wait, can include it with the compiler option -include thrum/errno.h.
 *
 * The value still belongs to the kernel thread. After a wait it is what the last code on that kernel thread left, as after
 * any call that says nothing about errno. Only thrum_blocking (<thrum/worker.h>) carries errno over to its caller. */
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
    __asm__("" : "+r"(location)); /* hides from the compiler which function it calls */
    return location();
}

#ifdef __cplusplus
}
#endif

#undef errno
#define errno (*thrum_errno_location())

#endif
