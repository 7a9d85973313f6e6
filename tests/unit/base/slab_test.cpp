// SPDX-License-Identifier: Apache-2.0
//
// base/slab: aligned, zeroed, reused, and NULL when the kernel has no memory.
#include <string.h>

#include <algorithm>
#include <set>

#include "layer.hpp"

namespace {

struct Odd {
    char bytes[200]; // 256 as an object
};
constexpr size_t kChunk = 64 * 1024, kObject = 256;

class Slab : public testing::Test {
  protected:
    void SetUp() override { faults_clear(); }
    void TearDown() override { faults_clear(); }
    slab slab_ = SLAB_INIT(Odd);
};

TEST_F(Slab, SizesAreMultiplesOfACacheLine) {
    slab one = SLAB_INIT(char), exact = SLAB_INIT(char[64]), more = SLAB_INIT(char[65]);
    EXPECT_EQ(one.object_size, 64u);
    EXPECT_EQ(exact.object_size, 64u);
    EXPECT_EQ(more.object_size, 128u);
    EXPECT_EQ(slab_.object_size, kObject);
}

TEST_F(Slab, AlignedZeroedAndApart) {
    const size_t count = 3 * kChunk / kObject;
    std::vector<char *> all;
    for (size_t i = 0; i < count; i++) {
        char *object = static_cast<char *>(slab_alloc_locked(&slab_));
        ASSERT_NE(object, nullptr);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(object) % 64, 0u);
        ASSERT_EQ(std::count(object, object + kObject, 0), static_cast<long>(kObject));
        memset(object, 1 + static_cast<int>(i % 255), kObject);
        all.push_back(object);
    }
    EXPECT_EQ(faults.mmap.calls, 1 + 3) << "a chunk is used up before the next is taken";
    for (size_t i = 0; i < count; i++)
        ASSERT_EQ(std::count(all[i], all[i] + kObject, static_cast<char>(1 + i % 255)),
                  static_cast<long>(kObject))
            << "object " << i << " was written through another";
}

TEST_F(Slab, FreedObjectsComeBackZeroedLastOneFirst) {
    void *a = slab_alloc_locked(&slab_), *b = slab_alloc_locked(&slab_);
    memset(a, 0xaa, kObject);
    memset(b, 0xbb, kObject);
    slab_free_locked(&slab_, a);
    slab_free_locked(&slab_, b);
    const int calls = faults.mmap.calls;
    EXPECT_EQ(slab_alloc_locked(&slab_), b);
    EXPECT_EQ(slab_alloc_locked(&slab_), a);
    EXPECT_EQ(faults.mmap.calls, calls);
    for (void *object : {a, b})
        EXPECT_EQ(std::count(static_cast<char *>(object), static_cast<char *>(object) + kObject, 0),
                  static_cast<long>(kObject));
}

TEST_F(Slab, NullWithoutMemoryAndWellAgainAfterwards) {
    faults.mmap.next(2, ENOMEM);
    EXPECT_EQ(slab_alloc_locked(&slab_), nullptr);
    EXPECT_EQ(slab_alloc_locked(&slab_), nullptr);
    void *object = slab_alloc_locked(&slab_);
    ASSERT_NE(object, nullptr);
    faults.mmap.next(1000, ENOMEM);
    std::set<void *> distinct{object};
    for (void *next; (next = slab_alloc_locked(&slab_)) != nullptr;)
        EXPECT_TRUE(distinct.insert(next).second);
    EXPECT_EQ(distinct.size(), kChunk / kObject) << "what there was is used without asking the kernel";
    slab_free_locked(&slab_, object);
    EXPECT_EQ(slab_alloc_locked(&slab_), object);
}

TEST_F(Slab, ObjectOfAWholeChunk) {
    slab whole = SLAB_INIT(char[kChunk]);
    void *a = slab_alloc_locked(&whole), *b = slab_alloc_locked(&whole);
    ASSERT_TRUE(a != nullptr && b != nullptr);
    memset(a, 1, kChunk);
    memset(b, 2, kChunk);
    EXPECT_EQ(static_cast<char *>(a)[kChunk - 1], 1);
    EXPECT_EQ(faults.mmap.calls, 1 + 2); // and the table of chunks
}

} // namespace
