// SPDX-License-Identifier: Apache-2.0
//
// base/text: one line, cut where it is too long, written whole.
#include <fcntl.h>

#include "layer.hpp"

namespace {

std::string finished(text &line) {
    testing::internal::CaptureStderr();
    text_finish(&line);
    return testing::internal::GetCapturedStderr();
}

std::string number(uint64_t value) {
    text line{};
    text_add_number(&line, value);
    return std::string(line.bytes, line.length);
}

TEST(Text, Numbers) {
    EXPECT_EQ(number(0), "0");
    EXPECT_EQ(number(9), "9");
    EXPECT_EQ(number(10), "10");
    EXPECT_EQ(number(1234567890), "1234567890");
    EXPECT_EQ(number(UINT64_MAX), "18446744073709551615");
}

TEST(Text, LineOfPieces) {
    text line;
    text_start(&line);
    text_add(&line, "created ");
    text_add_number(&line, 12);
    text_add(&line, "");
    EXPECT_EQ(finished(line), "thrum: created 12\n");
}

TEST(Text, NullPiecesAreLeftOut) {
    testing::internal::CaptureStderr();
    text_line("a", nullptr, "c");
    text_line(nullptr, "b", nullptr);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "thrum: ac\nthrum: b\n");
}

TEST(Text, LongLineIsCutAndStillOneLine) {
    for (size_t length : {503u, 504u, 505u, 5000u}) {
        text line;
        text_start(&line);
        text_add(&line, std::string(length, 'x').c_str());
        text_add_number(&line, 7);
        std::string expected =
            ("thrum: " + std::string(length, 'x') + "7").substr(0, sizeof line.bytes - 1) + "\n";
        EXPECT_EQ(finished(line), expected) << length;
    }
}

// Of a program's or a thread's name, or of a variable's value.
TEST(Text, NoControlCharacterReachesTheTerminal) {
    testing::internal::CaptureStderr();
    text_line("a\x1b[31m\n\tb\x7f", "\xc2\x9b\xff", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xc3");
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "thrum: a?[31m??b????gr\xc3\xbc\xc3\x9f \xe2\x82\xac ?\n");
}

TEST(Text, WrittenByOneCall) {
    text line;
    text_start(&line);
    text_add(&line, "whole");
    faults.write = {1000, -EIO}; // a second call would fail, and stay in the list if it is not made
    EXPECT_EQ(finished(line), "thrum: whole\n");
    EXPECT_EQ(faults.write.size(), 1u);
    faults_clear();
}

TEST(Text, ContinuesAfterInterruptionsAndShortWrites) {
    text line;
    text_start(&line);
    text_add(&line, "in pieces");
    faults.write = {-EINTR, 3, -EINTR, 1};
    errno = ENOENT;
    EXPECT_EQ(finished(line), "thrum: in pieces\n");
    EXPECT_TRUE(faults.write.empty());
}

TEST(Text, GivesUpWithoutAReaderAndKeepsErrno) {
    for (int answer : {-EBADF, 0}) {
        text line;
        text_start(&line);
        faults.write = {answer};
        testing::internal::CaptureStderr();
        errno = ENOENT;
        text_finish(&line);
        int after = errno;
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
        EXPECT_EQ(after, ENOENT);
    }
}

// In a process of its own: it is for good.
TEST(Text, KeptStderrOutlivesTheProgramsOwn) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(in_child([&] {
                  dup2(ends[1], STDERR_FILENO);
                  errno = ENOENT;
                  text_keep_stderr();
                  if (errno != ENOENT)
                      return 1;
                  close(STDERR_FILENO);
                  if (open("/dev/null", O_WRONLY) != STDERR_FILENO) // a file of the program's in its place
                      return 2;
                  text_line("still heard", nullptr, nullptr);
                  return 0;
              }),
              0);
    close(ends[1]);
    char bytes[100] = {};
    EXPECT_GT(read(ends[0], bytes, sizeof bytes - 1), 0);
    EXPECT_STREQ(bytes, "thrum: still heard\n");
    close(ends[0]);
}

TEST(Text, KeptStderrWhereFewFilesAreAllowed) {
    EXPECT_EQ(in_child([] {
                  rlimit few{20, 20};
                  setrlimit(RLIMIT_NOFILE, &few);
                  text_keep_stderr();
                  // Where it went: as high as the limit lets it.
                  return fcntl(15, F_GETFD) == FD_CLOEXEC ? 0 : 1;
              }),
              0);
}

} // namespace
