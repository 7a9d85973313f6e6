// SPDX-License-Identifier: Apache-2.0
/* Atomic operations with the memory order in the name. Everything in src/ and cache/ that is shared between
 * threads goes through these, so that the order is read where the operation is. */
#ifndef THRUM_BASE_ATOMIC_H
#define THRUM_BASE_ATOMIC_H

#include <stdbool.h>

#define load_relaxed(p)         __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)         __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define load_seq_cst(p)         __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store_relaxed(p, v)     __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v)     __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define store_seq_cst(p, v)     __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define exchange_acquire(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define exchange_release(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_RELEASE)
#define exchange_acq_rel(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define fetch_sub_relaxed(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)
#define fetch_add_release(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define fetch_add_seq_cst(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define fetch_sub_seq_cst(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_SEQ_CST)
#define fetch_sub_release(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELEASE)
#define fetch_or_acquire(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_ACQUIRE)
#define fetch_or_acq_rel(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define fetch_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define fetch_or_relaxed(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)

/* *p goes from *expected to v; otherwise *expected receives what was seen. */
#define cas_acquire(p, expected, v)                                                                          \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define cas_acq_rel(p, expected, v)                                                                          \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)

#endif
