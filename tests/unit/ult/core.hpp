// SPDX-License-Identifier: Apache-2.0
//
// Headers of the core, which are C, for the tests, which are C++. Those that only a C compiler reads: depots.h.
#pragma once

#include <cstddef>
#include <cstdint>

#define _Alignas alignas
#define _Static_assert static_assert
extern "C" {
#include "base/atomic.h"
#include "os/clock.h"
#include "os/membarrier.h"
#include "sched/pool/deque.h"
#include "sched/pool/fair.h"
#include "sched/pool/yield_ring.h"
#include "sched/unit.h"
}
#undef _Alignas
#undef _Static_assert
