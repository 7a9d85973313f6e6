// SPDX-License-Identifier: Apache-2.0
//
// The command where its surroundings are wrong: streams that are closed or full, limits, devices and pipes in the place of
// files, no /proc, no environment. Each mistake ends soon, with one line that says what is wrong. Wrong words of the
// command line are usage_test.cpp's and stat_usage_test.cpp's.
#include <gtest/gtest.h>
#include <signal.h>

#include "place.hpp"

namespace {

// LINE in a shell, with thrum as "$0" and a folder as "$1".
Ended shell(const std::string &line, const World &world = {}) {
    return spawn({"/bin/sh", "-c", line, place().thrum(), place().path(".")}, world);
}

void expect_line(const std::string &line, int code, const std::string &text) {
    const Ended ended = shell(line);
    EXPECT_EQ(ended.code(), code) << line << "\n" << ended.err;
    EXPECT_EQ(ended.err, text + "\n") << line;
}

TEST(CommandMisuse, StreamsThatAreFullOrClosed) {
    const std::string full = "cannot write to standard output", compare = "\"$0\" compare -n 1 --warmup 0 ";
    expect_line("\"$0\" --version >/dev/full", 1, "thrum: " + full);
    expect_line(compare + "--json -- true >/dev/full", 1, "thrum: " + full);
    expect_line(compare + "--json -- true >&-", 1, "thrum: " + full);
    expect_line("\"$0\" stat --no-profile --json -- true >/dev/full", 1, "thrum stat: " + full);
    expect_line("\"$0\" trace -o - -- true >&-", 1,
                "thrum trace: cannot write standard output: Bad file descriptor");
    expect_line("\"$0\" stat -o - -- true >&-", 1,
                "thrum stat: cannot write standard output: Bad file descriptor");
    expect_line(compare + "-o - -- true >&-", 1,
                "thrum compare: cannot write standard output: Bad file descriptor");
    for (const std::string option : {"--html", "--export-csv", "--export-markdown", "-o"})
        expect_line(compare + option + " /dev/full -- true >/dev/null", 1,
                    "thrum compare: cannot write /dev/full: No space left on device");
    EXPECT_EQ(shell("\"$0\" stat --no-profile -- true 2>/dev/full").code(), 1);
}

// What the test itself has inherited is closed.
const std::string kOnlyStandard = "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ";

TEST(CommandMisuse, LimitsOfFilesAndDescriptors) {
    expect_line("ulimit -f 0; exec \"$0\" stat --no-profile -o \"$1/report\" -- true", 1,
                "thrum stat: cannot write " + place().path(".") + "/report: File too large");
    expect_line("ulimit -f 0; exec \"$0\" compare -n 1 --warmup 0 -- true", 1,
                "thrum compare: no memory for counters: File too large");
    EXPECT_EQ(shell("ulimit -f 0; exec \"$0\" run -- /bin/sh -c 'kill -XFSZ $$'").signal(), SIGXFSZ)
        << "a program has the signals as they were";
    expect_line(kOnlyStandard + "ulimit -n 4; exec \"$0\" stat --no-profile -- true", 1,
                "thrum stat: cannot create a pipe: Too many open files");
    expect_line(kOnlyStandard + "ulimit -n 5; exec \"$0\" compare -n 1 -- true", 1,
                "thrum compare: cannot open /dev/null: Too many open files");
}

// A device has no end, and a pipe that is opened waits for a writer.
TEST(CommandMisuse, DevicesAndPipesInThePlaceOfFiles) {
    const std::string regular = " is not a regular file; name one that libthrum wrote for THRUM_TRACE";
    expect_line("\"$0\" trace -o x.json --convert /dev/zero", 1, "thrum trace: /dev/zero" + regular);
    const std::string pipe = place().path(".") + "/pipe";
    expect_line("mkfifo \"$1/pipe\"; exec \"$0\" trace -o x.json --convert \"$1/pipe\"", 1,
                "thrum trace: " + pipe + regular);
    expect_line("\"$0\" trace -o x.json --convert \"$1\"", 1,
                "thrum trace: cannot read " + place().path(".") + ": Is a directory");
    expect_line("\"$0\" stat --locks /dev/zero -- true", 1,
                "thrum stat: /dev/zero is a device, not a file that lists locks");
    expect_line("\"$0\" stat --locks \"$1\" -- true", 1,
                "thrum stat: cannot read " + place().path(".") + ": Is a directory");
    EXPECT_FALSE(shell("test -e x.json").code() == 0);
}

TEST(CommandMisuse, AFolderThatIsGone) {
    expect_line("mkdir \"$1/gone\"; cd \"$1/gone\"; rmdir ../gone; exec \"$0\" trace -- true", 1,
                "thrum trace: cannot write trace.json: No such file or directory");
    EXPECT_EQ(shell("mkdir \"$1/gone\"; cd \"$1/gone\"; rmdir ../gone; exec \"$0\" run -- true").code(), 0);
}

TEST(CommandMisuse, NoEnvironment) {
    EXPECT_EQ(shell("exec env -i \"$0\" run -- true").code(), 0);
    EXPECT_EQ(shell("exec env -i \"$0\" stat --no-profile -- true").code(), 0);
    expect_line("PATH=/nonexistent; exec \"$0\" run -- true", 127,
                "thrum run: there is no program 'true' in PATH");
    EXPECT_EQ(shell("COLUMNS=-5 exec \"$0\" ps --help").out, shell("COLUMNS=80 exec \"$0\" ps --help").out);
}

TEST(CommandMisuse, WithoutProc) {
    const std::string without =
        "exec unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$0\" \"$@\"' \"$0\" ";
    if (shell(without + "--version").code() != 0)
        GTEST_SKIP() << "no /proc can be hidden here: unshare(1) is refused";
    expect_line(without + "run -- true", 125,
                "thrum run: cannot find thrum's own path by /proc/self/exe: /proc is not mounted here");
    for (const std::string command : {"stat", "ps", "counters", "trace"})
        expect_line(without + command + (command == "stat" || command == "trace" ? " -p 1" : " 1"), 1,
                    "thrum " + command +
                        ": cannot look at process 1: /proc is not mounted here, or not readable");
    const Ended ended = shell(without + "stat --no-profile -- true");
    EXPECT_EQ(ended.code(), 0);
    EXPECT_NE(ended.err.find("/proc is not mounted here"), std::string::npos) << ended.err;
}

} // namespace
