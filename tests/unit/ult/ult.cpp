// SPDX-License-Identifier: Apache-2.0
//
// See ult.hpp.
#include "ult.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thrum/cache.h>
#include <thrum/pool.h>
#include <thrum/scope.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "blocks.h"
#include "depots.h"
#include "faults.hpp"

namespace {

double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void *call(void *work) {
    (*static_cast<Light::Work *>(work))();
    return nullptr;
}

void *call_and_delete(void *work) {
    const std::unique_ptr<Light::Work> owned(static_cast<Light::Work *>(work));
    (*owned)();
    return nullptr;
}

} // namespace

// --- ULTs -------------------------------------------------------------------------------------------------

Light::Light(Work work, const thrum_attr_t *attr) : work_(std::make_unique<Work>(std::move(work))) {
    if (const int error = thrum_spawn(&handle_, attr, call, work_.get()); error != 0) {
        handle_ = nullptr;
        ADD_FAILURE() << "thrum_spawn: " << std::strerror(error);
    }
}

void Light::join() {
    if (handle_ == nullptr)
        return;
    EXPECT_EQ(thrum_join(std::exchange(handle_, nullptr), nullptr), 0);
}

External::External(Light::Work work) : thread_([this, body = std::move(work)] { run(body); }) {}

void External::run(const Light::Work &work) {
    work();
    thrum_mutex_lock(&mutex_);
    over_ = true;
    thrum_cond_signal(&ended_);
    thrum_mutex_unlock(&mutex_);
}

void External::join() {
    if (!thread_.joinable())
        return;
    thrum_mutex_lock(&mutex_);
    while (!over_)
        thrum_cond_wait(&ended_, &mutex_);
    thrum_mutex_unlock(&mutex_);
    thread_.join();
}

void in_ult(const Light::Work &work) {
    Light{work};
}

void detached(Light::Work work) {
    auto owned = std::make_unique<Light::Work>(std::move(work));
    if (const int error = thrum_spawn(nullptr, nullptr, call_and_delete, owned.get()); error != 0)
        ADD_FAILURE() << "thrum_spawn: " << std::strerror(error);
    else
        owned.release();
}

thrum_attr_t attr_queued() {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_flags(&attr, THRUM_SPAWN_QUEUED), 0);
    return attr;
}

thrum_attr_t attr_stack(std::size_t size) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    EXPECT_EQ(thrum_attr_set_stack_size(&attr, size), 0);
    return attr;
}

thrum_attr_t attr_pool(thrum_pool_t pool) {
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    thrum_attr_set_pool(&attr, pool);
    return attr;
}

// After a while it sleeps in between: on a busy machine what it waits for needs the CPU.
bool eventually(const std::function<bool()> &condition) {
    constexpr int kPatience = 200;
    constexpr timespec kNap{0, 100000};
    const double end = seconds() + 20;
    for (int i = 0; !condition(); i++) {
        if (seconds() > end)
            return false;
        thrum_yield();
        if (i > kPatience)
            nanosleep(&kNap, nullptr);
    }
    return true;
}

void spin_us(double microseconds) {
    for (const double end = seconds() + microseconds * 1e-6; seconds() < end;) {
    }
}

// --- the process ------------------------------------------------------------------------------------------

namespace {

// Where the program runs under `thrum run`: it keeps kernel threads that have ended, and their stacks.
const struct thrum_cache_counters *kernel_thread_cache() {
    return static_cast<struct thrum_cache_counters *>(dlsym(RTLD_DEFAULT, "thrum_cache_counters"));
}

} // namespace

bool has_foreign_mappings() {
    const char *preloaded = std::getenv("LD_PRELOAD"); // Valgrind's, too
    return ULT_ASAN || ULT_TSAN || ULT_EMULATED || kernel_thread_cache() != nullptr ||
           (preloaded != nullptr && std::strstr(preloaded, "vgpreload") != nullptr);
}

std::size_t threads_of_process() {
    std::size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (const dirent *entry = readdir(tasks))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    const struct thrum_cache_counters *cache = kernel_thread_cache();
    return cache != nullptr ? count - __atomic_load_n(&cache->idle, __ATOMIC_RELAXED) : count;
}

