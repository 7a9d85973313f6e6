// SPDX-License-Identifier: Apache-2.0
/* Memory for threads' functions and for futures: small, short-lived blocks, often freed where they were allocated. Each
 * kernel thread caches a few free blocks in front of the heap, which reduces 7 to 18 ns to some 2.
 *
 * The list is thread-local. Nothing here waits, and the two functions that touch it are not inlined, so no caller keeps its
 * address across a wait. Under preemption it behaves like malloc's own caches (<thrum/preempt.h>). A block may be freed on
 * another kernel thread than the one that allocated it. When the kernel thread ends, cached blocks go back to the heap, and
 * it caches none from then on. Sanitizers must see each block come and go: with them this is the heap. */
#ifndef THRUM_HPP_DETAIL_BLOCK_HPP
#define THRUM_HPP_DETAIL_BLOCK_HPP

#include <cstddef>
#include <new>
#include <utility>

namespace thrum::detail {

inline constexpr std::size_t block_size = 128;
inline constexpr unsigned blocks_kept = 64;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define THRUM_HPP_WATCHED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define THRUM_HPP_WATCHED 1
#endif
#ifdef THRUM_HPP_WATCHED
inline constexpr bool keeps_blocks = false;
#undef THRUM_HPP_WATCHED
#else
inline constexpr bool keeps_blocks = true;
#endif

struct free_block {
    free_block *next;
};

/* Of the calling kernel thread. `room` is 0 at first, so that the first block freed takes the path that registers the
 * destructor. */
struct free_blocks {
    free_block *first;
    unsigned room; /* blocks that still fit */
    bool is_prepared;
};
inline constinit thread_local free_blocks blocks_here{nullptr, 0, false};

/* Its destructor runs at the kernel thread's end. */
struct blocks_end {
    ~blocks_end() {
        blocks_here.room = 0;
        while (blocks_here.first != nullptr)
            ::operator delete(std::exchange(blocks_here.first, blocks_here.first->next));
    }
};

/* False: the cache is full, or the kernel thread is ending. */
[[gnu::noinline, gnu::cold]] inline bool blocks_make_room() {
    if (blocks_here.is_prepared)
        return false;
    static thread_local blocks_end at_the_end;
    static_cast<void>(&at_the_end);
    blocks_here.is_prepared = true;
    blocks_here.room = blocks_kept;
    return true;
}

[[gnu::noinline]] inline void *block_take() {
    free_block *const block = blocks_here.first;
    if (block == nullptr) [[unlikely]]
        return ::operator new(block_size);
    blocks_here.first = block->next;
    blocks_here.room++;
    return block;
}

[[gnu::noinline]] inline void block_give(void *memory) noexcept {
    if (blocks_here.room == 0 && !blocks_make_room()) [[unlikely]] {
        ::operator delete(memory);
        return;
    }
    blocks_here.first = new (memory) free_block{blocks_here.first};
    blocks_here.room--;
}

/* A base class whose new takes a block, where the object fits. */
struct made_in_block {
    static void *operator new(std::size_t size) {
        return keeps_blocks && size <= block_size ? block_take() : ::operator new(size);
    }
    static void operator delete(void *memory, std::size_t size) noexcept {
        if (keeps_blocks && size <= block_size)
            block_give(memory);
        else
            ::operator delete(memory);
    }
    static void *operator new(std::size_t size, std::align_val_t alignment) {
        return ::operator new(size, alignment);
    }
    static void operator delete(void *memory, std::size_t, std::align_val_t alignment) noexcept {
        ::operator delete(memory, alignment);
    }
};

} // namespace thrum::detail

#endif
