// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into the command (stat_looks_test.cpp): INTERRUPTS=N makes as many Ctrl-Cs come when it begins to look for names in
// what it has seen, which may take a while.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>

void *dwfl_begin(const void *callbacks);

void *dwfl_begin(const void *callbacks) {
    static int is_over;
    const char *number = getenv("INTERRUPTS");
    for (int left = is_over || number == NULL ? 0 : atoi(number); left > 0; left--)
        raise(SIGINT);
    is_over = 1;
    void *(*const begin)(const void *) = (void *(*)(const void *))dlsym(RTLD_NEXT, "dwfl_begin");
    return begin(callbacks);
}
