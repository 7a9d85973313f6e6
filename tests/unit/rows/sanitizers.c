// SPDX-License-Identifier: Apache-2.0
//
// Row sanitizers: in a program that has a sanitizer's runtime the cache is off, and says so in one line where asked. This
// one only has the entry point that such a runtime has; sanitizers_asan.c has the real thing.
#include "sanitizers.h"

// Looked for by its name, so the linker must export it (see rows2.cmake).
__attribute__((visibility("default"), used)) void __tsan_init(void);
void __tsan_init(void) {}

CHECK_MAIN(cases)
