// SPDX-License-Identifier: Apache-2.0
//
// Disease: a stream is opened and closed for each line: fopen() and its kin, and fclose(), take the lock of the list
// of all streams. It is a stream in memory, since the kernel may take so long to open a file that no thread waits for
// the lock.
// Cure: each thread opens it once.
#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { LINES = 8000000 };
#else
enum { LINES = 2000000 };
#endif

static char text[] = "a line\n";

static FILE *opened(void) {
    FILE *const file = fmemopen(text, sizeof text, "r"); /* HERE: hidden-lock */
    if (file == NULL)
        abort();
    return file;
}

static SEEN uint64_t line_of(FILE *kept) {
    char line[32];
#ifdef CURED
    FILE *const file = kept;
    rewind(file);
#else
    FILE *const file = opened();
    (void)kept;
#endif
    if (fgets(line, sizeof line, file) == NULL)
        abort();
#ifndef CURED
    fclose(file); /* HERE: hidden-lock */
#endif
    return (uint64_t)line[0];
}

static void *read_lines(void *arg) {
    struct hand *hand = arg;
    FILE *const kept = opened();
    for (long i = 0; i < hand->share; i++)
        hand->result = chew(hand->result + line_of(kept), 100);
    fclose(kept);
    return NULL;
}

int main(int argc, char **argv) {
    crew_work(crew_size(argc, argv), LINES, read_lines);
    return 0;
}
