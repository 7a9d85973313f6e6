// SPDX-License-Identifier: Apache-2.0
//
// How a program tells inject.c when calls may fail. Included by both.
#ifndef THRUM_TESTS_FAULT_INJECT_H
#define THRUM_TESTS_FAULT_INJECT_H

enum {
    INJECT_ON = 0x7468724f,
    INJECT_OFF = 0x74687246,
    INJECT_CANNOT = 77 // exit code: the fault cannot be made on this machine
};

#endif
