// SPDX-License-Identifier: Apache-2.0
// Channels: one thread asks, eight answer, the main thread waits for an answer or for the end, whichever is first, but
// no longer than ten seconds. cc pipeline.c $(pkg-config --cflags --libs thrum)
#include <stdio.h>
#include <thrum/thrum.h>

enum { LIMIT = 10000, WALKERS = 8 };

struct answer {
    long start, steps;
};

static long asked[16];
static thrum_channel_t questions = THRUM_CHANNEL_INITIALIZER(asked); /* holds up to 16 */
static thrum_channel_t answers = THRUM_CHANNEL_UNBUFFERED_INITIALIZER(sizeof(struct answer));
static thrum_latch_t walking = THRUM_LATCH_INITIALIZER(WALKERS);

static void *ask(void *unused) {
    for (long n = 1; n < LIMIT; n++)
        thrum_channel_send(&questions, &n); /* waits while it is full */
    thrum_channel_close(&questions);
    return unused;
}

/* Collatz: halve what is even, else times three plus one. How many steps is it to 1? */
static void *walk(void *unused) {
    struct answer answer;
    while (thrum_channel_receive(&questions, &answer.start) == 0) {
        answer.steps = 0;
        for (long n = answer.start; n != 1; n = n % 2 == 0 ? n / 2 : 3 * n + 1)
            answer.steps++;
        thrum_channel_send(&answers, &answer);
    }
    thrum_latch_count_down(&walking, 1);
    return unused;
}

int main(void) {
    struct answer answer, longest = {0, 0};
    thrum_wait_t waits[] = {
        {.what = THRUM_WAIT_RECEIVE, .object = &answers, .value = &answer},
        {.what = THRUM_WAIT_LATCH, .object = &walking},
    };
    uint64_t end = thrum_now() + 10 * THRUM_S;
    size_t which;
    int error = thrum_init(NULL);
    for (int i = 0; i < WALKERS && error == 0; i++)
        error = thrum_spawn(NULL, NULL, walk, NULL); /* detached */
    if (error != 0 || thrum_spawn(NULL, NULL, ask, NULL) != 0)
        return 1;
    while ((error = thrum_wait_any(waits, 2, end, &which)) == 0 && which == 0)
        if (answer.steps > longest.steps)
            longest = answer;
    if (error != 0)
        return 1;
    printf("below %d the longest way begins at %ld: %ld steps\n", LIMIT, longest.start, longest.steps);
    return thrum_fini();
}
