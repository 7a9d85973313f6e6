// SPDX-License-Identifier: Apache-2.0
//
// The same program in C++, after what the C++ library has to say.
#include <exception>

#include "user.c"
