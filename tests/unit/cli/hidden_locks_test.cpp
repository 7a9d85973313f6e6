// SPDX-License-Identifier: Apache-2.0
//
// The list of functions with hidden locks (cli/stat/hidden_locks.cpp), function by function: where one of them stands in the
// stack of a lock wait below the program's code, it is what the report names, with its advice. The list is read from its
// source, so that none that is added to it is left out here; docs/guide/stat.md has to show no more than there is in it.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "place.hpp"
#include "stat/rules.hpp"

namespace {

using namespace thrum::stat;

struct Entry {
    std::vector<std::string> functions;
    std::string name, fix; // name: of what the function belongs to; empty: its own
    bool is_allocator;
};

std::vector<std::string> words_of(const std::string &text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

// "one " "two" is one two.
std::string joined(const std::string &literals) {
    static const std::regex between(R"("\s*")");
    return std::regex_replace(literals.substr(1, literals.size() - 2), between, "");
}

const std::vector<Entry> &entries() {
    static const auto all = [] {
        const std::string source = read_file(CLI_HIDDEN_LOCKS), head = "kHiddenLocks[] = {\n";
        const std::size_t begin = source.find(head) + head.size();
        const std::string table = source.substr(begin, source.find("\n};", begin) - begin);
        const std::string literals = R"(("[^"]*"(?:\s*"[^"]*")*))";
        const std::regex form(R"(\{)" + literals + R"(,\s*)" + literals + R"(,\s*)" + literals +
                              R"(,\s*(true|false)\})");
        std::vector<Entry> found;
        for (std::sregex_iterator at(table.begin(), table.end(), form), end; at != end; ++at)
            found.push_back(
                {words_of(joined((*at)[1])), joined((*at)[2]), joined((*at)[3]), (*at)[4] == "true"});
        return found;
    }();
    return all;
}

Frame library(const std::string &function) {
    Frame frame;
    frame.function = function;
    frame.module = "libc.so.6";
    return frame;
}

Frame own() {
    Frame frame;
    frame.function = "use";
    frame.file = "prog.c";
    frame.line = 7;
    frame.module = "prog";
    frame.is_user = true;
    return frame;
}

// Four threads that are slower than one, and wait in a function that use() calls.
Report report_of_waits_in(const std::vector<Frame> &stack) {
    Report report;
    report.machine.processors = report.cores = 2;
    report.command = {"./prog", "{}"};
    for (const unsigned threads : {1U, 2U, 4U}) {
        Point point;
        point.threads = threads;
        point.runs = 3;
        point.most_threads = threads + 1;
        const double wall = 0.4 + 0.1 * threads;
        point.wall = {wall, wall * 0.99, wall * 1.01, 0.75, 3};
        point.user = wall + 0.1 * threads;
        point.voluntary = 200 * threads;
        point.load.seconds = 3 * wall;
        point.load.others = 0.01;
        report.points.push_back(point);
    }
    report.doing[static_cast<int>(Doing::kRunning)] = 1.3;
    report.doing[static_cast<int>(Doing::kLockWait)] = 1;
    LockUse use;
    use.lock.kind = LockKind::kLibrary;
    use.lock.text = "libc.so.6 .data (static lock inside libc)";
    use.lock.module = "libc.so.6";
    use.share = 1;
    use.waiters_mean = 1.2;
    use.waiters_most = 3;
    report.locks.push_back(use);
    Site site;
    site.stack = stack;
    site.doing = Doing::kLockWait;
    site.samples = 100;
    site.share = site.seconds = 1;
    site.lock = 0;
    report.waits.push_back(site);
    conclude(report, "");
    return report;
}

std::string cause_of(const Entry &entry, const std::string &function) {
    if (entry.is_allocator)
        return "Threads contend for the memory allocator (libc) in use()";
    return "Hidden lock in libc: " + (entry.name.empty() ? function + "()" : entry.name);
}

std::string advice_of(const Entry &entry) {
    return entry.is_allocator ? thrum::stat::allocator_fix("libc.so.6") : entry.fix;
}

// As many as there are, so that the form above misses none.
TEST(HiddenLocks, TheListIsReadAsItStands) {
    const std::string source = read_file(CLI_HIDDEN_LOCKS);
    const std::regex beginning(R"(\n    \{")");
    const auto lines =
        std::distance(std::sregex_iterator(source.begin(), source.end(), beginning), std::sregex_iterator());
    EXPECT_GT(lines, 20);
    EXPECT_EQ(entries().size(), static_cast<std::size_t>(lines));
    for (const Entry &entry : entries()) {
        EXPECT_FALSE(entry.functions.empty());
        EXPECT_EQ(entry.fix.empty(), entry.is_allocator) << entry.functions.front();
    }
}

TEST(HiddenLocks, EachIsNamedWithItsAdvice) {
    for (const Entry &entry : entries())
        for (const std::string &function : entry.functions) {
            const Report report =
                report_of_waits_in({library("__lll_lock_wait_private"), library(function), own()});
            ASSERT_EQ(report.findings.size(), 1U) << function;
            const Finding &found = report.findings.front();
            EXPECT_EQ(found.rule, entry.is_allocator ? "allocator" : "hidden-lock") << function;
            EXPECT_EQ(found.cause, cause_of(entry, function));
            EXPECT_EQ(found.fix, advice_of(entry)) << function;
            EXPECT_EQ(found.function, "use") << function;
            EXPECT_EQ(found.line, 7) << function;
            EXPECT_EQ(found.confidence, Confidence::kHigh) << function;
        }
}

// The lock is taken further inside, in functions that no list has.
TEST(HiddenLocks, EachIsNamedAlsoWhereItsLockIsTakenFurtherInside) {
    for (const Entry &entry : entries())
        for (const std::string &function : entry.functions) {
            const Report report = report_of_waits_in({library("__lll_lock_wait_private"), library("take_it"),
                                                      library("work_it_out"), library(function), own()});
            ASSERT_EQ(report.findings.size(), 1U) << function;
            EXPECT_EQ(report.findings.front().cause, cause_of(entry, function));
            EXPECT_EQ(report.findings.front().fix, advice_of(entry)) << function;
        }
}

// As libc's symbols have it, and as a program of that name is left alone.
TEST(HiddenLocks, EachIsKnownByItsOtherNames) {
    for (const Entry &entry : entries())
        for (const std::string &function : entry.functions) {
            for (const char *prefix : {"", "_", "__", "__GI_", "__GI___"}) {
                const HiddenLock *found = find_hidden_lock(library(prefix + function));
                ASSERT_NE(found, nullptr) << prefix << function;
                EXPECT_EQ(found->fix, entry.fix) << prefix << function;
            }
            Frame mine = own();
            mine.function = function;
            EXPECT_EQ(find_hidden_lock(mine), nullptr) << function;
        }
}

TEST(HiddenLocks, NoneIsThereTwice) {
    std::set<std::string> seen;
    for (const Entry &entry : entries())
        for (const std::string &function : entry.functions)
            EXPECT_TRUE(seen.insert(function).second) << function;
}

// What the advice is worth: for each kind a word of it that has to be there.
TEST(HiddenLocks, TheAdviceIsForTheFunction) {
    const std::map<std::string, std::string> words = {
        {"random", "random_r()"},
        {"rand", "rand_r()"},
        {"drand48", "erand48()"},
        {"localtime_r", "offset"},
        {"gmtime", "offset"},
        {"mktime", "offset"},
        {"strftime", "offset"},
        {"tzset", "offset"},
        {"setenv", "environment once"},
        {"printf", "flockfile"},
        {"puts", "its own buffer or stream"},
        {"fread", "large blocks"},
        {"fopen", "Keep streams open"},
        {"dl_iterate_phdr", "_dl_find_object()"},
        {"Unwind_RaiseException", "fewer exceptions"},
        {"dlsym", "keep the addresses"},
        {"strerror", "strerrordesc_np()"},
        {"gettext", "Keep translated"},
        {"syslog", "one thread that logs"},
        {"getaddrinfo", "Cache the answers"},
        {"getpwnam_r", "Cache the answers"},
        {"newlocale", "each locale once"},
        {"readdir", "directory separately"},
        {"atexit", "Register once"},
        {"popen", "ahead of time"},
    };
    for (const auto &[function, word] : words) {
        const HiddenLock *found = find_hidden_lock(library(function));
        ASSERT_NE(found, nullptr) << function;
        EXPECT_NE(std::string(found->fix).find(word), std::string::npos) << function << ": " << found->fix;
    }
    EXPECT_NE(thrum::stat::allocator_fix("libc.so.6").find("jemalloc"), std::string::npos);
    EXPECT_EQ(thrum::stat::allocator_fix("libjemalloc.so.2").find("jemalloc"), std::string::npos);
}

// "| `random`, `rand` | `random_r` |": all that stands on the left.
TEST(HiddenLocks, WhatTheDocumentShowsIsInTheList) {
    const std::string text = read_file(CLI_DOCS "/guide/stat.md");
    const std::size_t begin = text.find("\n## Hidden locks"), end = text.find("\n## ", begin + 1);
    std::istringstream lines(text.substr(begin, end - begin));
    const std::regex name(R"(`(\w+)(\(NULL\))?`)");
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::string left = line.substr(0, line.find(" | "));
        if (line.compare(0, 2, "| ") != 0)
            continue;
        for (std::sregex_iterator at(left.begin(), left.end(), name), last; at != last; ++at, count++)
            EXPECT_NE(find_hidden_lock(library((*at)[1])), nullptr) << (*at)[1];
    }
    EXPECT_GT(count, 40U);
}

} // namespace
