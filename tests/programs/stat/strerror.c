// SPDX-License-Identifier: Apache-2.0
//
// Disease: strerror() in all threads: to look for a translation it takes locks of libc's for reading, and so all write to
// them.
// Cure: strerrordesc_np(), which does not translate.
#include "crew.h"

static SEEN const char *text_of(int error) {
#ifdef CURED
    return strerrordesc_np(error);
#else
    return strerror(error); /* HERE: hidden-lock */
#endif
}

static void *report_errors(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + (uint64_t)text_of(1 + (int)(i % 30))[0], 20);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 8000000, report_errors);
    return 0;
}
