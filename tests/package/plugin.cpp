// SPDX-License-Identifier: Apache-2.0
//
// What plugin_host.c loads: exceptions and destructors in ULTs.
#include <thrum/thrum.h>

#include <atomic>

namespace {

std::atomic<int> caught{0}, destroyed{0};

struct Guard {
    ~Guard() { destroyed++; }
};

// Waits while its exception is in flight: the other one continues first.
void *keep_apart(void *arg) {
    const long me = reinterpret_cast<long>(arg);
    try {
        throw me;
    } catch (long) {
        thrum_sleep((me == 1 ? 20 : 1) * THRUM_MS);
        try {
            throw;
        } catch (long got) {
            if (got == me)
                caught++;
        }
    }
    return nullptr;
}

void *leave(void *) {
    const Guard guard;
    thrum_exit(nullptr);
}

} // namespace

// 0, or what went wrong.
extern "C" int plugin_check() {
    thrum_t threads[3];
    thrum_spawn(&threads[0], nullptr, keep_apart, reinterpret_cast<void *>(1));
    thrum_spawn(&threads[1], nullptr, keep_apart, reinterpret_cast<void *>(2));
    thrum_spawn(&threads[2], nullptr, leave, nullptr);
    for (const thrum_t thread : threads)
        thrum_join(thread, nullptr);
    return (caught == 2 ? 0 : 1) + (destroyed == 1 ? 0 : 2);
}
