// SPDX-License-Identifier: Apache-2.0
//
// Disease: each entry of a log first asks with tzset() whether the time zone is another one by now, which takes libc's lock
// of the time zone. (localtime_r() does not ask by itself.)
// Cure: it is asked once, before there are threads.
#include <time.h>

#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { ENTRIES = 20000000 };
#else
enum { ENTRIES = 3000000 };
#endif

static SEEN long offset_now(void) {
#ifndef CURED
    tzset(); /* HERE: hidden-lock */
#endif
    return timezone;
}

static void *log_entries(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + (uint64_t)offset_now(), 40);
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    tzset();
    crew_work(size, ENTRIES, log_entries);
    return 0;
}
