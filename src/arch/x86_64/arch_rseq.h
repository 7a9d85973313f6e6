// SPDX-License-Identifier: Apache-2.0
/* Restartable sequences (os/rseq.h). */
#ifndef THRUM_ARCH_RSEQ_H
#define THRUM_ARCH_RSEQ_H

/* What stands before each abort handler; the kernel wants libc's, and wants to be told it (<sys/rseq.h>). */
#define ARCH_RSEQ_SIGNATURE 0x53053053U

#endif
