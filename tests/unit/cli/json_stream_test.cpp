// SPDX-License-Identifier: Apache-2.0
//
// What JsonStream writes is JSON, and the same as nlohmann's library writes of the same values.
#include "tools/json_stream.hpp"

#include <gtest/gtest.h>

#include "tools/json.hpp"

namespace {

using thrum::Json;

TEST(JsonStream, MembersOfObjectsAsTheLibraryWritesThem) {
    thrum::JsonStream stream;
    stream.open();
    stream.text("name", "worker 1");
    stream.number("largest", ~0ULL);
    stream.open("empty");
    stream.close();
    stream.open("args");
    stream.flag("begins", true);
    stream.number("zero", 0);
    stream.close();
    stream.flag("last", false);
    stream.close();
    const Json expected = {{"name", "worker 1"},
                           {"largest", ~0ULL},
                           {"empty", Json::object()},
                           {"args", {{"begins", true}, {"zero", 0}}},
                           {"last", false}};
    EXPECT_EQ(stream.written(), thrum::json_compact(expected));
}

TEST(JsonStream, TextsWithWhatNeedsEscapes) {
    for (const std::string text :
         {"", "\"quoted\" \\", "line\nbreak\t\x01", "\xc3\xa4", "not UTF-8: \xff", "\x7f"}) {
        thrum::JsonStream stream;
        stream.open();
        stream.text("text", text);
        stream.close();
        EXPECT_EQ(stream.written(), thrum::json_compact({{"text", text}}));
    }
}

TEST(JsonStream, MicrosecondsHaveThreeDecimalsAtMost) {
    for (const std::uint64_t ns : {0ULL, 1ULL, 10ULL, 120ULL, 999ULL, 1000ULL, 12345ULL, 86400123456789ULL}) {
        thrum::JsonStream stream;
        stream.open();
        stream.microseconds("ts", ns);
        stream.close();
        EXPECT_EQ(stream.written(), thrum::json_compact({{"ts", static_cast<double>(ns) / 1000}})) << ns;
    }
}

TEST(JsonStream, IsUsedAgainWhenCleared) {
    thrum::JsonStream stream;
    stream.open();
    stream.number("a", 1);
    stream.close();
    stream.clear();
    stream.open();
    stream.number("b", 2);
    stream.close();
    EXPECT_EQ(stream.written(), "{\"b\":2}");
}

} // namespace
