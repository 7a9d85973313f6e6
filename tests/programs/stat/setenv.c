// SPDX-License-Identifier: Apache-2.0
//
// Disease: the environment as a notice board between a thread's functions: setenv() takes libc's lock of the environment.
// (In glibc getenv() takes none, which is why no thread may read here while others write.)
// Cure: what belongs to a thread stands in the thread's own memory.
#include "crew.h"

struct notice {
    char name[16];
    char value[24];
};

static SEEN void post(struct notice *notice, const char *value) {
#ifdef CURED
    strcpy(notice->value, value);
#else
    if (setenv(notice->name, value, 1) != 0) /* HERE: hidden-lock */
        exit(1);
#endif
}

static void *post_notices(void *arg) {
    struct hand *hand = arg;
    struct notice notice;
    snprintf(notice.name, sizeof notice.name, "NOTICE_%u", hand->index);
    for (long i = 0; i < hand->share; i++) {
        hand->result = chew(hand->result, 100);
        post(&notice, hand->result >> 63 != 0 ? "upper" : "lower");
    }
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 2000000, post_notices);
    return 0;
}
