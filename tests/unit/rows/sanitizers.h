// SPDX-License-Identifier: Apache-2.0
//
// The cases of row sanitizers: each of its programs is in some way a sanitizer's.
#pragma once

#include "off.h"

static void off(void) {
    expect_cache_off();
}
static void threads_work(void) {
    use_threads_without_cache();
}
static void one_line(void) {
    expect_one_line("a sanitizer");
}
static void quiet_run(void) {
    run_thread(do_nothing, NULL);
}

static const struct check_case cases[] = {
    {"off", off, FAILS_WHEN_SKIPPED},
    {"threads_work", threads_work, HOLDS_WHEN_SKIPPED},
    {"one_line", one_line, FAILS_WHEN_SKIPPED},
    {"quiet_run", quiet_run, HOLDS_WHEN_SKIPPED},
};
