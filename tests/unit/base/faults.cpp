// SPDX-License-Identifier: Apache-2.0
//
// See faults.hpp. The linker sends a call of NAME to __wrap_NAME, and one of __real_NAME to libc (or to what a
// sanitizer has in front of it).
#include "faults.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "layer.hpp"

Faults faults;
thread_local int fake_node = -1;

int Faults::Failing::strike() {
    calls++;
    int left = times.load();
    while (left > 0 && !times.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0 ? error.load() : 0;
}

void faults_clear() {
    for (auto *one : {&faults.mmap, &faults.attr_init, &faults.attr_setstacksize, &faults.attr_setguardsize,
                      &faults.create, &faults.join, &faults.detach, &faults.iterate})
        one->clear();
    for (auto *calls :
         {&faults.register_cancel, &faults.unregister_cancel, &faults.unwind_next, &faults.call_tls_dtors})
        *calls = 0;
    faults.write.clear();
    faults.symbols.clear();
}

extern "C" {
void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset) {
    if (int error = faults.mmap.strike()) {
        errno = error;
        return MAP_FAILED;
    }
    return __real_mmap(address, length, protection, flags, fd, offset);
}

int __real_getcpu(unsigned *, unsigned *) noexcept;
int __wrap_getcpu(unsigned *cpu, unsigned *node) noexcept;
int __wrap_getcpu(unsigned *cpu, unsigned *node) noexcept {
    int answer = __real_getcpu(cpu, node);
    if (fake_node >= 0)
        *node = static_cast<unsigned>(fake_node);
    return answer;
}

ssize_t __real_write(int, const void *, size_t);
ssize_t __wrap_write(int fd, const void *bytes, size_t length);
ssize_t __wrap_write(int fd, const void *bytes, size_t length) {
    if (fd != STDERR_FILENO || faults.write.empty())
        return __real_write(fd, bytes, length);
    int what = faults.write.front();
    faults.write.erase(faults.write.begin());
    if (what < 0) {
        errno = -what;
        return -1;
    }
    return __real_write(fd, bytes, std::min(length, static_cast<size_t>(what)));
}

void *__real_dlsym(void *, const char *) noexcept;
void *__wrap_dlsym(void *handle, const char *name) noexcept;
void *__wrap_dlsym(void *handle, const char *name) noexcept {
    auto found = faults.symbols.find(name);
    if (found != faults.symbols.end())
        return found->second;
    // The value of a key of TSan's own ends the thread for TSan, which must not be at the end of a job.
    return UNIT_TSAN && std::strcmp(name, "__pthread_keys") == 0 ? nullptr : __real_dlsym(handle, name);
}

int __real_pthread_attr_init(pthread_attr_t *) noexcept;
int __wrap_pthread_attr_init(pthread_attr_t *attributes) noexcept;
int __wrap_pthread_attr_init(pthread_attr_t *attributes) noexcept {
    int error = faults.attr_init.strike();
    return error != 0 ? error : __real_pthread_attr_init(attributes);
}

int __real_pthread_attr_setstacksize(pthread_attr_t *, size_t) noexcept;
int __wrap_pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size) noexcept;
int __wrap_pthread_attr_setstacksize(pthread_attr_t *attributes, size_t size) noexcept {
    int error = faults.attr_setstacksize.strike();
    return error != 0 ? error : __real_pthread_attr_setstacksize(attributes, size);
}

int __real_pthread_attr_setguardsize(pthread_attr_t *, size_t) noexcept;
int __wrap_pthread_attr_setguardsize(pthread_attr_t *attributes, size_t size) noexcept;
int __wrap_pthread_attr_setguardsize(pthread_attr_t *attributes, size_t size) noexcept {
    int error = faults.attr_setguardsize.strike();
    return error != 0 ? error : __real_pthread_attr_setguardsize(attributes, size);
}
}
