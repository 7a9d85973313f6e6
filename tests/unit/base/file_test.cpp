// SPDX-License-Identifier: Apache-2.0
//
// Small files of the kernel's, and /proc/.../status of a process in many groups (src/os/file.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" {
#include "os/file.h"
}

namespace {

// A file that holds `text`, as long as it lives.
class File {
  public:
    explicit File(const std::string &text) {
        const int fd = mkstemp(path_);
        EXPECT_GE(fd, 0);
        EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        close(fd);
    }
    ~File() { unlink(path_); }
    File(const File &) = delete;
    const char *path() const { return path_; }

  private:
    char path_[32] = "/tmp/thrum-file-XXXXXX";
};

std::string groups(unsigned count) {
    std::string line = "Groups:\t";
    for (unsigned i = 0; i < count; i++)
        line += std::to_string(1000000 + i) + " ";
    return line + "\n";
}

const std::string before = "Name:\tGroups:\nState:\tR (running)\n",
                  after = "SigBlk:\t00000000000000a5\nSeccomp:\t2\n";

} // namespace

TEST(FileTest, StatusIsReadWithoutItsGroups) {
    char text[256];
    for (const unsigned count : {0U, 1U, 10U, 255U, 256U, 257U, 5000U}) {
        const File file(before + groups(count) + after);
        const std::string expected = before + "Groups:\n" + after;
        EXPECT_EQ(file_read_status(file.path(), text, sizeof text), static_cast<long>(expected.size()));
        EXPECT_EQ(text, expected) << count << " groups";
    }
}

// What does not fit is left out.
TEST(FileTest, StatusFitsWhereItIsReadTo) {
    char text[32];
    const File file(before + groups(500) + after);
    EXPECT_EQ(file_read_status(file.path(), text, sizeof text), 31);
    EXPECT_EQ(text, before.substr(0, 31));
}

TEST(FileTest, SaysWhyAFileCannotBeRead) {
    char text[32] = "before";
    EXPECT_EQ(file_read_status("/proc/self/no-such-file", text, sizeof text), -ENOENT);
    EXPECT_STREQ(text, "");
    EXPECT_EQ(file_read_status("/proc/self", text, sizeof text), -EISDIR);
    EXPECT_STREQ(text, "");
}

// The process itself.
TEST(FileTest, StatusTellsOfSignals) {
    char text[4096];
    EXPECT_GT(file_read_status("/proc/self/status", text, sizeof text), 0);
    const char *line = strstr(text, "\nSigBlk:\t");
    ASSERT_NE(line, nullptr);
    EXPECT_EQ(file_hexadecimal(line + strlen("\nSigBlk:\t")), 0U);
}
