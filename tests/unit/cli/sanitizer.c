// SPDX-License-Identifier: Apache-2.0
//
// The one name by which a sanitizer's run-time library is known; as libasan.so, or linked into a program.
void __asan_init(void);
void __asan_init(void) {}
