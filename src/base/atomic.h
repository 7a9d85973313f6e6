// SPDX-License-Identifier: Apache-2.0
/* Atomic operations with the memory order in the name. Everything in src/, cache/, stat/, abt/ and cli/ that is shared
 * between threads, or with the kernel or another process, goes through these (or std::atomic), so that the order is read
 * where the operation is. scripts/check-layers.sh finds others. */
#ifndef THRUM_BASE_ATOMIC_H
#define THRUM_BASE_ATOMIC_H

#include <stdbool.h>

#define load_relaxed(p)         __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)         __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define load_seq_cst(p)         __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define store_relaxed(p, v)     __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v)     __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define store_seq_cst(p, v)     __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define exchange_relaxed(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)
#define exchange_acquire(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define exchange_release(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_RELEASE)
#define exchange_acq_rel(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define fetch_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define fetch_sub_relaxed(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)
#define fetch_add_release(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define fetch_add_seq_cst(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define fetch_sub_seq_cst(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_SEQ_CST)
#define fetch_sub_release(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_RELEASE)
#define fetch_sub_acq_rel(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_ACQ_REL)
#define fetch_or_acquire(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_ACQUIRE)
#define fetch_or_acq_rel(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define fetch_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define fetch_or_relaxed(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define fetch_and_relaxed(p, v) __atomic_fetch_and((p), (v), __ATOMIC_RELAXED)

#define exchange_seq_cst(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

/* Where no operation has the order: between a store and a load of two words. fence_compiler orders what this thread does
 * against a signal handler on it, and against a membarrier of another thread (os/membarrier.h). */
#define fence_seq_cst()  __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define fence_compiler() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* *p goes from *expected to v; otherwise *expected receives what was seen. */
#define cas_relaxed(p, expected, v)                                                                          \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define cas_acquire(p, expected, v)                                                                          \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)
#define cas_acq_rel(p, expected, v)                                                                          \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
/* A failure orders nothing. */
#define cas_seq_cst(p, expected, v)                                                                          \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)

#endif
