// SPDX-License-Identifier: Apache-2.0
//
// No disease: threads that compute and share nothing. They scale up to the number of CPUs; and on a machine that is busy
// with other things nothing can be said of them.
#include "crew.h"

static void *compute(void *arg) {
    struct hand *hand = arg;
    hand->result = chew(hand->result, hand->share);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 400000000, compute);
    return 0;
}
