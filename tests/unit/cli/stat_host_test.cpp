// SPDX-License-Identifier: Apache-2.0
//
// What the machine, and the control group, tell of themselves (cli/stat/host.hpp).
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "process.hpp"
#include "stat/host.hpp"
#include "stat/rules.hpp"
#include "stat_case.hpp"

namespace {

// A folder with what the kernel's folders would have in them.
class Host {
  public:
    Host() {
        char name[] = "/tmp/thrum-host-XXXXXX";
        EXPECT_NE(mkdtemp(name), nullptr);
        root_ = name;
    }
    ~Host() { std::filesystem::remove_all(root_); }
    Host &file(const std::string &path, const std::string &text) {
        std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
        std::ofstream(root_ + path) << text << '\n';
        return *this;
    }
    double quota() const { return thrum::stat::cpu_quota(root_).value_or(0); } // 0: none
    const std::string &root() const { return root_; }

  private:
    std::string root_;
};

TEST(StatRules, AQuotaOfTheControlGroup) {
    Host one;
    EXPECT_EQ(one.quota(), 0) << "no control groups";
    one.file("/proc/self/cgroup", "0::/user/session");
    EXPECT_EQ(one.quota(), 0);
    one.file("/sys/fs/cgroup/user/session/cpu.max", "max 100000");
    EXPECT_EQ(one.quota(), 0);
    one.file("/sys/fs/cgroup/user/cpu.max", "250000 100000");
    EXPECT_DOUBLE_EQ(one.quota(), 2.5) << "of a group around it";
    one.file("/sys/fs/cgroup/user/session/cpu.max", "150000 100000");
    EXPECT_DOUBLE_EQ(one.quota(), 1.5) << "the narrowest";
    one.file("/sys/fs/cgroup/user/session/cpu.max", "400000 100000");
    EXPECT_DOUBLE_EQ(one.quota(), 2.5);

    Host container; // its folder stands for its own group, whose name is the host's
    container.file("/proc/self/cgroup", "0::/").file("/sys/fs/cgroup/cpu.max", "50000 100000");
    EXPECT_DOUBLE_EQ(container.quota(), 0.5);
}

TEST(StatRules, TimeThatTheControlGroupTookAway) {
    Host one;
    EXPECT_EQ(thrum::stat::cpu_throttled(one.root()), 0);
    one.file("/proc/self/cgroup", "0::/user/session")
        .file("/sys/fs/cgroup/user/session/cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 0");
    EXPECT_EQ(thrum::stat::cpu_throttled(one.root()), 0);
    one.file("/sys/fs/cgroup/user/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 1500000");
    EXPECT_DOUBLE_EQ(thrum::stat::cpu_throttled(one.root()), 1.5) << "of a group around it";

    Host first;
    first.file("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc")
        .file("/sys/fs/cgroup/cpu/docker/abc/cpu.stat",
              "nr_periods 9\nnr_throttled 3\nthrottled_time 250000000");
    EXPECT_DOUBLE_EQ(thrum::stat::cpu_throttled(first.root()), 0.25);
}

TEST(StatRules, AQuotaOfTheControlGroupsFirstVersion) {
    Host one;
    one.file("/proc/self/cgroup",
             "5:cpuset:/elsewhere\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc");
    const std::string folder = "/sys/fs/cgroup/cpu/docker/abc/";
    one.file("/sys/fs/cgroup/cpu/elsewhere/cpu.cfs_quota_us", "1000")
        .file("/sys/fs/cgroup/cpu/elsewhere/cpu.cfs_period_us", "100000");
    one.file(folder + "cpu.cfs_quota_us", "-1").file(folder + "cpu.cfs_period_us", "100000");
    EXPECT_EQ(one.quota(), 0);
    one.file(folder + "cpu.cfs_quota_us", "300000");
    EXPECT_DOUBLE_EQ(one.quota(), 3);
    one.file(folder + "cpu.cfs_period_us", "0");
    EXPECT_EQ(one.quota(), 0) << "nonsense";

    Host container; // which does not see the folder that its group is named after
    container.file("/proc/self/cgroup", "4:cpu,cpuacct:/docker/abc")
        .file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000")
        .file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    EXPECT_DOUBLE_EQ(container.quota(), 2);
}

TEST(StatRules, CoresBehindTheCpus) {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    Host pairs, single, silent;
    std::set<unsigned> cores;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        const std::string file =
            "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list";
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        cores.insert(cpu / 2);
        pairs.file(file, std::to_string(cpu / 2 * 2) + "-" + std::to_string(cpu / 2 * 2 + 1));
        single.file(file, std::to_string(cpu));
    }
    EXPECT_EQ(thrum::stat::physical_cores(pairs.root()), cores.size());
    EXPECT_EQ(thrum::stat::physical_cores(single.root()), static_cast<unsigned>(CPU_COUNT(&allowed)));
    EXPECT_EQ(thrum::stat::physical_cores(silent.root()), 0U);
}

TEST(StatRules, WhatWouldHelpToReadAProcess) {
    const auto said = [](int scope, bool is_root) { return thrum::process::what_would_help(scope, is_root); };
    EXPECT_EQ(said(0, false), "; try as its user or as root");
    for (const int scope : {1, 2})
        EXPECT_EQ(said(scope, false), "; kernel.yama.ptrace_scope is " + std::to_string(scope) +
                                          ": try as root, or with that set to 0 as its user");
    for (const int scope : {0, 1, 2})
        EXPECT_NE(said(scope, true).find("root needs CAP_SYS_PTRACE"), std::string::npos) << scope;
    for (const bool is_root : {false, true})
        EXPECT_EQ(said(3, is_root),
                  "; kernel.yama.ptrace_scope is 3, which forbids it to all users until the next boot");
}

} // namespace
