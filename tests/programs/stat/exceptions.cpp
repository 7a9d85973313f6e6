// SPDX-License-Identifier: Apache-2.0
//
// Disease: exceptions in all threads of a program that has made code at run time and told the unwinder of it, as
// just-in-time compilers do. The libgcc of gcc 12 and before then looks each frame up under one lock.
// Cure: nothing is registered. With gcc 12 on glibc 2.35, and newer ones, frames of loaded files are found without a lock.
#include <cstdint>
#include <stdexcept>

#include "crew.h"

#ifndef CURED
extern "C" void __register_frame(void *begin);

namespace {

// Call-frame information for a made-up function, in the form of .eh_frame.
struct CommonPart {
    std::uint32_t length = sizeof(CommonPart) - sizeof length, id = 0;
    std::uint8_t version = 1, augmentation = 0, code_alignment = 1, data_alignment = 0x78; // -8
    std::uint8_t return_register = 16, rules[3] = {0x0c, 7, 8}; // the frame begins at rsp + 8
    std::uint8_t padding[4] = {};
};
struct __attribute__((packed)) FunctionPart {
    std::uint32_t length = sizeof(FunctionPart) - sizeof length;
    std::uint32_t back = sizeof(CommonPart) + sizeof length; // from here to the common part
    const void *code = nullptr;
    std::uintptr_t size = 0;
};
struct FrameTable {
    CommonPart common;
    FunctionPart function;
    std::uint32_t end = 0;
};
static_assert(sizeof(FrameTable) == sizeof(CommonPart) + sizeof(FunctionPart) + 4, "one after the other");

constexpr int kFunctions = 200;
char made_up_code[kFunctions][64];
FrameTable tables[kFunctions];

void register_made_up_code() {
    for (int i = 0; i < kFunctions; i++) {
        tables[i].function.code = made_up_code[i];
        tables[i].function.size = sizeof made_up_code[i];
        __register_frame(&tables[i]);
    }
}

} // namespace
#endif

static SEEN void check(std::uint64_t number, int depth) {
    if (depth > 0)
        check(number + 1, depth - 1);
    else if (number != 0)
        throw std::range_error("out of range"); /* HERE: hidden-lock */
    __asm__ volatile("");                       // the call above is none that could become a jump
}

static void *check_all(void *arg) {
    struct hand *hand = static_cast<struct hand *>(arg);
    for (long i = 0; i < hand->share; i++) {
        try {
            check(hand->index + 1, 6);
        } catch (const std::range_error &) {
            hand->result++;
        }
    }
    return nullptr;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
#ifndef CURED
    register_made_up_code();
#endif
    crew_work(size, 150000, check_all);
    return 0;
}
