// SPDX-License-Identifier: Apache-2.0
//
// A burst of threads, and what is left of it: for bench/memory.
//
//   bursts KIND THREADS SECONDS
//
// prints the resident memory in KiB and the number of kernel threads so many seconds after the burst. KIND:
//   malloc    all at once; each fills malloc's caches and frees what it has
//   tls       all at once; each uses 1 MiB of thread-locals (programs/bursts_tls)
//   joined    each ends at once, all are joined at the end
//   unjoined  likewise, and they are joined after the look
//   detached  all at once, detached
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

pthread_barrier_t together;
#ifdef BURSTS_TLS // a program of its own: without the cache each thread that is not joined keeps its pages
thread_local char large[1 << 20];
#endif

void must(int error) {
    if (error != 0) {
        std::fprintf(stderr, "bursts: %s\n", std::strerror(error));
        std::exit(1);
    }
}

// Seven blocks of each size that malloc keeps for a thread.
void *use_malloc(void *) {
    std::vector<void *> blocks;
    for (std::size_t size = 24; size <= 1032; size += 16)
        for (int i = 0; i < 7; i++) {
            blocks.push_back(std::malloc(size));
            std::memset(blocks.back(), 1, size);
        }
    pthread_barrier_wait(&together);
    for (void *block : blocks)
        std::free(block);
    return nullptr;
}

void *use_tls(void *) {
#ifdef BURSTS_TLS
    std::memset(large, 1, sizeof large);
    asm volatile("" ::"r"(large) : "memory");
#endif
    pthread_barrier_wait(&together);
    return nullptr;
}

void *meet(void *) {
    pthread_barrier_wait(&together);
    return nullptr;
}

void *end(void *argument) {
    return argument;
}

void print_what_is_left() {
    double pages = 0;
    long tasks = 0;
    if (std::FILE *file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%*s %lf", &pages) != 1)
            pages = 0;
        std::fclose(file);
    }
    if (std::FILE *file = std::fopen("/proc/self/status", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file) != nullptr)
            std::sscanf(line, "Threads: %ld", &tasks);
        std::fclose(file);
    }
    std::printf("%.0f %ld\n", pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024, tasks);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const std::string kind = argv[1];
    const auto count = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
    const bool detached = kind == "detached", late = kind == "unjoined";
    void *(*const work)(void *) = kind == "malloc" ? use_malloc
                                  : kind == "tls"  ? use_tls
                                  : detached       ? meet
                                                   : end;
    must(pthread_barrier_init(&together, nullptr, count + (detached ? 1 : 0)));
    pthread_attr_t attributes;
    must(pthread_attr_init(&attributes));
    if (detached)
        must(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED));
    std::vector<pthread_t> threads(count);
    for (pthread_t &thread : threads)
        must(pthread_create(&thread, &attributes, work, nullptr));
    if (detached)
        pthread_barrier_wait(&together);
    for (pthread_t thread : threads)
        if (!detached && !late)
            must(pthread_join(thread, nullptr));
    usleep(static_cast<useconds_t>(1e6 * std::strtod(argv[3], nullptr)));
    print_what_is_left();
    for (pthread_t thread : threads)
        if (late)
            must(pthread_join(thread, nullptr));
}
