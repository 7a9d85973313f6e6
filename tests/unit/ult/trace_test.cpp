// SPDX-License-Identifier: Apache-2.0
//
// The event trace: the file that THRUM_TRACE names. What `thrum trace` makes of it is tested in tests/unit/cli.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thrum/pool.h>
#include <thrum/trace.h>
#include <thrum/worker.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>

#include "faults.hpp"
#include "ult.hpp"

namespace {

struct Ring {
    thrum_trace_ring head;
    std::vector<thrum_trace_event> events;
};

struct Section {
    thrum_trace_header header;
    std::vector<Ring> rings;
    std::string maps;
};

template <typename Object>
void take(std::istream &from, Object *to, std::size_t times) {
    from.read(reinterpret_cast<char *>(to), static_cast<std::streamsize>(times * sizeof *to));
}

std::vector<Section> read_trace(const std::string &path) {
    std::vector<Section> sections;
    std::ifstream file(path, std::ios::binary);
    while (file.peek() != std::ifstream::traits_type::eof()) {
        Section section{};
        take(file, &section.header, 1);
        for (unsigned i = 0; file && i < section.header.rings; i++) {
            Ring ring{};
            take(file, &ring.head, 1);
            ring.events.resize(ring.head.events);
            take(file, ring.events.data(), ring.events.size());
            section.rings.push_back(std::move(ring));
        }
        section.maps.resize(section.header.maps_bytes);
        take(file, section.maps.data(), section.maps.size());
        if (!file || std::memcmp(section.header.magic, THRUM_TRACE_MAGIC, sizeof section.header.magic) != 0) {
            ADD_FAILURE() << path << " is not whole";
            break;
        }
        sections.push_back(std::move(section));
    }
    return sections;
}

unsigned kind_of(const thrum_trace_event &event) {
    return event.what & THRUM_TRACE_KIND_MASK;
}

// How often each kind is there.
std::map<unsigned, std::size_t> count_kinds(const Section &section) {
    std::map<unsigned, std::size_t> counts;
    for (const Ring &ring : section.rings)
        for (const thrum_trace_event &event : ring.events)
            counts[kind_of(event)]++;
    return counts;
}

// A folder of the test's own, the variables that say to trace into it, and what a child that was told to writes there.
class TraceFile : public UltPlain {
  protected:
    void SetUp() override {
        char name[] = "/tmp/thrum-trace-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        folder_ = name;
        UltPlain::SetUp();
    }
    void TearDown() override {
        UltPlain::TearDown();
        std::filesystem::remove_all(folder_);
    }

    std::string path(const std::string &name = "trace") const { return folder_ + "/" + name; }
    std::vector<std::string> files() const {
        std::vector<std::string> names;
        for (const auto &entry : std::filesystem::directory_iterator(folder_))
            names.push_back(entry.path().filename().string());
        return names;
    }
    // In a child; what it wrote to stderr is in `said`. Without preemption, that what happens is not a matter of how fast
    // the machine is.
    void run(const std::string &file, const char *events, const std::function<int()> &work,
             int expected = 0) {
        int status = -1;
        said = stderr_of([&] {
            status = in_child([&] {
                setenv("THRUM_TRACE", file.c_str(), 1);
                setenv("THRUM_PREEMPT", "none", 1);
                if (events != nullptr)
                    setenv("THRUM_TRACE_EVENTS", events, 1);
                return work();
            });
        });
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == expected) << status << " " << said;
    }

    std::string said;

  private:
    std::string folder_;
};

constexpr int kThreads = 20;

// Spawns some, and waits for them; 0 if all is well.
int some_threads() {
    std::array<thrum_t, kThreads> threads{};
    for (thrum_t &thread : threads)
        if (thrum_spawn(
                &thread, nullptr,
                [](void *arg) {
                    thrum_yield();
                    return arg;
                },
                nullptr) != 0)
            return 1;
    for (const thrum_t thread : threads)
        if (thrum_join(thread, nullptr) != 0)
            return 2;
    return 0;
}

int a_runtime(unsigned workers = 2) {
    const thrum_config config{workers, 0, {}, {}};
    if (thrum_init(&config) != 0)
        return 10;
    const int wrong = some_threads();
    return wrong != 0 ? wrong : thrum_fini();
}

TEST_F(TraceFile, IsNotThereUnlessItIsAskedFor) {
    run("", nullptr, [] { return a_runtime(); });
    EXPECT_EQ(said, "");
    EXPECT_TRUE(files().empty());
}

