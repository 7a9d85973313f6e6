/* SPDX-License-Identifier: Apache-2.0 */
/* Depots and stacks (src/context/), whose headers only a C compiler reads, for the tests. One cache for each depot, as
 * a worker has them: one thread at a time. */
#ifndef THRUM_TESTS_ULT_DEPOTS_H
#define THRUM_TESTS_ULT_DEPOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

unsigned stacks_classes(void);
size_t stacks_size(unsigned stack_class);
unsigned stacks_class_of(size_t size);
/* Readies them where no runtime runs; unmaps them all. */
void stacks_init(void);
void stacks_destroy(void);
char *stacks_get(unsigned stack_class);
void stacks_put(unsigned stack_class, char *top);
char *stacks_low(const char *top, unsigned stack_class);
/* What the cache holds goes to the depot. */
void stacks_flush(unsigned stack_class);
/* What lies in the depots of stacks and of descriptors gives its memory back, however short a time it lies there.
 * True: some would be due later, which cannot be. */
bool depots_trim_now(void);
/* Chunks that the depot of this class has mapped. No thread trims meanwhile. */
size_t stacks_chunks(unsigned stack_class);

/* Chunks of descriptors, 64 KiB each. */
size_t units_chunks(void);

/* Addresses without memory, where stacks of threads of ended runtimes were (src/context/remains.h). */
size_t reserved_bytes(void);

#ifdef __cplusplus
}
#endif

#endif
