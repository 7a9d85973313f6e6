/* SPDX-License-Identifier: Apache-2.0 */
/* Tests are compiled once for all variants of the library, so this is a question at run time. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* The library has assertions, and aborts where it is misused (THRUM_DEBUG). */
int library_is_checked(void);

#ifdef __cplusplus
}
#endif