TEST_F(TraceFile, HasEachBeginningAndEnd) {
    run(path(), nullptr, [] { return a_runtime(); });
    EXPECT_EQ(said, "");
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    const Section &section = sections[0];
    EXPECT_EQ(section.header.version, static_cast<unsigned>(THRUM_TRACE_VERSION));
    EXPECT_EQ(section.rings.size(), 3u) << "two workers, and all others";
    EXPECT_LT(section.header.begin.ns, section.header.end.ns);
    EXPECT_NE(section.maps.find("unit-ult"), std::string::npos);
    auto counts = count_kinds(section);
    EXPECT_EQ(counts[THRUM_TRACE_BEGIN], kThreads + 1u);
    EXPECT_EQ(counts[THRUM_TRACE_END], kThreads + 1u);
    EXPECT_GE(counts[THRUM_TRACE_SPAWN], static_cast<std::size_t>(kThreads)) << "the maker stays where it is";
    EXPECT_EQ(counts[THRUM_TRACE_SEARCH], counts[THRUM_TRACE_FOUND]);
    EXPECT_EQ(counts[THRUM_TRACE_PARK], counts[THRUM_TRACE_UNPARK]);
    for (const Ring &ring : section.rings)
        for (std::size_t i = 1; i < ring.events.size(); i++)
            EXPECT_LE(ring.events[i - 1].ticks, ring.events[i].ticks + 100000) << "about in order";
}

// --- each kind ----------------------------------------------------------------------------------------------

constexpr std::size_t kWaiters = 5, kYields = 3, kTasklets = 4;

thrum_t queued(void *(*fn)(void *), void *arg, unsigned flags = THRUM_SPAWN_QUEUED) {
    thrum_attr_t attr;
    thrum_t thread = nullptr;
    thrum_attr_init(&attr);
    thrum_attr_set_flags(&attr, flags);
    return thrum_spawn(&thread, &attr, fn, arg) == 0 ? thread : nullptr;
}

void *yields(void *arg) {
    for (std::size_t i = 0; i < kYields; i++)
        thrum_yield();
    return arg;
}

void *waits(void *event) {
    thrum_event_wait(static_cast<thrum_event_t *>(event));
    return nullptr;
}

void *migrates(void *arg) {
    thrum_set_name(thrum_self(), "wanderer");
    thrum_migrate(thrum_self(), thrum_workers() - 1);
    thrum_migrate(thrum_self(), 0);
    return arg;
}

void *spins_until(void *flag) {
    while (!*static_cast<std::atomic<bool> *>(flag)) {
    }
    return nullptr;
}

// Its child keeps the worker until another has taken it from the queue.
void *is_stolen(void *arg) {
    std::atomic<bool> stolen{false};
    thrum_t child = nullptr;
    thrum_spawn(&child, nullptr, spins_until, &stolen);
    stolen = true;
    thrum_join(child, nullptr);
    return arg;
}

int joined(std::initializer_list<thrum_t> threads) {
    for (const thrum_t thread : threads)
        if (thread == nullptr || thrum_join(thread, nullptr) != 0)
            return 3;
    return 0;
}

// Runs one thread as another's scheduler.
int hosted() {
    thrum_pool_t pool = nullptr;
    thrum_sched_t sched = nullptr;
    thrum_t serving = nullptr, served = nullptr;
    thrum_attr_t attr;
    thrum_attr_init(&attr);
    if (thrum_pool_create(&pool, THRUM_POOL_FIFO) != 0)
        return 4;
    thrum_attr_set_pool(&attr, pool);
    if (thrum_spawn(&served, &attr, yields, nullptr) != 0 ||
        thrum_sched_create(&sched, THRUM_SCHED_FIRST, &pool, 1) != 0 ||
        thrum_sched_spawn(&serving, nullptr, sched) != 0 || thrum_join(served, nullptr) != 0)
        return 5;
    thrum_sched_stop(sched);
    thrum_join(serving, nullptr);
    return thrum_sched_destroy(sched) != 0 || thrum_pool_destroy(pool) != 0 ? 6 : 0;
}

