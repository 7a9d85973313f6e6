// SPDX-License-Identifier: Apache-2.0
//
// A function that a stack is to show by its own name.
#ifndef THRUM_TESTS_KEEP_H
#define THRUM_TESTS_KEEP_H

#ifdef __clang__
#define KEEP __attribute__((noinline))
#else
#define KEEP __attribute__((noinline, noclone))
#endif

#endif
