// SPDX-License-Identifier: Apache-2.0
#include "counted.hpp"

std::atomic<int> Counted::made, Counted::gone;
thread_local Counted counted;
