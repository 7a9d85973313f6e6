// SPDX-License-Identifier: Apache-2.0
//
// The standard streams of the programs that `thrum stat` runs, and its own.
#include <gtest/gtest.h>

#include "place.hpp"

namespace {

// LINE in a shell, for its redirections, with thrum as "$0".
Ended shell(const std::string &line) {
    return spawn({"/bin/sh", "-c", line, place().thrum()});
}

// How often `line` is there, and nothing else.
std::size_t count_lines(const std::string &text, const std::string &line) {
    std::size_t lines = 0;
    while (text.compare(lines * line.size(), line.size(), line) == 0)
        lines++;
    EXPECT_EQ(lines * line.size(), text.size()) << text;
    return lines;
}

// Each run has the rest of the file, although the first one has read that to its end.
TEST(StatStreams, EachRunReadsAFileFromWhereItStood) {
    const std::string input = place().write("input", "first\n" + std::string(5000, 'x'), 0644),
                      program = place().write("count", "#!/bin/sh\necho $(cat | wc -c) bytes\n");
    const Ended sweep = shell("{ read first; exec \"$0\" stat --show-output --sweep 1,2 -n 2 -- " + program +
                              " {}; } < " + input);
    EXPECT_EQ(sweep.code(), 0) << sweep.err;
    EXPECT_GE(count_lines(sweep.out, "5000 bytes\n"), 5U) << "two of each, and one that is looked at";
    const Ended single =
        shell("{ read first; exec \"$0\" stat --show-output -n 2 -- " + program + "; } < " + input);
    EXPECT_EQ(single.code(), 0) << single.err;
    EXPECT_EQ(count_lines(single.out, "5000 bytes\n"), 3U);
}

} // namespace
