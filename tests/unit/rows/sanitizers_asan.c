// SPDX-License-Identifier: Apache-2.0
//
// Row sanitizers: in a program that has a sanitizer's runtime the cache is off, and says so in one line where asked. This
// one is built with -fsanitize=address, its runtime linked in statically.
#include "sanitizers.h"

CHECK_MAIN(cases)
