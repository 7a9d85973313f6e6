// SPDX-License-Identifier: Apache-2.0
/* Whether code has a system call here (calls.c): STEP between places to look at, LENGTH and BEFORE bytes are read there. */
#ifndef THRUM_STAT_ARCH_CODE_H
#define THRUM_STAT_ARCH_CODE_H

#include <stdbool.h>
#include <string.h>

enum { STEP = 4, LENGTH = 4, BEFORE = 0 };

static inline bool is_call(const unsigned char *at) {
    const unsigned char svc_0[] = {0x01, 0x00, 0x00, 0xd4};
    return memcmp(at, svc_0, sizeof svc_0) == 0;
}

#endif
