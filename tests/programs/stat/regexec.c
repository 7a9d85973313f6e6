// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads match against one compiled expression: regexec() holds a lock in it all the while.
// Cure: each thread compiles it for itself.
#include <regex.h>

#include "crew.h"

// Cured it takes as long: what is over in a moment is told by what else happens in it.
#ifdef CURED
enum { WORDS = 7000000 };
#else
enum { WORDS = 5000000 };
#endif

static void compile(regex_t *expression) {
    if (regcomp(expression, "^[a-z]+[0-9]*(x|y)$", REG_EXTENDED | REG_NOSUB) != 0)
        exit(1);
}

static SEEN int is_word(const regex_t *expression, const char *text) {
    return regexec(expression, text, 0, NULL, 0) == 0; /* HERE: hidden-lock */
}

static regex_t shared;

static void *match_all(void *arg) {
    struct hand *hand = arg;
#ifdef CURED
    regex_t own, *const expression = &own;
    compile(expression);
#else
    regex_t *const expression = &shared;
#endif
    char text[] = "some12345x";
    for (long i = 0; i < hand->share; i++) {
        text[0] = (char)('a' + (hand->result >> 61));
        hand->result = chew(hand->result + (uint64_t)is_word(expression, text), 40);
    }
    if (expression != &shared)
        regfree(expression);
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    compile(&shared);
    crew_work(size, WORDS, match_all);
    regfree(&shared);
    return 0;
}
