// SPDX-License-Identifier: Apache-2.0
//
// Disease: matrix clocks. Each thread keeps an account of what each other one knows of each other one, and brings it up to
// date with each event: it writes a cell for each thread, and reads what all others have written, N x (N - 1) cells that are
// in other CPUs' caches. No lock, and no waiting that anybody could see. An event takes WORK + N (N - 1) misses, which is the
// Universal Scalability Law with a miss / WORK as its coherency: two threads gain, and from three or four on each one more
// makes all slower. So it takes as many cores to show it, and four points for the law to be fitted to.
// Cure: an account of one's own, and that of the others once in a thousand events.
#include <stdatomic.h>

#include "crew.h"

enum { EVENTS = 2500000, WORK = 300, MOST = 16 };

#ifdef CURED
enum { SELDOM = 1000 };
#else
enum { SELDOM = 1 };
#endif

// Each in a cache line of its own, and none in the one that a processor fetches along with it.
struct cell {
    atomic_ulong time;
} __attribute__((aligned(128)));

static struct cell cells[MOST][MOST];

static void publish(unsigned self, unsigned crew, uint64_t time) {
    for (unsigned other = 0; other < crew; other++)
        atomic_store_explicit(&cells[self][other].time, time, memory_order_relaxed);
}

// The sum stays below 2^63, which the compiler does not know: each cell is looked for when the one before it has been read,
// so that misses are waited for one after the other.
static SEEN uint64_t merge(unsigned self, unsigned crew) {
    uint64_t sum = 0;
    for (unsigned other = (self + 1) % crew; other != self; other = (other + 1) % crew)
        for (unsigned i = 0; i < crew; i++) {                               /* HERE: coherency */
            const struct cell *const cell = &cells[other][i + (sum >> 63)]; /* HERE: coherency */
            sum += atomic_load_explicit(&cell->time, memory_order_relaxed); /* HERE: coherency */
        }
    return sum;
}

static void *take_part(void *arg) {
    struct hand *hand = arg;
    for (long event = 0; event < hand->share; event++) {
        hand->result = chew(hand->result, WORK);
        if (event % SELDOM != 0)
            continue;
        publish(hand->index, hand->crew, (uint64_t)event);
        hand->result += merge(hand->index, hand->crew);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    if (size > MOST) {
        fprintf(stderr, "%s: %d threads at most\n", argv[0], MOST);
        return 2;
    }
    crew_work(size, EVENTS, take_part);
    return 0;
}
