// SPDX-License-Identifier: Apache-2.0
//
// Disease: a function is looked up by its name for each call, and dlsym() takes the lock of the dynamic linker.
// Cure: it is looked up once.
#include <dlfcn.h>

#include "crew.h"

typedef unsigned long length_function(const char *);

static void *found_once;

static SEEN unsigned long measure(const char *text) {
#ifdef CURED
    void *const found = found_once;
#else
    void *const found = dlsym(RTLD_DEFAULT, "strlen"); /* HERE: hidden-lock */
#endif
    length_function *length_of;
    memcpy(&length_of, &found, sizeof length_of);
    return length_of(text);
}

static void *measure_lines(void *arg) {
    struct hand *hand = arg;
    char line[] = "some words of no meaning";
    for (long i = 0; i < hand->share; i++) {
        line[0] = (char)('a' + (hand->result >> 61));
        hand->result = chew(hand->result + measure(line), 40);
    }
    return NULL;
}

int main(int argc, char **argv) {
    found_once = dlsym(RTLD_DEFAULT, "strlen");
    if (found_once == NULL)
        return 1;
    crew_work(crew_size(argc, argv), 5000000, measure_lines);
    return 0;
}
