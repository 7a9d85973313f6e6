// SPDX-License-Identifier: Apache-2.0
//
// Runs of `thrum stat` that are looked at in ways that fail, or that are left alone meanwhile.
#include <gtest/gtest.h>

#include "documents.hpp"
#include "place.hpp"

namespace {

// What is compared are runs that did the same.
TEST(StatLooks, ASweepInWhichANumberFailsSaysSo) {
    const std::string program = place().write("fails", "#!/bin/sh\n[ \"$1\" = 1 ] || exit 3\n");
    const Ended ended = spawn({CLI_THRUM, "stat", "--sweep", "1,2", "-n", "1", "--", program, "{}"});
    EXPECT_EQ(ended.code(), 3);
    EXPECT_EQ(ended.err.compare(0, 54, "VERDICT  Inconclusive: the program ended differently: "), 0)
        << ended.err;
}

#ifdef CLI_ELFUTILS // which finds what is waited for

// However many threads wait for messages that do not come: those that work wait for a lock, and that is what is told.
TEST(StatLooks, IdleConnectionsHideNoLock) {
    const Ended ended = spawn({CLI_THRUM, "stat", "--json", "--", CLI_LISTENERS, "40"});
    ASSERT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(json_value(ended.out, "d['findings'][0]['rule'] in ('hot-mutex', 'one-lock', 'convoy'), "
                                    "d['findings'][0]['function'], d['locks'][0]['lock']['symbol']"),
              "True update table_lock")
        << json_value(ended.out, "d['findings']");
    EXPECT_EQ(json_value(ended.out, "[f for f in d['findings'] if f['rule'] == 'io-bound']"), "[]");
}

#endif

#ifdef CLI_STAT // which the counting is done with

// With an environment of its own the program has no library that counts, and what was sampled stands.
TEST(StatLooks, WhatCouldNotBeCountedIsNotCalledSo) {
    const auto run = [](const Words &before) {
        Words words = {CLI_THRUM, "stat", "--exact", "--json", "--"};
        words.insert(words.end(), before.begin(), before.end());
        words.insert(words.end(), {CLI_WATCHED, "share", "4", "200"});
        return spawn(words);
    };
    const std::string members = "d['exact'], d['threads_counted'], d['threads_created'] >= 4";
    const Ended seen = run({}), unseen = run({"/usr/bin/env", "-i"});
    ASSERT_EQ(seen.code(), 0) << seen.err;
    ASSERT_EQ(unseen.code(), 0) << unseen.err;
    EXPECT_EQ(json_value(seen.out, members), "True True True");
    EXPECT_EQ(json_value(unseen.out, members), "False False True");
    EXPECT_EQ(json_value(unseen.out, "[s for s in d['how_known'] if s.startswith('Waits were counted')]"),
              "[]");
}

#endif

} // namespace