// Without thread control blocks, which are kept for the next runtime. Read at one go into memory that is always there: looking
// must not change what is seen.
std::size_t mapped_bytes() {
    static char text[1 << 22];
    std::size_t length = 0;
    const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t part; (part = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += static_cast<std::size_t>(part);
    close(file);
    text[length] = '\0';
    std::size_t all = 0;
    for (char *line = text, *next; (next = std::strchr(line, '\n')) != nullptr; line = next + 1) {
        *next = '\0';
        std::size_t from = 0, to = 0;
        if (std::sscanf(line, "%zx-%zx", &from, &to) == 2 && std::strstr(line, "[heap]") == nullptr &&
            std::strstr(line, "[stack]") == nullptr)
            all += to - from;
    }
    return all - blocks_bytes() - reserved_bytes();
}

std::size_t resident_bytes() {
    unsigned long pages = 0;
    std::FILE *file = std::fopen("/proc/self/statm", "re");
    if (file != nullptr) {
        EXPECT_EQ(std::fscanf(file, "%*u %lu", &pages), 1);
        std::fclose(file);
    }
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

bool can_dump() {
    const iovec nothing{};
    return process_vm_readv(getpid(), &nothing, 0, &nothing, 0, 0) == 0;
}

// What qemu-user adds when a signal ends the program is left out.
std::string stderr_of(const std::function<void()> &work) {
    const int file = memfd_create("stderr", MFD_CLOEXEC), kept = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    work();
    dup2(kept, STDERR_FILENO);
    close(kept);
    std::string text(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    close(file);
    return text.substr(0, text.find("qemu: uncaught target signal"));
}

int in_child(const std::function<int()> &work, unsigned seconds) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(seconds);
        _exit(work());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
}

// --- fixtures ---------------------------------------------------------------------------------------------

namespace {

// More than any test has: their memory stays for the next ones.
void make_pools_and_schedulers() {
    constexpr std::size_t kMany = 256;
    std::array<thrum_pool_t, kMany> pools{};
    std::array<thrum_sched_t, kMany> scheds{};
    for (std::size_t i = 0; i < kMany; i++) {
        ASSERT_EQ(thrum_pool_create(&pools.at(i), THRUM_POOL_FIFO), 0);
        ASSERT_EQ(thrum_sched_create(&scheds.at(i), THRUM_SCHED_FIRST, &pools.at(i), 1), 0);
    }
    for (thrum_sched_t sched : scheds)
        ASSERT_EQ(thrum_sched_destroy(sched), 0);
    const std::vector<thrum_pool_t> most(THRUM_SCHED_POOLS_MAX, pools[0]);
    ASSERT_EQ(thrum_sched_create(&scheds[0], THRUM_SCHED_FIRST, most.data(), THRUM_SCHED_POOLS_MAX), 0);
    ASSERT_EQ(thrum_sched_destroy(scheds[0]), 0);
    for (thrum_pool_t pool : pools)
        ASSERT_EQ(thrum_pool_destroy(pool), 0);
}

// Likewise.
void make_calls() {
    constexpr std::size_t kMany = 4096;
    std::vector<thrum_call_t> calls(kMany);
    for (thrum_call_t &call : calls)
        ASSERT_EQ(thrum_call_at(
                      &call, UINT64_MAX, [](void *) {}, nullptr),
                  0);
    for (const thrum_call_t &call : calls)
        ASSERT_EQ(thrum_call_cancel(call), 0);
}

// That exist at the same time.
void make_members() {
    thrum_scope_t scope;
    thrum_event_t all_are_made = THRUM_EVENT_INITIALIZER;
    const auto wait = [](void *event) {
        thrum_event_wait(static_cast<thrum_event_t *>(event));
        return 0;
    };
    ASSERT_EQ(thrum_scope_begin(&scope, UINT64_MAX), 0);
    for (int i = 0; i < 4096; i++)
        ASSERT_EQ(thrum_scope_spawn(&scope, nullptr, wait, &all_are_made), 0);
    thrum_event_set(&all_are_made);
    ASSERT_EQ(thrum_scope_end(&scope), 0);
}

// So that a thread is preempted, for the first time.
void run_beside_each_other() {
    const uint64_t end = thrum_now() + 100 * THRUM_MS;
    std::atomic<int> begun{0};
    constexpr int kThreads = 4;
    std::vector<Light> threads;
    const thrum_attr_t attr = attr_queued();
    for (int i = 0; i < kThreads; i++)
        threads.emplace_back(
            [&] {
                begun++;
                while (begun < kThreads && thrum_now() < end) {
                }
            },
            &attr);
}

// The first runtime of a process leaves behind what is made once.
void warm_up() {
    static bool warm = false;
    if (warm)
        return;
    warm = true;
    const thrum_config config{2, 0, {}, {}};
    // The name of the file is made of random numbers, for which glibc keeps memory from 2.41 on.
    testing::internal::CaptureStderr();
    testing::internal::GetCapturedStderr();
    ASSERT_EQ(thrum_init(&config), 0);
    in_ult([] {});
    make_pools_and_schedulers();
    make_calls();
    make_members();
    in_ult(run_beside_each_other);
    ASSERT_EQ(thrum_fini(), 0);
}

} // namespace

LeakCheck::LeakCheck() {
    warm_up();
    mapped_ = mapped_bytes();
    threads_ = threads_of_process();
}

void LeakCheck::expect_nothing_left() const {
    faults_clear();
    // A thread that was joined may still be on its way out of the kernel, now as when they were counted.
    EXPECT_TRUE(eventually([this] { return threads_of_process() <= threads_; }))
        << threads_of_process() << " threads, were " << threads_;
    if (!has_foreign_mappings()) {
        EXPECT_LE(mapped_bytes(), mapped_);
    }
}

void Ult::SetUp() {
    before_ = std::make_unique<LeakCheck>();
    const thrum_config config{workers(), 0, {mode(), 0, 0, 0}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    ASSERT_EQ(thrum_workers(), workers());
}

void Ult::TearDown() {
    ASSERT_EQ(thrum_fini(), 0);
    before_->expect_nothing_left();
}

std::string name_of_workers(const testing::TestParamInfo<unsigned> &info) {
    return "On" + std::to_string(info.param);
}

// --- main -------------------------------------------------------------------------------------------------

// What glibc keeps of the stacks and arenas of threads that have ended would look like a leak of ours. ctest sets this
// already; by hand the program starts itself again with it.
static void without_caches_of_libc(char **argv) {
    if (std::getenv("GLIBC_TUNABLES") != nullptr || ULT_EMULATED)
        return;
    setenv("GLIBC_TUNABLES",
           "glibc.malloc.arena_max=1:glibc.malloc.mmap_max=0:glibc.pthread.stack_cache_size=0", 1);
    execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
    without_caches_of_libc(argv);
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
