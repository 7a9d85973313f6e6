// SPDX-License-Identifier: Apache-2.0
//
// Disease: a std::shared_ptr is copied for each step: all threads write its reference count.
// Cure: a reference is passed.
#include <memory>

#include "crew.h"

namespace {

struct Schema {
    uint64_t widths[8] = {1, 2, 3, 4, 5, 6, 7, 8};
};

std::shared_ptr<Schema> schema;

#ifdef CURED
using Passed = const std::shared_ptr<Schema> &;
#else
using Passed = std::shared_ptr<Schema>;
#endif

SEEN uint64_t width_of(Passed of, uint64_t column) {
    return of->widths[column & 7];
}

SEEN uint64_t measure(uint64_t state) {
    return chew(state + width_of(schema, state), 8);
}

void *measure_some(void *arg) {
    auto *hand = static_cast<struct hand *>(arg);
    for (long i = 0; i < hand->share; i++)
        hand->result = measure(hand->result);
    return nullptr;
}

} // namespace

int main(int argc, char **argv) {
    schema = std::make_shared<Schema>();
    crew_work(crew_size(argc, argv), 20000000, measure_some);
    return 0;
}
