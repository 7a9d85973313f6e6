// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: blocks of all sizes are allocated, filled, looked at, changed in size, passed on to others and freed.
// A preemption inside malloc leaves an arena locked, or a cache of the thread's half-way through a change.
#include <array>
#include <cstdlib>
#include <cstring>

#include "preempt_stress.h"

namespace {

constexpr unsigned kBlocks = 24, kMailboxes = 64;

// What is in a block tells whose it is and how large, at both ends and in the middle.
struct Block {
    unsigned char *bytes = nullptr;
    std::size_t size = 0;
    unsigned char tag = 0;

    void fill() {
        if (size <= 256)
            std::memset(bytes, tag, size);
        bytes[0] = bytes[size / 2] = bytes[size - 1] = tag;
    }
    void check() const {
        if (bytes[0] != tag || bytes[size / 2] != tag || bytes[size - 1] != tag)
            fail(__FILE__, __LINE__, "a block of %zu bytes holds %d %d %d, not %d", size, bytes[0],
                 bytes[size / 2], bytes[size - 1], tag);
        if (size <= 256)
            for (std::size_t i = 0; i < size; i++)
                CHECK_EQ(bytes[i], tag);
    }
};

struct Mail {
    std::size_t size;
    unsigned char tag;
};

class Malloc : public Torture {
  public:
    const char *name() const override { return "malloc"; }

    void begin(unsigned actors) override { held_.assign(actors, {}); }

    void step(Actor &actor) override {
        for (int i = 0; i < 8; i++) {
            Block &block = held_[actor.number][actor.random.below(kBlocks)];
            if (block.bytes == nullptr)
                allocate(actor, block);
            else if (actor.random.one_in(8))
                resize(actor, block);
            else
                release(actor, block);
        }
        if (actor.random.one_in(4))
            pass_on(actor);
        if (actor.random.one_in(8) && options.has_ults())
            in_tasklet();
        safepoint();
    }

    void last_step(Actor &actor) override {
        for (Block &block : held_[actor.number])
            if (block.bytes != nullptr)
                release(actor, block);
    }

    void end() override {
        for (std::atomic<Mail *> &mailbox : mailboxes_)
            std::free(mailbox.exchange(nullptr));
    }

  private:
    // It is not preempted, and waits in the kernel where one that was has the arena.
    static void in_tasklet() {
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        CHECK_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_TASKLET | THRUM_SPAWN_QUEUED), 0);
        thrum_t tasklet = nullptr;
        auto run = [](void *unused) -> void * {
            std::free(std::malloc(3000));
            return unused;
        };
        CHECK_EQ(thrum_spawn(&tasklet, &attr, run, nullptr), 0);
        CHECK_EQ(thrum_join(tasklet, nullptr), 0);
    }

    static std::size_t some_size(Random &random) {
        switch (random.below(16)) {
        case 0: return 1 + random.below(1 << 18); // some of them by mmap
        case 1:
        case 2: return 1 + random.below(1 << 14);
        default: return 1 + random.below(600);
        }
    }

    static void allocate(Actor &actor, Block &block) {
        block.size = some_size(actor.random);
        block.tag = static_cast<unsigned char>(actor.random.next());
        const unsigned how = actor.random.below(8);
        void *bytes = nullptr;
        {
            const In in(actor, kMalloc);
            if (how == 0)
                bytes = std::calloc(1, block.size);
            else if (how == 1)
                bytes = std::aligned_alloc(128, (block.size + 127) & ~std::size_t{127});
            else
                bytes = std::malloc(block.size);
        }
        block.bytes = static_cast<unsigned char *>(bytes);
        if (bytes == nullptr) // under pressure
            return;
        if (how == 0)
            CHECK_EQ(block.bytes[0] | block.bytes[block.size / 2] | block.bytes[block.size - 1], 0);
        if (how == 1)
            CHECK_EQ(reinterpret_cast<std::uintptr_t>(bytes) % 128, 0);
        block.fill();
    }

    static void resize(Actor &actor, Block &block) {
        block.check();
        const std::size_t size = some_size(actor.random);
        void *bytes = nullptr;
        {
            const In in(actor, kMalloc);
            bytes = std::realloc(block.bytes, size);
        }
        if (bytes == nullptr)
            return;
        block.bytes = static_cast<unsigned char *>(bytes);
        CHECK_EQ(block.bytes[0], block.tag);
        block.size = size;
        block.fill();
    }

    static void release(Actor &actor, Block &block) {
        block.check();
        const In in(actor, kFree);
        std::free(block.bytes);
        block.bytes = nullptr;
    }

    // A block that another thread frees, maybe on another kernel thread and into another arena.
    void pass_on(Actor &actor) {
        const std::size_t size = sizeof(Mail) + some_size(actor.random);
        Mail *mine = nullptr;
        {
            const In in(actor, kMalloc);
            mine = static_cast<Mail *>(std::malloc(size));
        }
        if (mine == nullptr)
            return;
        const auto tag = static_cast<unsigned char>(actor.random.next());
        std::memset(mine, tag, size < 1024 ? size : 1024);
        reinterpret_cast<unsigned char *>(mine)[size - 1] = tag;
        mine->size = size;
        mine->tag = tag;
        Mail *theirs = mailboxes_[actor.random.below(kMailboxes)].exchange(mine);
        if (theirs == nullptr)
            return;
        CHECK_EQ(reinterpret_cast<unsigned char *>(theirs)[theirs->size - 1], theirs->tag);
        const In in(actor, kFree);
        std::free(theirs);
    }

    std::vector<std::array<Block, kBlocks>> held_;
    std::array<std::atomic<Mail *>, kMailboxes> mailboxes_{};
};

} // namespace

std::unique_ptr<Torture> make_malloc() {
    return std::make_unique<Malloc>();
}

void add_malloc(Tortures &all) {
    all.push_back(make_malloc());
}
