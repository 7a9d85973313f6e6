// SPDX-License-Identifier: Apache-2.0
//
// Thread control blocks that have no kernel thread (preempt/blocks.h), as libc sees them.
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "blocks.h"
#include "faults.hpp"
#include "inside.h"
#include "pools.hpp"
#include "preempt.hpp"

namespace {

class Blocks : public testing::Test {
  protected:
    void SetUp() override {
        if (annotated())
            GTEST_SKIP() << "no thread is preempted under this tool";
        if (ULT_TSAN)
            GTEST_SKIP() << "TSan does not see the end of a kernel thread that has no block any more";
        const char *why = blocks_why_not();
        ASSERT_EQ(why, nullptr) << why;
    }
    void TearDown() override {
        for (void *block : blocks)
            blocks_put(block);
    }
    void *make() {
        void *block = blocks_get();
        if (block != nullptr)
            blocks.push_back(block);
        return block;
    }
    static pthread_t handle(void *block) { return static_cast<pthread_t>(blocks_base(block)); }
    static bool annotated() { return blocks_are_not_for_tools(); }

    std::vector<void *> blocks;
};

} // namespace

// Each is another, and takes no kernel thread.
TEST_F(Blocks, TakeNoKernelThreads) {
    const std::size_t before = threads_of_process();
    std::set<pthread_t> handles;
    for (int i = 0; i < 100; i++) {
        void *block = make();
        ASSERT_NE(block, nullptr);
        handles.insert(handle(block));
    }
    EXPECT_EQ(handles.size(), 100U);
    EXPECT_TRUE(eventually([&] { return threads_of_process() <= before; })) << threads_of_process();
}

// For libc it runs, under a number that no kernel thread has.
TEST_F(Blocks, SeemToRun) {
    void *block = make();
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(pthread_tryjoin_np(handle(block), nullptr), EBUSY);
    EXPECT_EQ(pthread_kill(handle(block), 0), ESRCH);
}

namespace {

// The resident pages within `bytes` of any of these. Only there: ASan keeps a record of each thread elsewhere, for ever of one that does
// not end for it, and an emulator has memory of its own.
std::size_t resident_around(const std::vector<void *> &blocks, std::size_t bytes) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::set<std::uintptr_t> resident;
    for (void *block : blocks)
        for (std::uintptr_t at = (blocks_base(block) - bytes) / page * page; at < blocks_base(block) + bytes;
             at += page) {
            unsigned char is_resident = 0;
            if (mincore(reinterpret_cast<void *>(at), page, &is_resident) == 0 &&
                (is_resident & 1) != 0) // NOLINT
                resident.insert(at);
        }
    return resident.size() * page;
}

} // namespace

