// SPDX-License-Identifier: Apache-2.0
//
// Disease: a handler for the end is registered for each object: atexit() takes libc's lock of the list of handlers.
// Cure: objects are counted, and one handler does it for all.
#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { OBJECTS = 10000000 };
#else
enum { OBJECTS = 3000000 };
#endif

static uint64_t ended;

static void end_one(void) {
    ended++;
}

static SEEN void make_object(void) {
#ifndef CURED
    if (atexit(end_one) != 0) /* HERE: hidden-lock */
        exit(1);
#endif
}

static void *make_objects(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        make_object();
        hand->result = chew(hand->result, 60);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    if (atexit(end_one) != 0)
        return 1;
    crew_work(size, OBJECTS, make_objects);
    return 0;
}
