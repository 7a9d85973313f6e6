// SPDX-License-Identifier: Apache-2.0
//
// Disease: localtime_r() in all threads. The _r keeps results apart, not threads: it takes libc's lock of the time zone
// like localtime().
// Cure: the offset of the zone is asked for once, the rest is arithmetic.
#include <time.h>

#include "crew.h"

static long offset; // of the time zone, in seconds

static SEEN int hour_of(time_t moment) {
#ifdef CURED
    return (int)((moment + offset) / 3600 % 24);
#else
    struct tm parts;
    if (localtime_r(&moment, &parts) == NULL) /* HERE: hidden-lock */
        return -1;
    return parts.tm_hour;
#endif
}

static void *log_entries(void *arg) {
    struct hand *hand = arg;
    const time_t begin = 1500000000 + 1000000 * (time_t)hand->index;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + (uint64_t)hour_of(begin + i), 40);
    return NULL;
}

int main(int argc, char **argv) {
    const time_t moment = 1500000000;
    struct tm parts;
    if (localtime_r(&moment, &parts) == NULL)
        return 1;
    offset = parts.tm_gmtoff;
    crew_work(crew_size(argc, argv), 5000000, log_entries);
    return 0;
}
