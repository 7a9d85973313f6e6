// SPDX-License-Identifier: Apache-2.0
/* Loads the library that its argument names, lets threads run, and unloads it while the workers are there. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <thrum/thrum.h>
#include <unistd.h>

static void *increment(void *number) {
    ++*(long *)number;
    return NULL;
}

/* ISO C has no conversion from an object's address to a function's. */
static int find(void *library, const char *name, void *function, size_t size) {
    void *address = dlsym(library, name);
    memcpy(function, &address, size);
    return address == NULL;
}

int main(int argc, char **argv) {
    int (*spawn)(thrum_t *, const thrum_attr_t *, void *(*)(void *), void *);
    int (*join)(thrum_t, void **);
    thrum_t thread;
    long number = 0;
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL || find(library, "thrum_spawn", &spawn, sizeof spawn) ||
        find(library, "thrum_join", &join, sizeof join)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (spawn(&thread, NULL, increment, &number) != 0 || join(thread, NULL) != 0 || dlclose(library) != 0)
        return 2;
    usleep(200000); /* idle workers look for work, then sleep */
    return number == 1 ? 0 : 3;
}
