// SPDX-License-Identifier: Apache-2.0
//
// What preempt_loader.cpp loads and unloads: a module with thread-local variables of its own and an object that is made
// when it comes and destroyed when it goes.
#include <cstdlib>

namespace {

thread_local unsigned long plain, initialised = 42;
void *block;

struct Coming {
    Coming() { block = std::malloc(100); }
    ~Coming() { std::free(block); }
} coming;

} // namespace

// 42, unless the thread-locals are not its own.
extern "C" __attribute__((visibility("default"))) unsigned long preempt_module_use(unsigned long value) {
    plain = value;
    initialised += value;
    for (unsigned i = 0; i < 100; i++)
        __asm__ volatile("" ::: "memory");
    initialised -= plain;
    return initialised;
}
