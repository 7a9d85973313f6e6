// SPDX-License-Identifier: Apache-2.0
//
// Disease: who owns something is looked up each time: getpwnam_r() takes the locks of the name service switch, and opening
// /etc/passwd that of the list of all streams.
// Cure: it is looked up once.
#include <pwd.h>

#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { FILES = 700000 };
#else
enum { FILES = 250000 };
#endif

static SEEN uid_t user_of(const char *name) {
    struct passwd entry, *found;
    char text[4096];
    if (getpwnam_r(name, &entry, text, sizeof text, &found) != 0 || found == NULL) /* HERE: hidden-lock */
        exit(1);
    return found->pw_uid;
}

static uid_t found_once;

static void *look_up(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
#ifdef CURED
        const uid_t user = found_once;
#else
        const uid_t user = user_of("root");
#endif
        hand->result = chew(hand->result + user, 1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    found_once = user_of("root");
    crew_work(size, FILES, look_up);
    return 0;
}
