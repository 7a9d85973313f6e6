// SPDX-License-Identifier: Apache-2.0
//
// Row glibc where the library is made with THRUM_DEBUG.
#include "glibc.c"
