// SPDX-License-Identifier: Apache-2.0
//
// Stands in libthrum-cache.so's place: it exports counters of known values, and does nothing else.
#include "thrum/cache.h"

struct thrum_cache_counters thrum_cache_counters = {
    .version = THRUM_CACHE_COUNTERS_VERSION,
    .size = sizeof(struct thrum_cache_counters),
    .created = 12,
    .reused = 388,
    .retired = 3,
    .passed = 2,
    .culled = 4,
    .idle = 9,
    .idle_peak = 10,
    .live = 18446744073709551615u,
    .retired_by = {2, 0, 1},
    .passed_by = {2},
};
