// SPDX-License-Identifier: Apache-2.0
//
// A shared library for blocks_test.cpp: thread-locals that a thread uses, and their destructors. In the test program itself
// they would be the library's own, which are left alone.
#include <locale.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

struct Counted {
    pthread_t creator = pthread_self();
    ~Counted();
};

std::atomic<int> ended, ended_elsewhere; // by threads on several workers
pthread_key_t key;
pthread_once_t once = PTHREAD_ONCE_INIT;

Counted::~Counted() {
    ended++;
    ended_elsewhere += pthread_equal(creator, pthread_self()) == 0;
}

void count_key(void *creator) {
    ended++;
    ended_elsewhere += pthread_equal(reinterpret_cast<pthread_t>(creator), pthread_self()) == 0;
}

thread_local int value = 42;
thread_local char zeros[300];
thread_local Counted counted;

} // namespace

// How many of them were not as those of a new thread; all are used then.
extern "C" __attribute__((visibility("default"))) int use_locals(void) {
    pthread_once(&once, [] { pthread_key_create(&key, count_key); });
    int used = (value != 42) + (pthread_getspecific(key) != nullptr) + (errno != 0) +
               (uselocale(locale_t{}) != LC_GLOBAL_LOCALE);
    for (char &zero : zeros)
        used += zero != 0;
    value = 1;
    zeros[7] = 1;
    counted.creator = pthread_self();
    pthread_setspecific(key, reinterpret_cast<void *>(pthread_self()));
    static locale_t other = newlocale(LC_ALL_MASK, "C", locale_t{});
    uselocale(other);
    errno = ERANGE;
    return used;
}

extern "C" __attribute__((visibility("default"))) int locals_ended(void) {
    return ended;
}

extern "C" __attribute__((visibility("default"))) int locals_ended_elsewhere(void) {
    return ended_elsewhere;
}