int each_kind() {
    static thrum_event_t event = THRUM_EVENT_INITIALIZER;
    std::array<thrum_t, kWaiters> waiting{};
    for (thrum_t &waiter : waiting)
        waiter = queued(waits, &event);
    if (joined({queued(yields, nullptr), queued(yields, nullptr)}) != 0)
        return 7;
    thrum_event_set(&event);
    for (const thrum_t waiter : waiting)
        if (joined({waiter}) != 0)
            return 8;
    for (std::size_t i = 0; i < kTasklets; i++)
        if (joined({queued([](void *arg) { return arg; }, nullptr, THRUM_SPAWN_TASKLET)}) != 0)
            return 9;
    if (joined({queued(migrates, nullptr)}) != 0 ||
        (thrum_workers() > 1 && joined({queued(is_stolen, nullptr)}) != 0))
        return 10;
    return hosted();
}

TEST_F(TraceFile, HasEachKind) {
    for (const unsigned workers : {1U, 2U, 4U}) {
        run(path(), nullptr, [workers] {
            const thrum_config config{workers, 0, {}, {}};
            if (thrum_init(&config) != 0)
                return 1;
            const int wrong = some_threads() + each_kind();
            return wrong != 0 ? wrong : thrum_fini();
        });
        const std::vector<Section> sections = read_trace(path());
        ASSERT_EQ(sections.size(), 1u);
        auto counts = count_kinds(sections[0]);
        const auto expect = [&](unsigned kind, std::size_t least) {
            EXPECT_GE(counts[kind], least) << "kind " << kind << " with " << workers << " workers";
        };
        if (workers == 1) { // else some come when what they would wait for is there
            expect(THRUM_TRACE_WAIT, kWaiters);
            expect(THRUM_TRACE_WAKE, kWaiters);
            expect(THRUM_TRACE_YIELD, kYields);
        }
        expect(THRUM_TRACE_SPAWN, kWaiters + kTasklets);
        expect(THRUM_TRACE_TASKLET, kTasklets);
        expect(THRUM_TRACE_CHILD, workers > 1 ? 1 : 0);
        expect(THRUM_TRACE_MOVE, workers > 1 ? 1 : 0);
        expect(THRUM_TRACE_STEAL, workers > 1 ? 1 : 0);
        expect(THRUM_TRACE_HOST, 1);
        expect(THRUM_TRACE_NAME, 1);
        EXPECT_EQ(counts[THRUM_TRACE_MIGRATE], 2u);
        EXPECT_EQ(counts[THRUM_TRACE_PREEMPT], 0u);
        EXPECT_EQ(counts[THRUM_TRACE_TASKLET], counts[THRUM_TRACE_TASKLET_END]);
        EXPECT_EQ(counts[THRUM_TRACE_BEGIN] + counts[THRUM_TRACE_RESUME],
                  counts[THRUM_TRACE_WAIT] + counts[THRUM_TRACE_YIELD] + counts[THRUM_TRACE_CHILD] +
                      counts[THRUM_TRACE_MOVE] + counts[THRUM_TRACE_HOST] + counts[THRUM_TRACE_END])
            << "who comes leaves, with " << workers << " workers";
    }
}

TEST_F(TraceFile, IsRelativeToWhereTheProgramWas) {
    run("relative", nullptr, [this] {
        if (chdir(path(".").c_str()) != 0)
            return 1;
        const thrum_config config{1, 0, {}, {}};
        if (thrum_init(&config) != 0 || chdir("/") != 0)
            return 2;
        return thrum_fini();
    });
    EXPECT_EQ(read_trace(path("relative")).size(), 1u);
}

TEST_F(TraceFile, IsWrittenAtExit) {
    run(
        path(), nullptr,
        [] {
            const thrum_config config{2, 0, {}, {}};
            if (thrum_init(&config) != 0 || some_threads() != 0)
                return 1;
            exit(7); // the workers still run
        },
        7);
    EXPECT_EQ(said, "");
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    EXPECT_EQ(count_kinds(sections[0])[THRUM_TRACE_END], static_cast<std::size_t>(kThreads));
}

// From a thread, and while others spawn all the time: what is in the file is whole nevertheless.
TEST_F(TraceFile, IsWrittenAtExitAmongBusyWorkers) {
    run(path(), "256", [] {
        unsetenv("THRUM_PREEMPT");
        const thrum_config config{4, 0, {}, {}};
        if (thrum_init(&config) != 0)
            return 1;
        for (int i = 0; i < 20; i++)
            thrum_spawn(
                nullptr, nullptr,
                [](void *) -> void * {
                    for (;;)
                        some_threads();
                },
                nullptr);
        thrum_sleep(20 * THRUM_MS);
        exit(0);
    });
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    for (const Ring &ring : sections[0].rings)
        for (const thrum_trace_event &event : ring.events)
            EXPECT_TRUE(kind_of(event) >= THRUM_TRACE_BEGIN && kind_of(event) <= THRUM_TRACE_PREEMPT);
}

