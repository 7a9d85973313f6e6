// SPDX-License-Identifier: Apache-2.0
//
// os/quota: CPUs by control group, from folders made like the kernel's.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ult.hpp"

extern "C" {
uint32_t quota_cpus_from(const char *groups, const char *root);
uint32_t quota_threads_from(const char *groups, const char *root);
uint32_t quota_threads();
}

namespace {

class Quota : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "quotaXXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        root_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string &file, const std::string &text) {
        const std::filesystem::path path = root_ + file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    uint32_t cpus(const std::string &groups) const { return quota_cpus_from(groups.c_str(), root_.c_str()); }
    uint32_t threads(const std::string &groups) const {
        return quota_threads_from(groups.c_str(), root_.c_str());
    }

  private:
    std::string root_;
};

constexpr uint32_t kNone = UINT32_MAX;

TEST_F(Quota, Version2IsTheSmallestOnTheWayUp) {
    write("/a/cpu.max", "400000 100000\n");
    write("/a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(cpus("0::/a/b\n"), 4U);
    write("/a/b/cpu.max", "150000 100000\n");
    EXPECT_EQ(cpus("0::/a/b\n"), 2U); // rounded up
    write("/cpu.max", "50000 100000\n");
    EXPECT_EQ(cpus("0::/a/b\n"), 1U);
}

// A quarter of the limit is the program's.
TEST_F(Quota, ThreadsOfBothVersions) {
    for (const std::string at : {"", "/pids"}) {
        const std::string groups = at.empty() ? "0::/a/b\n" : "7:cpu:/x\n6:pids:/a/b\n";
        EXPECT_EQ(threads(groups), kNone);
        write(at + "/a/b/pids.max", "max\n");
        write(at + "/a/b/pids.current", "17\n");
        EXPECT_EQ(threads(groups), kNone);
        write(at + "/a/pids.max", "400\n");
        EXPECT_EQ(threads(groups), kNone); // how many there are is not known
        write(at + "/a/pids.current", "100\n");
        EXPECT_EQ(threads(groups), 200U);
        write(at + "/a/b/pids.max", "40\n");
        EXPECT_EQ(threads(groups), 13U); // 40 - 10 - 17
        write(at + "/a/b/pids.current", "30\n");
        EXPECT_EQ(threads(groups), 0U);
        write(at + "/a/b/pids.current", "39\n");
        EXPECT_EQ(threads(groups), 0U);
    }
}

TEST_F(Quota, ThreadsThatTheSystemHasRoomFor) {
    uint64_t most = 0;
    std::ifstream("/proc/sys/kernel/threads-max") >> most;
    if (most == 0)
        GTEST_SKIP() << "the kernel does not say";
    EXPECT_LT(quota_threads(), most);
}

// The superuser is not held to that limit. qemu-user shows a /proc/self/stat that counts no threads: all of the limit is room.
TEST_F(Quota, ThreadsThatTheUserMayHave) {
    constexpr int kCannot = 77;
    constexpr unsigned kBound = ULT_EMULATED ? 301 : 300;
    const int status = in_child([] {
        const rlimit few = {400, 400};
        if (setrlimit(RLIMIT_NPROC, &few) != 0 || (getuid() == 0 && setresuid(65534, 65534, 65534) != 0))
            return kCannot;
        return quota_threads() < kBound ? 0 : 1;
    });
    if (WIFEXITED(status) && WEXITSTATUS(status) == kCannot)
        GTEST_SKIP() << "no ordinary user here";
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Quota, Version1HasTwoFiles) {
    write("/cpu/c/cpu.cfs_quota_us", "250000\n");
    EXPECT_EQ(cpus("3:cpu,cpuacct:/c\n"), kNone); // no period
    write("/cpu/c/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cpus("5:memory:/x\n3:cpuacct,cpu:/c\n"), 3U);
    write("/cpu/c/cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(cpus("3:cpu,cpuacct:/c\n"), kNone);
}

TEST_F(Quota, NoneWhereThereIsNone) {
    EXPECT_EQ(cpus(""), kNone);
    EXPECT_EQ(cpus("rubbish"), kNone);
    EXPECT_EQ(cpus("0::/nowhere"), kNone);
    EXPECT_EQ(cpus("7:cpuset:/c\n"), kNone);
    write("/r/cpu.max", "rubbish\n");
    EXPECT_EQ(cpus("0::/r\n"), kNone);
    write("/z/cpu.max", "100 0\n");
    EXPECT_EQ(cpus("0::/z\n"), kNone);
    EXPECT_EQ(cpus("0::/" + std::string(2000, 'l')), kNone);
}

// In a mount namespace where the kernel's folder of groups is one of the test's, which gives the process one CPU.
TEST_F(Quota, IsWhatARuntimeGoesBy) {
    constexpr int kCannot = 77;
    const auto write_at = [](const std::string &file, const char *text) {
        const std::string path = "/sys/fs/cgroup" + file;
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        std::ofstream(path) << text;
    };
    unsetenv("THRUM_WORKERS");
    if (thrum_workers_default() < 2)
        GTEST_SKIP() << "needs two CPUs";
    const int status = in_child([&] {
        if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
            mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("none", "/sys/fs/cgroup", "tmpfs", 0, nullptr) != 0)
            return kCannot;
        write_at("/cpu.max", "100000 100000\n");
        write_at("/cpu/cpu.cfs_quota_us", "100000\n");
        write_at("/cpu/cpu.cfs_period_us", "100000\n");
        if (thrum_workers_default() != 1 || thrum_init(nullptr) != 0 || thrum_workers() != 1)
            return 1;
        if (thrum_fini() != 0)
            return 2;
        const thrum_config config{2, 0, {}, {}}; // what the program says is stronger
        if (thrum_init(&config) != 0 || thrum_workers() != 2)
            return 3;
        return thrum_fini();
    });
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == kCannot)
        GTEST_SKIP() << "no mount namespace to be had";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
