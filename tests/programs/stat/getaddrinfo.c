// SPDX-License-Identifier: Apache-2.0
//
// Disease: an address is looked up for each request, and be it a number: to leave out what this machine has no interface for
// (AI_ADDRCONFIG, as is usual), getaddrinfo() asks the kernel which interfaces there are, each time, with a lock of libc's.
// Cure: it is looked up once.
#include <netdb.h>
#include <sys/socket.h>

#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { REQUESTS = 600000 };
#else
enum { REQUESTS = 120000 };
#endif

static SEEN struct addrinfo *address_of(const char *host) {
    const struct addrinfo hints = {.ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(host, NULL, &hints, &found) != 0) /* HERE: hidden-lock */
        exit(1);
    return found;
}

static struct addrinfo *found_once;

static void *connect_often(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++) {
#ifdef CURED
        const int family = found_once->ai_family;
#else
        struct addrinfo *const found = address_of("127.0.0.1");
        const int family = found->ai_family;
        freeaddrinfo(found);
#endif
        hand->result = chew(hand->result + (uint64_t)family, 1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    found_once = address_of("127.0.0.1");
    crew_work(size, REQUESTS, connect_often);
    freeaddrinfo(found_once);
    return 0;
}
