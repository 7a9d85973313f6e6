// SPDX-License-Identifier: Apache-2.0
/* malloc and free across threads that end: every thread allocates, frees half, and leaves the other half to a thread
 * of the next round, which checks the contents and frees it. An allocator's per-thread caches are set up and torn down
 * with every logical thread; if the tear-down were missed, or a stale cache found, memory would be corrupted or grow.
 *
 *   alloc_churn [SYMBOL]    SYMBOL has to be there, e.g. mallctl: shows that the wanted allocator is in use
 *
 * Linked against jemalloc, mimalloc or nothing; run by built.sh.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 400, THREADS = 8, BLOCKS = 200, ALLOWED_GROWTH = 48 << 20 };

struct block {
    unsigned char *start;
    size_t size;
    unsigned char value;
};

struct job {
    unsigned seed;
    struct block kept[BLOCKS]; /* even places: freed by the thread; odd places: left to the next round */
    unsigned long checksum, errors;
};

static struct job jobs[2][THREADS];
static __thread unsigned char *cache; /* a thread's own buffer, never freed by a key's destructor */

static unsigned next_random(unsigned *state) {
    return *state = *state * 1664525u + 1013904223u;
}

/* Small ones mostly, and now and then one that is large enough for a mapping of its own. */
static size_t pick_size(unsigned *state) {
    unsigned r = next_random(state) >> 8;
    return r % 97 == 0 ? 100000 + r % 200000 : 16 + r % 2000;
}

static void check_and_free(struct job *job, struct block *block) {
    if (block->start == NULL)
        return;
    for (size_t i = 0; i < block->size; i += 61)
        job->errors += block->start[i] != block->value;
    job->checksum += block->size * block->value;
    free(block->start);
    block->start = NULL;
}

static void *churn(void *argument) {
    struct job *job = argument;
    struct job *before = &jobs[job < jobs[1]][(job - jobs[job >= jobs[1]] + 1) % THREADS];

    job->errors += cache != NULL;
    cache = malloc(4096);
    for (int i = 0; i < BLOCKS; i++) {
        struct block *block = &job->kept[i];
        block->size = pick_size(&job->seed);
        block->value = (unsigned char)(job->seed >> 24);
        block->start = malloc(block->size);
        if (block->start == NULL)
            abort();
        memset(block->start, block->value, block->size);
        if (i % 2 == 0)
            check_and_free(job, block);
    }
    for (int i = 0; i < BLOCKS; i++)
        check_and_free(job, &before->kept[i]);
    free(cache);
    return NULL;
}

static void run_round(int round) {
    pthread_t threads[THREADS];
    struct job *team = jobs[round % 2];

    for (int i = 0; i < THREADS; i++) {
        team[i].seed = (unsigned)(round * THREADS + i + 1) * 2654435761u;
        if (pthread_create(&threads[i], NULL, churn, &team[i]) != 0)
            abort();
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static long resident_bytes(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1)
        abort();
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv) {
    unsigned long checksum = 0, errors = 0;
    long early = 0;

    if (argc > 1 && dlsym(RTLD_DEFAULT, argv[1]) == NULL) {
        fprintf(stderr, "alloc_churn: no %s in this process: not the allocator that was asked for\n",
                argv[1]);
        return 2;
    }
    for (int round = 0; round < ROUNDS; round++) {
        run_round(round);
        if (round == ROUNDS / 4)
            early = resident_bytes();
    }
    long growth = resident_bytes() - early;
    for (int i = 0; i < 2 * THREADS; i++) {
        checksum += jobs[i / THREADS][i % THREADS].checksum;
        errors += jobs[i / THREADS][i % THREADS].errors;
    }
    if (growth > ALLOWED_GROWTH)
        fprintf(stderr, "alloc_churn: memory grew by %ld bytes in the last 300 rounds\n", growth);
    printf("checksum %lu, errors %lu\n", checksum, errors);
    return errors != 0 || growth > ALLOWED_GROWTH;
}
