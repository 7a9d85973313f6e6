// SPDX-License-Identifier: Apache-2.0
//
// cli/tools/text.hpp: nothing that a program may be called with breaks JSON, HTML or a line.
#include "tools/text.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/json.hpp"
#include "tools/table.hpp"

namespace {

const std::string kUnknown = "\xef\xbf\xbd";

std::string json_string(const std::string &text) {
    return thrum::json_line(text);
}

TEST(Text, Json) {
    EXPECT_EQ(json_string(""), "\"\"");
    EXPECT_EQ(json_string("a\"b\\c\n\x01"), "\"a\\\"b\\\\c\\n\\u0001\"");
    EXPECT_EQ(json_string(std::string("\0", 1)), "\"\\u0000\"");
    EXPECT_EQ(json_string("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82"),
              "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82\"");
}

// On one line in the order of the members, whatever stands in a text; numbers with no more digits than were asked for.
TEST(Text, JsonLine) {
    const thrum::Json json = {{"z", thrum::json_number(0.5, 6)},
                              {"a", {1, nullptr, "a,\n\"{"}},
                              {"none", thrum::Json::array()},
                              {"rounded", thrum::json_number(1.23456789, 3)},
                              {"whole", thrum::json_number(12345678901.0, 0)},
                              {"digits", thrum::json_number(2.0 / 3)},
                              {"count", thrum::json_number(7.0)},
                              {"nan", thrum::json_number(NAN, 3)},
                              {"inf", thrum::json_number(INFINITY)},
                              {"absent", thrum::json_text("")},
                              {"address", thrum::json_address(0x7f1234)}};
    EXPECT_EQ(thrum::json_line(json),
              R"({"z": 0.5, "a": [1, null, "a,\n\"{"], "none": [], "rounded": 1.235, "whole": 12345678901, )"
              R"("digits": 0.666666667, "count": 7, "nan": null, "inf": null, "absent": null, )"
              R"("address": "0x7f1234"})");
}

// A character takes one column, whatever its length in UTF-8.
TEST(Text, Columns) {
    EXPECT_EQ(thrum::width_of("\xc2\xb5s"), 2U);
    EXPECT_EQ(thrum::to_left("\xc2\xb5s", 4), "\xc2\xb5s  ");
    EXPECT_EQ(thrum::to_left("long", 4), "long ") << "never against the next";
    EXPECT_EQ(thrum::to_right("\xc2\xb5s", 4), "  \xc2\xb5s");
    EXPECT_EQ(thrum::in_columns({{"name", "n"}, {"", "\xc2\xb5s"}, {"a", "12.5"}}), "name     n\n"
                                                                                    "        \xc2\xb5s\n"
                                                                                    "a     12.5\n");
}

TEST(Text, WhatIsNotUtf8IsReplaced) {
    for (const char *bad : {"\xff", "\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xf0\x9f"}) {
        const std::string json = json_string(bad), html = thrum::html_text(bad);
        EXPECT_EQ(json.substr(0, 4), "\"" + kUnknown);
        EXPECT_EQ(html.substr(0, 3), kUnknown);
        EXPECT_EQ(html.find(bad), std::string::npos);
    }
    EXPECT_EQ(json_string("\xe4 a"), "\"" + kUnknown + " a\"") << "what follows is kept";
}

// Also with eight bits, and in UTF-8: "\x9b" is ESC [ to some terminals.
TEST(Text, NothingIsACommandToATerminal) {
    EXPECT_EQ(thrum::terminal_text("\x1b[31m\n\x7f\x9b\xc2\x9b\xff"), "?[31m?????");
    EXPECT_EQ(thrum::terminal_text("\xc3\xa4 \xe2\x82\xac \xc2\xa0 \xf0\x9f\x99\x82"),
              "\xc3\xa4 \xe2\x82\xac \xc2\xa0 \xf0\x9f\x99\x82");
    EXPECT_EQ(thrum::terminal_text("\xe2\x82"), "??");
}

TEST(Text, Html) {
    EXPECT_EQ(thrum::html_text("<script>alert('x')&\"\x01"),
              "&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;" + kUnknown);
}

