// SPDX-License-Identifier: Apache-2.0
//
// A module's worth of thread-local variables: initialised, relocated, zero, large, aligned. Included by the program
// of row "static-tls" and by the modules it is linked with or opens, so that each has a set of its own.
// TLS_BIG and TLS_ALIGN may be set on the compiler's command line.
#ifndef THRUM_TESTS_ROWS_TLS_VARS_H
#define THRUM_TESTS_ROWS_TLS_VARS_H

#include <stddef.h>
#include <stdint.h>

#ifndef TLS_BIG
#define TLS_BIG 65536
#endif
#ifndef TLS_ALIGN
#define TLS_ALIGN 4096
#endif

static int tls_target;

static _Thread_local volatile int tls_initialised = 42;
static _Thread_local volatile char tls_text[8] = "fresh";
static _Thread_local int *volatile tls_relocated =
    &tls_target; // in a PIE or DSO its image is written at load time
static _Thread_local volatile int tls_zero;
static _Thread_local volatile char tls_big[TLS_BIG];
static _Thread_local _Alignas(TLS_ALIGN) volatile char tls_aligned[TLS_ALIGN + 8] = {1};
static _Thread_local volatile char tls_last = 'l';

// Changes every variable.
static inline void tls_dirty(void) {
    tls_initialised = 13;
    for (size_t i = 0; i < sizeof tls_text; i++)
        tls_text[i] = 'x';
    tls_relocated = NULL;
    tls_zero = 7;
    for (size_t i = 0; i < TLS_BIG; i++)
        tls_big[i] = (char)(i | 1);
    for (size_t i = 0; i < sizeof tls_aligned; i++)
        tls_aligned[i] = (char)0xee;
    tls_last = 'd';
}

// NULL if every variable is as in a new thread, else the name of the first one that is not.
static inline const char *tls_wrong(void) {
    static const char text[8] = "fresh";
    if (tls_initialised != 42)
        return ".tdata int";
    for (size_t i = 0; i < sizeof text; i++)
        if (tls_text[i] != text[i])
            return ".tdata text";
    if (tls_relocated != &tls_target)
        return "relocated .tdata pointer";
    if (tls_zero != 0)
        return ".tbss int";
    for (size_t i = 0; i < TLS_BIG; i++)
        if (tls_big[i] != 0)
            return "large .tbss array";
    if ((uintptr_t)tls_aligned % TLS_ALIGN != 0)
        return "alignment";
    if (tls_aligned[0] != 1)
        return "aligned .tdata array";
    for (size_t i = 1; i < sizeof tls_aligned; i++)
        if (tls_aligned[i] != 0)
            return "aligned .tdata array's rest";
    if (tls_last != 'l')
        return "last .tdata byte";
    return NULL;
}

#endif
