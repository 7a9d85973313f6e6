// SPDX-License-Identifier: Apache-2.0
//
// Disease: for each number that is read, a locale with a decimal point is made and thrown away: newlocale() and freelocale()
// take libc's lock of all locales.
// Cure: it is made once.
#include <locale.h>

#include "crew.h"

static locale_t pointed;

static SEEN double number_in(const char *text) {
#ifdef CURED
    return strtod_l(text, NULL, pointed);
#else
    const locale_t own = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0); /* HERE: hidden-lock */
    const double number = strtod_l(text, NULL, own);
    freelocale(own); /* HERE: hidden-lock */
    return number;
#endif
}

static void *read_numbers(void *arg) {
    struct hand *hand = arg;
    char text[] = "3.14159";
    for (long i = 0; i < hand->share; i++) {
        text[0] = (char)('0' + (hand->result >> 61));
        hand->result = chew(hand->result + (uint64_t)(1000 * number_in(text)), 800);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pointed = newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0);
    if (pointed == (locale_t)0)
        return 1;
    crew_work(crew_size(argc, argv), 200000, read_numbers);
    freelocale(pointed);
    return 0;
}