TEST_F(TraceFile, IsLostWhereTheProcessIsEndedOtherwise) {
    run(path(), nullptr, [] {
        const thrum_config config{1, 0, {}, {}};
        if (thrum_init(&config) != 0)
            return 1;
        _exit(0);
    });
    EXPECT_EQ(std::filesystem::file_size(path()), 0u) << "but it is there: who finds it knows";
}

TEST_F(TraceFile, HoldsAllRuntimesOfAProcess) {
    run(path(), nullptr, [] {
        const int wrong = a_runtime(1);
        return wrong != 0 ? wrong : a_runtime(2);
    });
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 2u);
    EXPECT_EQ(sections[0].rings.size(), 2u);
    EXPECT_EQ(sections[1].rings.size(), 3u);
    run(path(), nullptr, [] { return a_runtime(1); });
    EXPECT_EQ(read_trace(path()).size(), 1u) << "another process begins anew";
}

// 0 if a thread ran there.
int a_thread_on(unsigned worker) {
    thrum_attr_t attr;
    thrum_t thread = nullptr;
    thrum_attr_init(&attr);
    if (thrum_attr_set_worker(&attr, worker) != 0)
        return 1;
    if (thrum_spawn(
            &thread, &attr, [](void *arg) { return arg; }, nullptr) != 0)
        return 2;
    return thrum_join(thread, nullptr);
}

// Two of them, one after the other, in one slot: one ring.
TEST_F(TraceFile, OfWorkersThatComeAndGo) {
    run(path(), nullptr, [] {
        const thrum_config config{1, 0, {}, {}};
        if (thrum_init(&config) != 0)
            return 1;
        for (int i = 0; i < 2; i++) {
            unsigned number = 0;
            if (thrum_worker_add(&number) != 0 || a_thread_on(number) != 0 || thrum_worker_stop(number) != 0)
                return 2;
        }
        return thrum_fini();
    });
    EXPECT_EQ(said, "");
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    ASSERT_EQ(sections[0].rings.size(), 3u);
    std::map<unsigned, int> kinds;
    for (const thrum_trace_event &event : sections[0].rings[1].events)
        kinds[kind_of(event)]++;
    EXPECT_EQ(kinds[THRUM_TRACE_BEGIN], 2);
    EXPECT_EQ(kinds[THRUM_TRACE_END], 2);
}

TEST_F(TraceFile, OfThreadsOutside) {
    run(path(), nullptr, [] {
        if (some_threads() != 0) // no thrum_init: this is no worker
            return 1;
        exit(0);
    });
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    const Ring &outside = sections[0].rings.back();
    EXPECT_EQ(outside.head.worker, THRUM_TRACE_EXTERNAL);
    EXPECT_EQ(outside.events.size(), static_cast<std::size_t>(kThreads));
}

TEST_F(TraceFile, OfAThreadWithAKernelThreadOfItsOwn) {
    run(path(), nullptr, [] {
        if (thrum_init(nullptr) != 0)
            return 1;
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        thrum_attr_set_flags(&attr, THRUM_SPAWN_OWN_KTHREAD);
        int wrong = -1;
        Light([&] { wrong = some_threads(); }, &attr).join();
        return wrong != 0 ? wrong : thrum_fini();
    });
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    const Ring &outside = sections[0].rings.back();
    EXPECT_EQ(outside.head.worker, THRUM_TRACE_EXTERNAL);
    std::size_t spawns = 0;
    for (const thrum_trace_event &event : outside.events)
        spawns += kind_of(event) == THRUM_TRACE_SPAWN;
    EXPECT_EQ(spawns, static_cast<std::size_t>(kThreads));
}

// --- what goes wrong --------------------------------------------------------------------------------------

TEST_F(TraceFile, ThatCannotBeMade) {
    run("/nowhere/trace", nullptr, [] { return a_runtime(); });
    EXPECT_EQ(said, "thrum: the trace cannot be written to /nowhere/trace: there is no such folder\n");
    run(path("."), nullptr, [] { return a_runtime(); });
    EXPECT_EQ(said, "thrum: the trace cannot be written to " + path(".") + ": it is a folder\n");
    run("/tmp/" + std::string(5000, 'x'), nullptr, [] { return a_runtime(); });
    EXPECT_NE(said.find("the trace cannot be written to /tmp/xxxx"), std::string::npos) << said;
}

