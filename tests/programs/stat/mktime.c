// SPDX-License-Identifier: Apache-2.0
//
// Disease: mktime() in all threads: it looks whether the time zone is another one by now, and tries several moments until
// one is right, each with libc's lock of the time zone.
// Cure: the offset of the zone is asked for once, and days are counted by arithmetic.
#include <time.h>

#include "crew.h"

enum { DAY = 24 * 60 * 60 };

static long offset; // of the time zone in winter, in seconds

static SEEN time_t midnight_of(int day) { // of January 2020
#ifdef CURED
    return (time_t)(18261 + day) * DAY - offset;
#else
    struct tm parts = {.tm_year = 120, .tm_mday = 1 + day};
    return mktime(&parts); /* HERE: hidden-lock */
#endif
}

static void *fill_calendar(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + (uint64_t)midnight_of((int)(i % 31)), 40);
    return NULL;
}

int main(int argc, char **argv) {
    const time_t moment = (time_t)18261 * DAY;
    struct tm parts;
    if (localtime_r(&moment, &parts) == NULL)
        return 1;
    offset = parts.tm_gmtoff;
    crew_work(crew_size(argc, argv), 6000000, fill_calendar);
    return 0;
}
