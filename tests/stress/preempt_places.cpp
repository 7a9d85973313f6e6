// SPDX-License-Identifier: Apache-2.0
//
// See preempt_places.h.
#include "preempt_places.h"

#include <sys/mman.h>
#include <unistd.h>

#include "preempt_pcs.h"

static_assert(kPlacesInLibc == kHitUnwinder + 1);

namespace {

constexpr std::size_t kRoom = std::size_t{1} << 22; // bytes of a module's text

struct Places {
    std::array<std::array<std::atomic<std::uint64_t>, kRoom / 64>, kPlaceKinds> words;
};

Places *here = nullptr;

Places *mapped(int file) {
    void *memory = mmap(nullptr, sizeof(Places), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(memory != MAP_FAILED);
    return static_cast<Places *>(memory);
}

} // namespace

int places_file() {
    const int file = memfd_create("places", 0);
    CHECK(file >= 0);
    CHECK_EQ(ftruncate(file, sizeof(Places)), 0);
    return file;
}

void places_go_to(int file) {
    here = mapped(file);
}

// Mostly it is there already: then nothing is written.
void places_add(unsigned kind, std::uintptr_t offset) {
    if (offset >= kRoom)
        return;
    std::atomic<std::uint64_t> &word = here->words[kind][offset / 64];
    const std::uint64_t bit = std::uint64_t{1} << offset % 64;
    if ((word.load(std::memory_order_relaxed) & bit) == 0)
        word.fetch_or(bit, std::memory_order_relaxed);
}

PlaceCounts places_in(const std::vector<int> &files) {
    std::vector<Places *> all;
    for (const int file : files)
        all.push_back(mapped(file));
    PlaceCounts counts{};
    for (unsigned kind = 0; kind < kPlaceKinds; kind++)
        for (std::size_t i = 0; i < kRoom / 64; i++) {
            std::uint64_t word = 0;
            for (const Places *each : all)
                word |= each->words[kind][i].load(std::memory_order_relaxed);
            counts[kind] += static_cast<std::uint64_t>(__builtin_popcountll(word));
        }
    for (Places *each : all)
        munmap(each, sizeof *each);
    return counts;
}
