// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads log each thing that they do, and syslog() takes a lock while the message is written and sent.
// (Without a listener it is made and discarded.)
// Cure: each counts, and one message per thread is sent in the end.
#include <syslog.h>

#include "crew.h"

static SEEN void tell(unsigned index, uint64_t number) {
    syslog(LOG_DEBUG, "hand %u: %llu", index, (unsigned long long)number); /* HERE: hidden-lock */
}

static void *do_things(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 4000);
#ifndef CURED
        tell(hand->index, hand->result);
#endif
    }
    tell(hand->index, hand->result);
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    openlog("syslog", LOG_NDELAY, LOG_USER);
    crew_work(size, 60000, do_things);
    closelog();
    return 0;
}