TEST_F(TraceFile, ThatCannotBeWritten) {
    if (access("/dev/full", W_OK) != 0)
        GTEST_SKIP() << "there is no device that is always full";
    run("/dev/full", nullptr, [] { return a_runtime(); });
    EXPECT_EQ(said, "thrum: the trace cannot be written to /dev/full: no space left\n");
}

TEST_F(TraceFile, OfABadNumberOfEvents) {
    for (const char *events : {"many", "15", "-1", "1000000001", "100000000000000000000000", "20 "}) {
        run(path(), events, [] { return thrum_init(nullptr) == EINVAL ? 0 : 1; });
        EXPECT_EQ(said, std::string("thrum: THRUM_TRACE_EVENTS is '") + events +
                            "'; it takes a number from 16 to 1000000000\n");
    }
}

TEST_F(TraceFile, KeepsTheNewestEvents) {
    run(path(), "16", [] { return a_runtime(1); });
    const std::vector<Section> sections = read_trace(path());
    ASSERT_EQ(sections.size(), 1u);
    const Ring &ring = sections[0].rings[0];
    EXPECT_EQ(ring.events.size(), 15u);
    EXPECT_GT(ring.head.lost, 50u);
    EXPECT_EQ(kind_of(ring.events.back()), static_cast<unsigned>(THRUM_TRACE_END)) << "main's";
}

// Whichever mapping it is that fails: the runtime does not start, or spawns no thread, or a ring is left out, or a
// part does without.
TEST_F(TraceFile, WithoutMemoryForARing) {
    int left_out = 0;
    for (int well = 0; well < 16; well++) {
        run(path(), nullptr, [well] {
            faults.mmap.after(well, 1, ENOMEM);
            const int wrong = a_runtime(2);
            faults_clear();
            return wrong == 10 || wrong == 1 ? 0 : wrong; // thrum_init or thrum_spawn said so
        });
        if (said.empty())
            continue;
        EXPECT_EQ(said, "thrum: no memory to trace a worker, which the trace leaves out; set a smaller "
                        "THRUM_TRACE_EVENTS\n");
        const std::vector<Section> sections = read_trace(path());
        ASSERT_EQ(sections.size(), 1u);
        const auto &rings = sections[0].rings;
        const auto reliefs =
            std::count_if(rings.begin(), rings.end(), [](const auto &ring) { return ring.head.relief != 0; });
        ASSERT_EQ(rings.size(), 3u + static_cast<unsigned>(reliefs));
        left_out++;
    }
    EXPECT_EQ(left_out, 3) << "of two workers, and of the threads outside";
}

// --- children ---------------------------------------------------------------------------------------------

int with_a_child(const std::function<int()> &in_the_child) {
    const thrum_config config{2, 0, {}, {}};
    if (thrum_init(&config) != 0 || some_threads() != 0)
        return 1;
    const pid_t child = fork();
    if (child == 0)
        exit(in_the_child()); // not _exit: what is done at exit must not be done here
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 2;
    return thrum_fini();
}

// Sanitizers that look after threads or memory are not up to it (CMakeLists.txt knows this by the suite's name).
class TraceUltFork : public TraceFile {
  protected:
    void SetUp() override {
        TraceFile::SetUp();
        if (ULT_EMULATED)
            GTEST_SKIP() << "the emulator cannot start threads in a forked child of several";
    }
};

TEST_F(TraceUltFork, FileIsNotTheChilds) {
    run(path(), nullptr, [] { return with_a_child([] { return 0; }); });
    EXPECT_EQ(said, "");
    ASSERT_EQ(read_trace(path()).size(), 1u);
    run(path(), nullptr, [] { return with_a_child([] { return a_runtime(); }); });
    EXPECT_EQ(said, "");
    EXPECT_EQ(read_trace(path()).size(), 1u) << "its runtime is not traced";
}

TEST_F(TraceUltFork, FileOfAChildHasTheChildsNumber) {
    run(path("%p"), nullptr, [] { return with_a_child([] { return a_runtime(); }); });
    EXPECT_EQ(said, "");
    ASSERT_EQ(files().size(), 2u);
    for (const std::string &file : files()) {
        const std::vector<Section> sections = read_trace(path(file));
        ASSERT_EQ(sections.size(), 1u);
        EXPECT_EQ(std::to_string(sections[0].header.pid), file);
    }
}

} // namespace
