// SPDX-License-Identifier: Apache-2.0
//
// Disease: a helper is started for each question: popen() starts it with the lock of the list of helpers.
// Cure: the program answers by itself.
#include "crew.h"

static SEEN uint64_t answer(uint64_t number) {
#ifdef CURED
    return chew(number, 1000000);
#else
    char line[32];
    (void)number;
    FILE *const helper = popen("exec echo 42", "r"); /* HERE: hidden-lock */
    if (helper == NULL || fgets(line, sizeof line, helper) == NULL)
        exit(1);
    if (pclose(helper) != 0) /* HERE: hidden-lock */
        exit(1);
    return (uint64_t)line[0];
#endif
}

static void *ask(void *arg) {
    struct hand *hand = arg;
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(answer(hand->result), 100);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), 800, ask);
    return 0;
}
