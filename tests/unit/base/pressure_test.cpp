// SPDX-License-Identifier: Apache-2.0
//
// Reading the kernel's pressure stall information (src/os/pressure.h), from files of the test's own.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include "core.hpp"

extern "C" {
#include "os/pressure.h"
bool __real_pressure_rose(uint64_t now_ns); // retain_test.cpp has the name
}

namespace {

TEST(Pressure, TheTotalIsThatOfTheLineSome) {
    EXPECT_EQ(pressure_total_us("some avg10=0.31 avg60=1.00 avg300=0.00 total=123456\n"
                                "full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"),
              123456u);
    EXPECT_EQ(pressure_total_us("full avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"), 0u);
    EXPECT_EQ(pressure_total_us("some avg10=0.31"), 0u);
    EXPECT_EQ(pressure_total_us(""), 0u);
}

TEST(Pressure, TheGroupIsThatOfTheSecondVersion) {
    char file[64];
    ASSERT_TRUE(pressure_group_file("4:memory:/one\n0::/two/three\n", file, sizeof file));
    EXPECT_STREQ(file, "/sys/fs/cgroup/two/three/memory.pressure");
    ASSERT_TRUE(pressure_group_file("0::/two\n", file, sizeof file));
    EXPECT_STREQ(file, "/sys/fs/cgroup/two/memory.pressure");
    EXPECT_FALSE(pressure_group_file("4:memory:/one\n10::/two\n", file, sizeof file));
    EXPECT_FALSE(pressure_group_file("0::/\n", file, sizeof file))
        << "the root, which has the system's numbers";
    EXPECT_FALSE(pressure_group_file("", file, sizeof file));
    const std::string longest(sizeof file, 'x');
    EXPECT_FALSE(pressure_group_file(("0::/" + longest + "\n").c_str(), file, sizeof file));
}

// A file of the kernel's form with this total; the process keeps it open.
class File {
  public:
    File() {
        const int fd = mkstemp(path_);
        EXPECT_GE(fd, 0);
        close(fd);
    }
    ~File() { unlink(path_); }
    File(const File &) = delete;
    const char *path() const { return path_; }
    void total(uint64_t us) const {
        FILE *file = fopen(path_, "w");
        ASSERT_NE(file, nullptr);
        fprintf(file, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\n",
                static_cast<unsigned long long>(us));
        fclose(file);
    }

  private:
    char path_[32] = "/tmp/thrum-pressure-XXXXXX";
};

TEST(Pressure, ATenthOfTheTimeSinceTheLastLookIsPressure) {
    const File file;
    constexpr uint64_t kSecond = 1000000000;
    uint64_t now = 5 * kSecond, total = 70000000;
    file.total(total);
    pressure_use_file(file.path());
    pressure_open();
    EXPECT_FALSE(__real_pressure_rose(now)) << "the first look";
    EXPECT_FALSE(__real_pressure_rose(now += kSecond)) << "nobody waited";
    file.total(total += 99000);
    EXPECT_FALSE(__real_pressure_rose(now += kSecond)) << "less than a tenth";
    file.total(total += 100000);
    EXPECT_TRUE(__real_pressure_rose(now += kSecond));
    EXPECT_FALSE(__real_pressure_rose(now += kSecond)) << "it has been told";
    file.total(total += 100000);
    EXPECT_FALSE(__real_pressure_rose(now += 2 * kSecond)) << "of two seconds";
    pressure_fork_child();
    file.total(total += 1000000);
    EXPECT_FALSE(__real_pressure_rose(now += kSecond)) << "a child's first look";
    file.total(total += 1000000);
    EXPECT_TRUE(__real_pressure_rose(now += kSecond));
}

} // namespace