// The memory of one is that of libc's part and its record: the stack on which it was made lies where the next ones are.
TEST_F(Blocks, ShareTheirStack) {
    enum { BLOCKS = 320, RECORD_AND_LISTS = 2048 };
    void (*tls_info)(std::size_t *, std::size_t *);
    *reinterpret_cast<void **>(&tls_info) = dlsym(RTLD_DEFAULT, "_dl_get_tls_static_info");
    ASSERT_NE(tls_info, nullptr);
    std::size_t size = 0, alignment = 0;
    tls_info(&size, &alignment);
    for (int i = 0; i < BLOCKS; i++)
        ASSERT_NE(make(), nullptr);
    const std::size_t resident =
        resident_around(blocks, size + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    size +=
        blocks_thread_pointer(blocks[0]) - blocks_base(blocks[0]); // which libc does not count, on aarch64
    EXPECT_GT(resident / BLOCKS, size / 2);
    EXPECT_LT(resident / BLOCKS, size + RECORD_AND_LISTS);
}

namespace {

// Not memcpy: ASan still has parts of it for a frame of the kernel thread that has left.
__attribute__((no_sanitize("address"))) std::vector<std::uintptr_t> words_of(std::uintptr_t record,
                                                                             std::size_t size) {
    const auto *words =
        reinterpret_cast<const volatile std::uintptr_t *>(record); // NOLINT(performance-no-int-to-ptr)
    std::vector<std::uintptr_t> copy(size / sizeof *words);
    for (std::size_t i = 0; i < copy.size(); i++)
        copy[i] = words[i];
    return copy;
}

} // namespace

// Libc's record of one, which ends above the next one's stack, stays as it is but for the links of libc's list of threads: nothing
// that lies beside it is written into it.
TEST_F(Blocks, KeepTheirRecords) {
    const auto *size = static_cast<const std::uint32_t *>(dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread"));
    ASSERT_NE(size, nullptr);
    enum { BLOCKS = 40, LINKS = 2 };
    blocks_forget(); // each is made here
    std::vector<std::vector<std::uintptr_t>> were;
    for (int i = 0; i < BLOCKS; i++) {
        void *block = make();
        ASSERT_NE(block, nullptr);
        were.push_back(words_of(blocks_base(block), *size));
    }
    for (std::size_t i = 0; i < BLOCKS; i++) {
        const std::vector<std::uintptr_t> are = words_of(blocks_base(blocks[i]), *size);
        int changed = 0;
        for (std::size_t word = 0; word < are.size(); word++)
            changed += are[word] != were[i][word];
        EXPECT_LE(changed, LINKS) << i;
    }
}

// So makers of different ones take different stacks.
TEST_F(Blocks, AreMadeByManyAtOnce) {
    enum { MAKERS = 4, EACH = 50 };
    std::vector<void *> made[MAKERS];
    std::vector<std::thread> makers;
    for (auto &mine : made)
        makers.emplace_back([&mine] {
            for (int i = 0; i < EACH; i++)
                mine.push_back(blocks_get());
        });
    for (std::thread &maker : makers)
        maker.join();
    std::set<pthread_t> handles;
    for (const auto &mine : made)
        for (void *block : mine) {
            ASSERT_NE(block, nullptr);
            blocks.push_back(block);
            handles.insert(handle(block));
            EXPECT_EQ(pthread_tryjoin_np(handle(block), nullptr), EBUSY);
            EXPECT_EQ(pthread_kill(handle(block), 0), ESRCH);
        }
    EXPECT_EQ(handles.size(), static_cast<std::size_t>(MAKERS * EACH));
}

// One that was kept is made again.
TEST_F(Blocks, AreMadeAgain) {
    void *block = make();
    ASSERT_NE(block, nullptr);
    blocks_put(block);
    EXPECT_EQ(blocks_get(), block);
}

// Libc's count of threads does not know of them: it is by this that the process ends with its last thread.
TEST_F(Blocks, AreNotCounted) {
    const auto *count = static_cast<const unsigned *>(dlsym(RTLD_DEFAULT, "__nptl_nthreads"));
    ASSERT_NE(count, nullptr);
    const unsigned before = *count;
    for (int i = 0; i < 10; i++)
        ASSERT_NE(make(), nullptr);
    EXPECT_EQ(*count, before);
}

// While kernel threads leave their blocks another thread changes the ids of all: each call ends, and a thread that stays has the new
// ones. Where that is not permitted the call changes nothing, and is made by all nevertheless.
TEST_F(Blocks, AreMadeWhileIdsChange) {
    std::atomic<bool> over{false};
    std::atomic<int> calls{0};
    std::thread setter([&] {
        while (!over) {
            EXPECT_EQ(setresuid(static_cast<uid_t>(-1), static_cast<uid_t>(-1), static_cast<uid_t>(-1)), 0);
            calls++;
        }
    });
    for (int i = 0; i < (ULT_EMULATED ? 30 : 200) || calls < 20; i++)
        ASSERT_NE(make(), nullptr);
    over = true;
    setter.join();
}

// A child of fork has none of its parent's, and makes its own.
TEST_F(Blocks, AreForgottenByAChildOfFork) {
    void *block = make();
    ASSERT_NE(block, nullptr);
    blocks_put(block);
    blocks.clear();
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        blocks_forget();
        void *other = blocks_get();
        _exit(other != nullptr && other != block && pthread_kill(handle(other), 0) == ESRCH ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// In a sandbox they are made by the calls that libc makes for a thread.
TEST_F(Blocks, AreMadeWhereAFilterKills) {
    if (ULT_ASAN || ULT_TSAN)
        GTEST_SKIP() << "sanitizers make such calls themselves when a thread is created";
    static sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_get_robust_list, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const sock_fprog program = {sizeof filter / sizeof *filter, filter};
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        blocks_forget();
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(2);
        _exit(blocks_get() != nullptr ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
        GTEST_SKIP() << "no filter can be installed here";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// --- threads that run on them -------------------------------------------------------------------------------

namespace {

class BlocksOfThreads : public Blocks {
  protected:
    void SetUp() override {
        if (tool_forbids_preemption())
            GTEST_SKIP() << "no thread is preempted under this tool";
        Blocks::SetUp();
    }
};

} // namespace

// Of a hundred threads that never wait each keeps one while it is preempted.
TEST_F(BlocksOfThreads, OfPreemptedThreadsTakeNoKernelThreads) {
    const Preempting preempting(2, THRUM_PREEMPT_LEND);
    constexpr std::size_t kMany = ULT_EMULATED ? 40 : 100;
    const std::size_t before = threads_of_process();
    std::atomic<std::size_t> begun{0};
    std::atomic<bool> over{false};
    std::vector<Thread> hogs;
    for (std::size_t i = 0; i < kMany; i++)
        hogs.emplace_back([&] {
            begun++;
            wait_for(over);
        });
    EXPECT_TRUE(eventually([&] { return begun == kMany; }));
    EXPECT_LE(threads_of_process(), before + 8);
    over = true;
}

namespace {

struct Module {
    template <typename F>
    F *find(const char *name) const {
        return reinterpret_cast<F *>(dlsym(library, name));
    }
    void *library = dlopen(USED_LOCALS_MODULE, RTLD_NOW);
    int (*use)() = find<int()>("use_locals");
    int (*ended)() = find<int()>("locals_ended");
    int (*ended_elsewhere)() = find<int()>("locals_ended_elsewhere");
};

void *in_own(void *(*fn)(void *), void *arg) {
    thrum_t thread = nullptr;
    void *result = nullptr;
    EXPECT_EQ(thrum_spawn(&thread, nullptr, fn, arg), 0);
    EXPECT_EQ(thrum_join(thread, &result), 0);
    return result;
}

} // namespace

// Each thread finds its thread-locals as a new one does, on a block that another has used; the destructors have run when it is
// joined, on the thread itself.
TEST_F(BlocksOfThreads, AreAsNewForEachThread) {
    const Preempting preempting(2, THRUM_PREEMPT_OWN_TLS);
    Module module;
    ASSERT_NE(module.use, nullptr) << dlerror();
    const int ended = module.ended();
    for (int i = 1; i <= 100; i++) {
        void *used = in_own(
            [](void *arg) {
                return reinterpret_cast<void *>(
                    static_cast<std::intptr_t>(static_cast<Module *>(arg)->use()));
            },
            &module);
        ASSERT_EQ(used, nullptr);
        ASSERT_EQ(module.ended() - ended, 2 * i);
    }
    EXPECT_EQ(module.ended_elsewhere(), 0);
}

namespace {

// Each uses its thread-locals, and finds them as it has left them when its children have ended. Every third has none of its
// own.
struct Tree {
    int (*use)();
    std::atomic<int> own{0}, not_new{0}, lost{0};
};

struct Node {
    Tree *tree;
    int depth;
    bool is_own;
};

void *grow(void *arg) {
    enum { KEPT = 4 }; // all but errno
    const Node &node = *static_cast<Node *>(arg);
    Tree &tree = *node.tree;
    if (node.is_own) {
        tree.own++;
        tree.not_new += tree.use() != 0;
    }
    thrum_attr_t lent;
    thrum_attr_init(&lent);
    thrum_attr_set_preempt(&lent, THRUM_PREEMPT_LEND);
    Node children[2];
    thrum_t threads[2];
    for (int i = 0; i < 2 && node.depth > 0; i++) {
        children[i] = {&tree, node.depth - 1, (node.depth + i) % 3 != 0};
        if (thrum_spawn(&threads[i], children[i].is_own ? nullptr : &lent, grow, &children[i]) != 0)
            abort();
    }
    for (int i = 0; i < 2 && node.depth > 0; i++)
        thrum_join(threads[i], nullptr);
    if (node.is_own)
        tree.lost += tree.use() < KEPT;
    return nullptr;
}

void expect_new_in_tree(Tree *tree, int (*ended)(), int (*ended_elsewhere)()) {
    const int before = ended();
    Node root{tree, ULT_EMULATED ? 5 : 9, true};
    in_own(grow, &root);
    EXPECT_GT(tree->own, 0);
    EXPECT_EQ(tree->not_new, 0);
    EXPECT_EQ(tree->lost, 0);
    EXPECT_EQ(ended() - before, 2 * tree->own);
    EXPECT_EQ(ended_elsewhere(), 0);
}

} // namespace

extern "C" int use_locals();
extern "C" int locals_ended();
extern "C" int locals_ended_elsewhere();

// So do those of a tree, that begin and end on calls by others with a block or without, and are stolen and preempted in between. The
// library is one that the program is linked with, and then one that is opened.
TEST_F(BlocksOfThreads, AreAsNewInATree) {
    for (const unsigned workers : {1U, 2U}) {
        const Preempting preempting(workers, THRUM_PREEMPT_OWN_TLS, kShort);
        Tree tree{use_locals};
        expect_new_in_tree(&tree, locals_ended, locals_ended_elsewhere);
    }
    Module module;
    ASSERT_NE(module.use, nullptr) << dlerror();
    const Preempting preempting(2, THRUM_PREEMPT_OWN_TLS, kShort);
    Tree opened{module.use}, linked{use_locals};
    expect_new_in_tree(&opened, module.ended, module.ended_elsewhere);
    expect_new_in_tree(&linked, locals_ended, locals_ended_elsewhere);
}

// The end of its kernel thread is noticed on each, also where one was made while no key was left for that.
TEST_F(BlocksOfThreads, AreWatchedAfterAThreadThatWasNot) {
    const Preempting preempting(1, THRUM_PREEMPT_OWN_TLS);
    struct Seen {
        pthread_t self;
        void *value;
    } seen[2] = {};
    ASSERT_LT(blocks_watch_key(), static_cast<unsigned>(PTHREAD_KEYS_MAX));
    for (Seen &of_thread : seen)
        in_own(
            [](void *arg) -> void * {
                *static_cast<Seen *>(arg) = {pthread_self(), pthread_getspecific(blocks_watch_key())};
                pthread_setspecific(blocks_watch_key(), nullptr);
                return nullptr;
            },
            &of_thread);
    EXPECT_EQ(seen[0].self, seen[1].self);
    EXPECT_NE(seen[1].value, nullptr);
}

// Where all threads have one, the first does not wait until it is made.
TEST_F(BlocksOfThreads, AreThereForTheFirstThread) {
    blocks_forget();
    const Preempting preempting(1, THRUM_PREEMPT_OWN_TLS);
    faults.create.after(0, 1000, EAGAIN);
    void *result = in_own([](void *arg) { return arg; }, this);
    faults_clear();
    EXPECT_EQ(result, this);
}

namespace {

// A tree of threads, and how many of them had run when thrum_spawn returned.
struct Counts {
    std::atomic<int> all{0}, at_once{0};
};

struct Branch {
    Counts *counts;
    int depth;
    std::atomic<bool> has_begun{false};
};

void *branch_out(void *arg) {
    auto *self = static_cast<Branch *>(arg);
    self->has_begun = true;
    for (int i = 0; i < 2 && self->depth > 0; i++) {
        Branch child{self->counts, self->depth - 1};
        thrum_t thread;
        EXPECT_EQ(thrum_spawn(&thread, nullptr, branch_out, &child), 0);
        self->counts->all++;
        self->counts->at_once += child.has_begun;
        EXPECT_EQ(thrum_join(thread, nullptr), 0);
    }
    return nullptr;
}

bool most_run_at_once() {
    Counts counts;
    Branch root{&counts, 8};
    Thread([&] { branch_out(&root); }).join();
    return 2 * counts.at_once > counts.all;
}

} // namespace

// More threads have blocks than the runtime has spare ones at its start: it makes more, and new threads need not be queued.
TEST_F(BlocksOfThreads, RunAtOnceOnManyWorkers) {
    constexpr unsigned kNoTick = THRUM_SLICE_MAX; // a tick that preempts would ask for more, too
    const Preempting preempting(4, THRUM_PREEMPT_OWN_TLS, kNoTick);
    bool most = false;
    for (int i = 0; i < 200 && !most; i++) {
        most = most_run_at_once();
        usleep(1000); // the provider makes them
    }
    EXPECT_TRUE(most);
}

namespace {

// What runs next on the worker of a thread with a block for life, by a direct way, is a thread without, which computes.
enum class Next { kChild, kTarget, kJoiner, kSuccessor, kAtSafepoint };

class WithoutSpares : public BlocksOfThreads, public testing::WithParamInterface<Next> {
  protected:
    static constexpr int kOwners = 8, kHogs = 100;

    void TearDown() override {
        faults_clear();
        BlocksOfThreads::TearDown();
    }

    // A thread with a block for life, and the one that is to run after it.
    void start_owner(const thrum_attr_t *attr) {
        if (GetParam() == Next::kTarget || GetParam() == Next::kSuccessor)
            others.push_back(std::make_unique<Light>(
                [&] {
                    thrum_suspend();
                    compute();
                },
                attr));
        else
            others.push_back(nullptr);
        const std::size_t i = others.size() - 1;
        const auto start = [this, i, attr] {
            thrum_attr_t own = *attr;
            EXPECT_EQ(thrum_attr_set_preempt(&own, THRUM_PREEMPT_OWN_TLS), 0);
            return std::make_unique<Light>([this, i] { leave_to(others.at(i)); }, &own);
        };
        if (GetParam() == Next::kJoiner)
            others.back() = std::make_unique<Light>(
                [this, start] {
                    start()->join();
                    compute();
                },
                attr);
        else
            owners.push_back(start());
    }

    // All of them, one after another, though others compute and no spare can be made. One for each worker is kept back.
    void expect_turns(unsigned workers, const thrum_attr_t *attr) {
        wait_for_each_other();
        others.reserve(kOwners + kHogs); // they stay where they are
        for (int i = 0; i < kOwners; i++)
            start_owner(attr);
        thrum_attr_t own = *attr;
        EXPECT_EQ(thrum_attr_set_preempt(&own, THRUM_PREEMPT_OWN_TLS), 0);
        owners.push_back(std::make_unique<Light>(
            [this] {
                begun++;
                while (left < kOwners) {
                }
                over = true;
            },
            &own));
        EXPECT_TRUE(eventually([&] { return begun == kOwners + 1; }));
        faults.create.after(0, INT_MAX, EAGAIN);
        for (int i = 0; i < kHogs; i++)
            others.push_back(std::make_unique<Light>([this] { compute(); }, attr));
        EXPECT_TRUE(eventually([&] { return blocks_spare() <= workers + 2; }));
        go = true;
        owners.clear();
        others.clear();
        faults_clear();
        EXPECT_EQ(left, kOwners);
    }

  private:
    void compute() const { wait_for(over); }

    void leave_to(std::unique_ptr<Light> &next) {
        begun++;
        wait_for(go);
        left++;
        switch (GetParam()) {
        case Next::kChild: next = std::make_unique<Light>([this] { compute(); }); break;
        case Next::kTarget: EXPECT_EQ(thrum_switch_to(next->handle()), 0); break;
        case Next::kSuccessor: thrum_exit_to(nullptr, next->handle());
        case Next::kJoiner: break;
        case Next::kAtSafepoint:
            for (const uint64_t end = in_us(10 * uint64_t{kShort}); thrum_now() < end;) {
                inside_wants_safepoint();
                thrum_safepoint();
            }
        }
    }

    std::atomic<int> begun{0}, left{0};
    std::atomic<bool> go{false}, over{false};
    std::vector<std::unique_ptr<Light>> owners, others;
};

std::string name_of_next(const testing::TestParamInfo<Next> &next) {
    constexpr std::array kNames{"AChild", "ATarget", "AJoiner", "ASuccessor", "AnyAtASafepoint"};
    return kNames.at(static_cast<std::size_t>(next.param));
}

INSTANTIATE_TEST_SUITE_P(Before, WithoutSpares,
                         testing::Values(Next::kChild, Next::kTarget, Next::kJoiner, Next::kSuccessor,
                                         Next::kAtSafepoint),
                         name_of_next);

} // namespace

// Were such a thread run at once it could be preempted for those alone that have taken a block along. These would take turns, and
// no thread with a block for life would run again.
TEST_P(WithoutSpares, ThreadsWithBlocksForLifeHaveTheirTurns) {
    blocks_forget();
    const Preempting preempting(1, THRUM_PREEMPT_LEND, kShort);
    const thrum_attr_t attr = attr_queued();
    expect_turns(1, &attr);
}

// A scheduler that has nothing but its reserve to continue with runs threads that keep a block. Were one without run after such a
// thread it could not be preempted at all.
TEST_P(WithoutSpares, ThreadsWithBlocksForLifeHaveTheirTurnsInAPool) {
    blocks_forget();
    const Preempting preempting(2, THRUM_PREEMPT_LEND, kShort);
    const PoolOf pool(THRUM_POOL_FIFO);
    const SchedOn sched(1, sched_of(THRUM_SCHED_FIRST, {pool.pool}));
    const thrum_attr_t attr = pool.attr();
    expect_turns(2, &attr);
}

// So does one that ends by thrum_exit, with spares that a preempted thread has used.
TEST_F(BlocksOfThreads, AreAsNewAfterThreadsThatExit) {
    Module module;
    ASSERT_NE(module.use, nullptr) << dlerror();
    for (int i = 0; i < 3; i++) {
        const Preempting preempting(1, THRUM_PREEMPT_OWN_TLS);
        const int ended = module.ended();
        void *used = in_own(
            [](void *arg) -> void * {
                thrum_exit(
                    reinterpret_cast<void *>(static_cast<std::intptr_t>(static_cast<Module *>(arg)->use())));
            },
            &module);
        ASSERT_EQ(used, nullptr);
        EXPECT_EQ(module.ended() - ended, 2);
    }
}

// A thread that ends with a robust mutex leaves it to the next that locks it.
TEST_F(BlocksOfThreads, LetGoOfRobustMutexes) {
    void *head = nullptr;
    std::size_t length = 0;
    if (syscall(SYS_get_robust_list, 0, &head, &length) != 0)
        GTEST_SKIP() << "no robust mutexes here (an emulator)";
    const Preempting preempting(1, THRUM_PREEMPT_OWN_TLS);
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_t mutexes[2];
    for (pthread_mutex_t &mutex : mutexes)
        pthread_mutex_init(&mutex, &attr);
    for (int i = 0; i < 3; i++) {
        in_own(
            [](void *arg) -> void * {
                for (int mutex = 0; mutex < 2; mutex++)
                    pthread_mutex_lock(static_cast<pthread_mutex_t *>(arg) + mutex);
                return nullptr;
            },
            mutexes);
        for (pthread_mutex_t &mutex : mutexes) {
            EXPECT_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
            EXPECT_EQ(pthread_mutex_consistent(&mutex), 0);
            EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
        }
    }
}

// A thread may ask about itself: the answers are those of the kernel thread that it runs on.
TEST_F(BlocksOfThreads, TellOfTheKernelThreadThatTheyRunOn) {
    const Preempting preempting(1, THRUM_PREEMPT_OWN_TLS);
    void *missed = in_own(
        [](void *arg) -> void * {
            cpu_set_t cpus, right;
            int policy = -1;
            sched_param parameters{};
            const bool is_told = pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) == 0 &&
                                 sched_getaffinity(0, sizeof right, &right) == 0 &&
                                 pthread_getschedparam(pthread_self(), &policy, &parameters) == 0;
            return is_told && CPU_EQUAL(&cpus, &right) && policy == sched_getscheduler(0) ? nullptr : arg;
        },
        this);
    EXPECT_EQ(missed, nullptr);
}

namespace {

// Each call is for the caller itself; what has changed is looked at where the kernel knows the thread.
const char *what_does_not_reach_it() {
    cpu_set_t all, one, now;
    sched_param parameters{};
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return "sched_getaffinity";
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    if (pthread_setaffinity_np(pthread_self(), sizeof one, &one) != 0 ||
        sched_getaffinity(0, sizeof now, &now) != 0 || !CPU_EQUAL(&now, &one) ||
        pthread_setaffinity_np(pthread_self(), sizeof all, &all) != 0)
        return "pthread_setaffinity_np";
    if (pthread_setschedparam(pthread_self(), SCHED_BATCH, &parameters) != 0 ||
        sched_getscheduler(0) != SCHED_BATCH ||
        pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters) != 0)
        return "pthread_setschedparam";
    if (pthread_setschedprio(pthread_self(), 0) != 0)
        return "pthread_setschedprio";
    sigset_t wanted;
    siginfo_t info{};
    sigval value{};
    const timespec at_once{};
    value.sival_int = 4711;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR2);
    if (pthread_sigqueue(pthread_self(), SIGUSR2, value) != 0 || // a worker blocks it
        sigtimedwait(&wanted, &info, &at_once) != SIGUSR2 || info.si_value.sival_int != value.sival_int ||
        info.si_code != SI_QUEUE || info.si_pid != getpid())
        return "pthread_sigqueue";
    return pthread_sigqueue(pthread_self(), 33, value) == EINVAL ? nullptr : "a signal of libc's";
}

} // namespace

// What a thread asks of itself is done to the kernel thread that it runs on.
TEST_F(BlocksOfThreads, StandForTheKernelThreadThatTheyRunOn) {
    for (const unsigned mode : {THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS}) {
        const Preempting preempting(2, mode);
        thrum_attr_t attr;
        thrum_t thread = nullptr;
        void *missed = nullptr;
        thrum_attr_init(&attr);
        thrum_attr_set_worker(&attr, 1);
        ASSERT_EQ(thrum_spawn(
                      &thread, &attr,
                      [](void *) -> void * { return const_cast<char *>(what_does_not_reach_it()); }, nullptr),
                  0);
        ASSERT_EQ(thrum_join(thread, &missed), 0);
        EXPECT_STREQ(static_cast<const char *>(missed), nullptr);
    }
}

// The stack that libc tells of is the thread's, though libc knows no kernel thread for it.
TEST_F(BlocksOfThreads, TellOfTheThreadsStack) {
    for (const unsigned mode : {THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS}) {
        const Preempting preempting(1, mode);
        void *missed = in_own(
            [](void *arg) -> void * {
                pthread_attr_t attr;
                void *low = nullptr;
                std::size_t size = 0;
                const char *here = reinterpret_cast<const char *>(&attr);
                if (pthread_getattr_np(pthread_self(), &attr) != 0)
                    return arg;
                const bool is_told = pthread_attr_getstack(&attr, &low, &size) == 0;
                pthread_attr_destroy(&attr);
                const char *lowest = static_cast<const char *>(low);
                return is_told && lowest <= here && here < lowest + size ? nullptr : arg;
            },
            this);
        EXPECT_EQ(missed, nullptr);
    }
}
