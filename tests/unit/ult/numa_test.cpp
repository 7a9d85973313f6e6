// SPDX-License-Identifier: Apache-2.0
//
// NUMA nodes and the places of workers, on folders made like sysfs.
#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include <thrum/worker.h>

#include "nodes.h"
#include "preempt.hpp"
#include "ult.hpp"

namespace {

// --- folders ----------------------------------------------------------------------------------------------

class Folder {
  public:
    Folder() : root_(testing::TempDir() + "nodesXXXXXX") { EXPECT_NE(mkdtemp(root_.data()), nullptr); }
    ~Folder() { std::filesystem::remove_all(root_); }
    Folder(const Folder &) = delete;
    void write(const std::string &file, const std::string &text) const {
        const std::filesystem::path path = root_ + "/" + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    const char *name() const { return root_.c_str(); }

  private:
    std::string root_;
};

class Numa : public testing::Test {
  protected:
    static constexpr unsigned kCpus = 16;
    unsigned read() { return nodes_read(folder_.name(), nodes_.data(), kCpus); }
    Folder folder_;
    std::array<unsigned, kCpus> nodes_{};
    const std::array<unsigned, kCpus> none_{};
};

TEST_F(Numa, OneNodeIfThereIsNothing) {
    EXPECT_EQ(read(), 1U);
    EXPECT_EQ(nodes_, none_);
    EXPECT_EQ(nodes_read("/nowhere/at/all", nodes_.data(), kCpus), 1U);
    EXPECT_EQ(nodes_read(std::string(2000, 'l').c_str(), nodes_.data(), kCpus), 1U);
}

TEST_F(Numa, OneNode) {
    folder_.write("has_cpu", "0\n");
    folder_.write("node0/cpulist", "0-15\n");
    EXPECT_EQ(read(), 1U);
    EXPECT_EQ(nodes_, none_);
}

TEST_F(Numa, TwoNodes) {
    folder_.write("has_cpu", "0-1\n");
    folder_.write("node0/cpulist", "0-3,8-11\n");
    folder_.write("node1/cpulist", "4-7,12-15\n");
    EXPECT_EQ(read(), 2U);
    EXPECT_EQ(nodes_, (std::array<unsigned, kCpus>{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1}));
}

// Node 1 has only memory, node 2 is not there; what counts is numbered without gaps.
TEST_F(Numa, NodesWithGaps) {
    folder_.write("has_cpu", "0,3\n");
    folder_.write("node0/cpulist", "0\n");
    folder_.write("node1/cpulist", "\n");
    folder_.write("node3/cpulist", "1,3,5-6\n");
    EXPECT_EQ(read(), 2U);
    EXPECT_EQ(nodes_, (std::array<unsigned, kCpus>{0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Numa, RubbishIsNotFollowed) {
    for (const char *list :
         {"rubbish", "0-", "-1", "0-1x", "", "0,,1", "5-2", "99999999999999-999999999999999", "0-4000"}) {
        folder_.write("has_cpu", list);
        folder_.write("node0/cpulist", "0-7\n");
        folder_.write("node1/cpulist", list);
        const unsigned nodes = read();
        EXPECT_TRUE(nodes >= 1 && nodes <= 64) << list << ": " << nodes;
        for (const unsigned node : nodes_)
            EXPECT_LT(node, nodes) << list;
    }
}

// --- places of workers ------------------------------------------------------------------------------------

std::set<int> cpus_here() {
    cpu_set_t set;
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    std::set<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus.insert(cpu);
    return cpus;
}

// The first CPU that the process may use is node 0, the others are node 1.
class Places : public UltPlain {
  protected:
    void SetUp() override {
        UltPlain::SetUp();
        all_ = cpus_here();
        if (all_.size() < 2)
            GTEST_SKIP() << "needs two CPUs";
        const int first = *all_.begin();
        folder_.write("has_cpu", "0,2\n");
        folder_.write("node0/cpulist", std::to_string(first) + "\n");
        folder_.write("node2/cpulist", std::to_string(first + 1) + "-4095\n");
        nodes_pretend(folder_.name());
    }
    void TearDown() override {
        unsetenv("THRUM_BIND");
        nodes_pretend(nullptr);
        UltPlain::TearDown();
    }
    static int init(unsigned workers) {
        const thrum_config config{workers, 0, {}, {}};
        return thrum_init(&config);
    }
    // What worker `number` may use.
    static std::set<int> cpus_of(unsigned number) {
        std::set<int> cpus;
        thrum_attr_t attr;
        thrum_attr_init(&attr);
        EXPECT_EQ(thrum_attr_set_worker(&attr, number), 0);
        Light([&] { cpus = cpus_here(); }, &attr);
        return cpus;
    }
    std::set<int> all_;
    Folder folder_;
};

TEST_F(Places, NoWorkerIsBoundByDefault) {
    for (const char *value : {"", "none"}) {
        setenv("THRUM_BIND", value, 1);
        ASSERT_EQ(init(2), 0);
        EXPECT_EQ(nodes_known(), 2U);
        EXPECT_EQ(cpus_here(), all_);
        EXPECT_EQ(cpus_of(1), all_);
        ASSERT_EQ(thrum_fini(), 0);
    }
}

TEST_F(Places, ACpuEach) {
    setenv("THRUM_BIND", "cpu", 1);
    const auto size = static_cast<unsigned>(all_.size());
    ASSERT_EQ(init(size), 0);
    EXPECT_EQ(cpus_here(), std::set<int>{*all_.begin()});
    for (unsigned i = 1; i < std::min(size, 4U); i++)
        EXPECT_EQ(cpus_of(i), std::set<int>{*std::next(all_.begin(), i)});
    unsigned number = 0;
    ASSERT_EQ(thrum_worker_add(&number), 0); // round again
    EXPECT_EQ(cpus_of(number), std::set<int>{*all_.begin()});
    ASSERT_EQ(thrum_worker_stop(number), 0);
    EXPECT_EQ(nodes_of_worker(0), 0U);
    EXPECT_EQ(nodes_of_worker(size - 1), 1U);
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(cpus_here(), all_);
}

TEST_F(Places, ANodeEach) {
    setenv("THRUM_BIND", "node", 1);
    ASSERT_EQ(init(2), 0);
    std::set<int> others = all_;
    others.erase(others.begin());
    EXPECT_EQ(cpus_here(), std::set<int>{*all_.begin()});
    EXPECT_EQ(cpus_of(1), others);
    ASSERT_EQ(thrum_fini(), 0);
    EXPECT_EQ(cpus_here(), all_);
}

TEST_F(Places, CallsThatBlockAreNotBound) {
    setenv("THRUM_BIND", "cpu", 1);
    ASSERT_EQ(init(2), 0);
    static std::set<int> cpus;
    cpus.clear();
    EXPECT_EQ(thrum_blocking(
                  [](void *) -> void * {
                      cpus = cpus_here();
                      return nullptr;
                  },
                  nullptr, nullptr),
              0);
    EXPECT_EQ(cpus, all_);
    ASSERT_EQ(thrum_fini(), 0);
}

// Of the caller: all that are given here, and no other?
bool may_use(const cpu_set_t &wanted) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_EQUAL(&set, &wanted);
}

// In mode klt a preempted thread keeps the kernel thread, and resumes with it on whatever worker picks it.
TEST_F(Places, AKernelThreadHasThatOfTheWorkerWhoseThreadsItCarries) {
    constexpr unsigned kWorkers = 2;
    constexpr int kMoves = 20;
    if (ULT_ASAN || ULT_TSAN)
        GTEST_SKIP() << "under sanitizers nobody is preempted";
    setenv("THRUM_BIND", "cpu", 1);
    const Preempting runtime(kWorkers, THRUM_PREEMPT_KLT);
    std::array<cpu_set_t, kWorkers> places{};
    for (unsigned i = 0; i < kWorkers; i++) {
        CPU_ZERO(&places.at(i));
        CPU_SET(static_cast<size_t>(*std::next(all_.begin(), static_cast<long>(i * all_.size() / kWorkers))),
                &places.at(i));
    }
    const uint64_t end = in_ms(20'000);
    std::atomic<int> wrong{0}, moves{0}, others{0};
    std::vector<Thread> threads;
    for (int i = 0; i < 5; i++)
        threads.emplace_back([&] {
            const pid_t self = gettid();
            for (int last = -1; moves < kMoves && thrum_now() < end;) {
                thrum_nopreempt_begin();
                const int worker = thrum_worker_self();
                // The one that relieves others has a number that is none of these.
                if (worker >= 0 && static_cast<unsigned>(worker) < kWorkers) {
                    wrong += !may_use(places[static_cast<size_t>(worker)]);
                    moves += last >= 0 && worker != last;
                    last = worker;
                }
                thrum_nopreempt_end();
                others += gettid() != self;
            }
        });
    threads.clear();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(others, 0);
    EXPECT_GE(moves, kMoves);
}

// It costs a system call, which is made only where the worker is another than before: a thread that has requested
// other CPUs has them as long as it stays there.
TEST_F(Places, AKernelThreadIsGivenItsPlaceOnce) {
    if (ULT_ASAN || ULT_TSAN)
        GTEST_SKIP() << "under sanitizers nobody is preempted";
    setenv("THRUM_BIND", "cpu", 1);
    const Preempting runtime(2, THRUM_PREEMPT_KLT);
    cpu_set_t all;
    CPU_ZERO(&all);
    for (const int cpu : all_)
        CPU_SET(static_cast<size_t>(cpu), &all);
    thrum_attr_t attr = attr_queued();
    EXPECT_EQ(thrum_attr_set_worker(&attr, 1), 0);
    std::atomic<bool> over{false};
    Light computes([&] { wait_for(over); }, &attr);
    Light changes(
        [&] {
            EXPECT_FALSE(may_use(all));
            EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
            for (const uint64_t enough = preemptions() + 20; preemptions() < enough;) {
            }
            EXPECT_TRUE(may_use(all));
            over = true;
        },
        &attr);
}

TEST_F(Places, RefusesABadWordInOneLine) {
    for (const char *bad : {"yes", "core", "cpu ", "CPU", "1"}) {
        setenv("THRUM_BIND", bad, 1);
        const std::string text = stderr_of([] { EXPECT_EQ(init(2), EINVAL); });
        EXPECT_EQ(text, std::string("thrum: THRUM_BIND is '") + bad + "'; it takes none, node or cpu\n");
        EXPECT_EQ(thrum_workers(), 0U);
    }
}

// Work that lies on one node only is done by both; and what is spawned there wakes those of the other.
TEST_F(Places, NodesHelpEachOther) {
    setenv("THRUM_BIND", "cpu", 1);
    for (const unsigned workers : {2U, 4U, 8U}) {
        ASSERT_EQ(init(workers), 0);
        std::array<std::atomic<bool>, 2> seen{};
        EXPECT_TRUE(eventually([&] {
            const thrum_attr_t queued = attr_queued();
            std::vector<Light> lights;
            for (int i = 0; i < 100; i++)
                lights.emplace_back(
                    [&] {
                        spin_us(20);
                        seen[nodes_of_worker(static_cast<unsigned>(thrum_worker_self()))] = true;
                    },
                    &queued);
            lights.clear();
            return seen[0] && seen[1];
        }));
        ASSERT_EQ(thrum_fini(), 0);
    }
}

} // namespace
