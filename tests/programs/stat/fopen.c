// SPDX-License-Identifier: Apache-2.0
//
// Disease: a file is opened and closed for each line: fopen() and fclose() take the lock of the list of all streams.
// Cure: it is opened once by each thread.
#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { LINES = 1200000 };
#else
enum { LINES = 400000 };
#endif

static SEEN uint64_t line_of(FILE *kept) {
    char line[32] = "";
#ifdef CURED
    FILE *const file = kept;
    rewind(file);
#else
    FILE *const file = fopen("/dev/null", "r"); /* HERE: hidden-lock */
    (void)kept;
    if (file == NULL)
        abort();
#endif
    if (fgets(line, sizeof line, file) != NULL)
        abort();
#ifndef CURED
    fclose(file); /* HERE: hidden-lock */
#endif
    return (uint64_t)line[0];
}

static void *read_lines(void *arg) {
    struct hand *hand = arg;
    FILE *const kept = fopen("/dev/null", "r");
    if (kept == NULL)
        abort();
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + line_of(kept), 300);
    fclose(kept);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), LINES, read_lines);
    return 0;
}