TEST(Text, ShellLine) {
    EXPECT_EQ(thrum::shell_line({"prog", "--a=b", "", "a b", "it's", "$x"}),
              "prog --a=b '' 'a b' 'it'\\''s' '$x'");
    EXPECT_EQ(thrum::shell_line({"a\nb'\\"}), "$'a\\012b\\'\\\\'");
}

TEST(Text, Numbers) {
    EXPECT_EQ(thrum::three_digits(0.12345), "0.123");
    EXPECT_EQ(thrum::three_digits(0.9996), "1.00");
    EXPECT_EQ(thrum::three_digits(9.994), "9.99");
    EXPECT_EQ(thrum::three_digits(9.996), "10.0");
    EXPECT_EQ(thrum::three_digits(99.96), "100");
    EXPECT_EQ(thrum::three_digits(12345.6), "12346");
    EXPECT_EQ(thrum::duration(0.00012345), "123 us");
    EXPECT_EQ(thrum::duration(0.0123), "12.3 ms");
    EXPECT_EQ(thrum::duration(0.9996), "1.00 s");
    EXPECT_EQ(thrum::duration(754), "754 s");
    EXPECT_EQ(thrum::counted(0, "thread"), "0 threads");
    EXPECT_EQ(thrum::counted(1, "thread"), "1 thread");
}

// A unit in the next line, or at the next place where a page may break, is read as a word of its own.
TEST(Text, NumbersKeepTheirUnits) {
    EXPECT_EQ(thrum::html_words("all of 100 % in 2.5 ms, a < b"),
              "all of 100\xc2\xa0% in 2.5\xc2\xa0ms, a &lt; b");
    EXPECT_EQ(thrum::html_words("2 statues, 100 x"), "2 statues, 100 x");
    for (std::size_t before = 60; before < 80; before++) {
        const std::string text = thrum::wrapped(std::string(before, 'x') + " of 100 % and 2.5 ms, 7 s", "  ");
        EXPECT_EQ(text.find("\n  %"), std::string::npos) << text;
        EXPECT_EQ(text.find("\n  ms"), std::string::npos) << text;
        EXPECT_EQ(text.find("\n  s\n"), std::string::npos) << text;
    }
}

TEST(Text, OptionsKeepTheirNumbers) {
    EXPECT_EQ(thrum::html_words("more runs (-n 32) may tell, --runs 9 or -2 3, 4 -n x"),
              "more runs (<span class=\"option\">-n</span>\xc2\xa0"
              "32) may tell, <span class=\"option\">--runs</span>\xc2\xa0"
              "9 or -2 3, 4 <span class=\"option\">-n</span> x")
        << "and a line does not break behind a dash of theirs";
    EXPECT_EQ(thrum::html_words("--no-follow, a - b, well-known --"),
              "<span class=\"option\">--no-follow</span>, a - b, well-known --");
    for (std::size_t before = 60; before < 80; before++) {
        const std::string text =
            thrum::wrapped(std::string(before, 'x') + " more runs (-n 32) may tell", "  ");
        EXPECT_EQ(text.find("\n  32"), std::string::npos) << text;
    }
}

TEST(Text, WordsWrapWithinTheColumns) {
    EXPECT_EQ(thrum::report_columns(), 80U);
    thrum::fit_reports_to(-1);
    EXPECT_EQ(thrum::report_columns(), 80U) << "what is no terminal has 80 columns";
    const std::string words =
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
    EXPECT_EQ(thrum::wrapped(words, "    "),
              "one two three four five six seven eight nine ten eleven twelve thirteen\n"
              "    fourteen fifteen\n");
    EXPECT_EQ(thrum::message_for(-1, words), words + "\n") << "a line that a program reads";
    EXPECT_EQ(thrum::row_for(-1, words, 8), words + "\n");
    const std::string one_word(100, 'x');
    EXPECT_EQ(thrum::wrapped(one_word, "  "), one_word + "\n") << "no word is cut";
}

} // namespace
