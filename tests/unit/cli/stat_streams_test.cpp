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

// Nothing that the tool opens is in their place: not in the program, for which they stay closed in its first run, and not for
// what the tool itself writes there.
TEST(StatStreams, ClosedOnesAreTakenByNothingElse) {
    const std::string page = place().path("closed.html"),
                      look = place().write("look", "#!/bin/sh\nreadlink /proc/self/fd/0 || echo none\n");
    const Ended without_input =
        shell("\"$0\" stat --html " + page + " --no-profile --show-output -n 1 -- " + look + " <&-");
    EXPECT_EQ(without_input.code(), 0) << without_input.err;
    EXPECT_EQ(without_input.out, "none\n/dev/null\n");
    const Ended without_errors = shell("\"$0\" stat --html " + page + " -- /bin/true 2>&-");
    EXPECT_EQ(without_errors.code(), 0);
    const std::string text = read_file(page), end = "</html>\n";
    EXPECT_EQ(text.find("VERDICT "), std::string::npos) << "the report is in the page";
    EXPECT_EQ(text.find(end) + end.size(), text.size());
}

} // namespace
