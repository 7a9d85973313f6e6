// SPDX-License-Identifier: Apache-2.0
//
// Row sanitizers: in a program that has a sanitizer's runtime the cache is off, and says so in one line where asked. This
// one only has the entry point that such a runtime has; sanitizers_asan.c has the real thing.
#include "off.h"

// Looked for by its name, so the linker must export it (see rows2.cmake).
__attribute__((visibility("default"), used)) void __tsan_init(void);
void __tsan_init(void) {}

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
CHECK_MAIN(cases)
