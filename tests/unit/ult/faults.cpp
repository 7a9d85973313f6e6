// SPDX-License-Identifier: Apache-2.0
//
// See faults.hpp. The linker sends a call of NAME to __wrap_NAME, and one of __real_NAME to libc (or to what a
// sanitizer has in front of it).
#include "faults.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "ult.hpp"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

Faults faults;
std::atomic<unsigned> faults_threads{UINT32_MAX};
std::atomic<void (*)()> before_solo_wake{nullptr};
thread_local void (*before_unlock_inside)() = nullptr;

static bool take_one(std::atomic<int> &count) {
    int left = count.load();
    while (left > 0 && !count.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0;
}

int Failing::strike() {
    calls++;
    return !take_one(well) && take_one(times) ? error.load() : 0;
}

void faults_clear() {
    for (Failing *one : {&faults.mmap, &faults.guard, &faults.mprotect, &faults.create})
        one->after(0, 0, 0);
    faults_threads = UINT32_MAX;
    before_solo_wake = nullptr;
}

extern "C" {
void *__real_mmap(void *, size_t, int, int, int, off_t) noexcept;
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) noexcept;
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
    if (int error = faults.mmap.strike()) {
        errno = error;
        return MAP_FAILED;
    }
    return __real_mmap(address, length, protection, flags, fd, offset);
}

int __real_madvise(void *, size_t, int) noexcept;
int __wrap_madvise(void *address, size_t length, int advice) noexcept;
int __wrap_madvise(void *address, size_t length, int advice) noexcept {
    if (advice == MADV_GUARD_INSTALL) {
        if (int error = faults.guard.strike()) {
            errno = error;
            return -1;
        }
    }
    return __real_madvise(address, length, advice);
}

int __real_mprotect(void *, size_t, int) noexcept;
int __wrap_mprotect(void *address, size_t length, int protection) noexcept;
int __wrap_mprotect(void *address, size_t length, int protection) noexcept {
    if (int error = faults.mprotect.strike()) {
        errno = error;
        return -1;
    }
    return __real_mprotect(address, length, protection);
}

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) noexcept;
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) noexcept;
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg) noexcept {
    int error = faults.create.strike();
    return error != 0 ? error : __real_pthread_create(thread, attr, fn, arg);
}

void __real_solo_wake(void *worker);
void __wrap_solo_wake(void *worker);
void __wrap_solo_wake(void *worker) {
    if (void (*hook)() = before_solo_wake.exchange(nullptr))
        hook();
    __real_solo_wake(worker);
}

int __real_mutex_unlock_inside(void *worker, void *mutex);
int __wrap_mutex_unlock_inside(void *worker, void *mutex);
int __wrap_mutex_unlock_inside(void *worker, void *mutex) {
    if (void (*hook)() = std::exchange(before_unlock_inside, nullptr))
        hook();
    return __real_mutex_unlock_inside(worker, mutex);
}

uint32_t __real_quota_threads();
uint32_t __wrap_quota_threads();
uint32_t __wrap_quota_threads() {
    const auto limit = static_cast<std::size_t>(faults_threads.load());
    if (limit == UINT32_MAX)
        return __real_quota_threads();
    const std::size_t used = threads_of_process();
    return used < limit ? static_cast<uint32_t>(limit - used) : 0;
}
}
