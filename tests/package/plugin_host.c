// SPDX-License-Identifier: Apache-2.0
/* A ctest: a program that is linked with libthrum and no C++ runtime, which comes with a plugin, and for that alone.
 * Usage: package-plugin-host PLUGIN */
#include <dlfcn.h>
#include <stdio.h>
#include <thrum/thrum.h>

int main(int argc, char **argv) {
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*check)(void) = NULL;
    if (plugin != NULL)
        *(void **)&check = dlsym(plugin, "plugin_check");
    if (check == NULL) {
        fprintf(stderr, "no plugin: %s\n", argc == 2 ? dlerror() : "name one");
        return 2;
    }
    struct thrum_config config = {.workers = 1};
    if (thrum_init(&config) != 0)
        return 2;
    int wrong = check();
    if (wrong & 1)
        fprintf(stderr, "exceptions of two threads were mixed\n");
    if (wrong & 2)
        fprintf(stderr, "thrum_exit ran no destructor\n");
    thrum_fini();
    return wrong;
}
