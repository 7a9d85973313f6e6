// SPDX-License-Identifier: Apache-2.0
// Quicksort: each thread leaves one half to a new thread and sorts the other. Where a call would do, a thread does:
// there are thousands of them. cc sort.c $(pkg-config --cflags --libs thrum)
#include <stdio.h>
#include <stdlib.h>
#include <thrum/thrum.h>

enum { COUNT = 1000000, SMALL = 500 };

struct part {
    int *numbers;
    size_t count;
};

static int compare(const void *a, const void *b) {
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Nothing before the returned place is larger than anything from there on (Hoare). */
static size_t partition(int *numbers, size_t count) {
    int pivot = numbers[(count - 1) / 2], swapped;
    for (size_t i = 0, j = count - 1;; i++, j--) {
        for (; numbers[i] < pivot; i++)
            ;
        for (; numbers[j] > pivot; j--)
            ;
        if (i >= j)
            return j + 1;
        swapped = numbers[i], numbers[i] = numbers[j], numbers[j] = swapped;
    }
}

static void *sort(void *arg) {
    const struct part *part = arg;
    if (part->count <= SMALL) {
        qsort(part->numbers, part->count, sizeof(int), compare);
        return NULL;
    }
    size_t middle = partition(part->numbers, part->count);
    struct part low = {part->numbers, middle}, high = {part->numbers + middle, part->count - middle};
    thrum_t thread;
    int error = thrum_spawn(&thread, NULL, sort, &low);
    if (error != 0) /* no memory for another thread */
        sort(&low);
    sort(&high);
    if (error == 0)
        thrum_join(thread, NULL); /* before `low` goes */
    return NULL;
}

int main(void) {
    static int numbers[COUNT];
    struct part all = {numbers, COUNT};
    thrum_t thread;
    for (unsigned i = 0; i < COUNT; i++)
        numbers[i] = (int)(i * 2654435761U >> 1); /* spreads them (Fibonacci hashing) */
    if (thrum_init(NULL) != 0 || thrum_spawn(&thread, NULL, sort, &all) != 0)
        return 1;
    thrum_join(thread, NULL);
    for (int i = 1; i < COUNT; i++)
        if (numbers[i - 1] > numbers[i])
            return 1;
    printf("%d numbers are in order\n", COUNT);
    return thrum_fini();
}
