// SPDX-License-Identifier: Apache-2.0
/* A call on another stack of the same kernel thread. The code is in call_on.S. Nothing is unwound beyond it: unwinders
 * and debuggers stop there, as at a thread's first frame. */
#ifndef THRUM_ARCH_CALL_ON_H
#define THRUM_ARCH_CALL_ON_H

/* fn(argument) on the empty stack below `top`, which is 16-aligned. Returns on the present stack when fn returns. */
void arch_call_on(void *top, void (*fn)(void *), void *argument) __attribute__((visibility("hidden")));

#endif
