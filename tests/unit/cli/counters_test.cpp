// SPDX-License-Identifier: Apache-2.0
//
// `thrum counters`: what it prints of a running process, and each reason why it cannot.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "place.hpp"
#include "thrum/cache.h"

namespace {

const std::string kProbe = CLI_PROBE;

Ended counters(pid_t pid, Words options = {}, const World &world = {}) {
    Words words{place().thrum(), "counters"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(std::to_string(pid));
    return spawn(words, world);
}

std::string stand_in_table(pid_t pid) {
    return "process " + std::to_string(pid) +
           " (cli-probe)\n"
           "created                     12\n"
           "reused                     388\n"
           "retired                      3   cancelled 2, robust mutex held 1\n"
           "passed through               2   user stack 2\n"
           "culled                       4\n"
           "live            18446744073709551615\n"
           "idle                         9\n"
           "idle, peak                  10\n";
}

TEST(Counters, Table) {
    Running running({place().thrum(), "run", kProbe, "hold"});
    const Ended ended = counters(running.pid());
    EXPECT_EQ(ended.out, stand_in_table(running.pid()));
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(running.finish(), 0) << "the process is none the worse";
}

TEST(Counters, ToAFile) {
    Running running({place().thrum(), "run", kProbe, "hold"});
    const std::string file = place().write("counters", std::string(10000, 'x'), 0644);
    const Ended ended = counters(running.pid(), {"-o", file});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(read_file(file), stand_in_table(running.pid()));
    EXPECT_EQ(counters(running.pid(), {"-o", "-"}).out, stand_in_table(running.pid()));
    EXPECT_EQ(counters(running.pid(), {"-o", "/nowhere/counters"}).err,
              "thrum counters: cannot write /nowhere/counters: No such file or directory\n");
    EXPECT_EQ(counters(1 << 30, {"-o", place().path("none")}).code(), 1);
    EXPECT_FALSE(std::filesystem::exists(place().path("none"))) << "nothing was to be written";
}

TEST(Counters, Json) {
    Running running({place().thrum(), "run", kProbe, "hold"});
    const std::string json = counters(running.pid(), {"--json"}).out;
    EXPECT_EQ(
        json.find(
            "{\"pid\": " + std::to_string(running.pid()) +
            ", \"program\": \"cli-probe\", \"created\": 12, \"reused\": 388, \"retired\": 3, \"passed\": 2, "
            "\"culled\": 4, \"live\": 18446744073709551615, \"idle\": 9, \"idle_peak\": 10, "
            "\"retired_by\": {\"cancelled\": 2, "),
        0u)
        << json;
#define EXPECT_REASON(name, text) EXPECT_NE(json.find("\"" text "\": "), std::string::npos);
    THRUM_CACHE_RETIRE_REASONS(EXPECT_REASON)
    THRUM_CACHE_PASS_REASONS(EXPECT_REASON)
#undef EXPECT_REASON
    EXPECT_NE(json.find("\"passed_by\": {\"user stack\": 2, "), std::string::npos) << json;
    EXPECT_EQ(json.substr(json.size() - 3), "}}\n");
}

TEST(Counters, JsonQuotesTheProgramsName) {
    const std::string odd = place().copy(kProbe, "a\"b\\c\nd");
    Running running({place().thrum(), "run", odd, "hold"});
    EXPECT_NE(counters(running.pid(), {"--json"}).out.find("\"program\": \"a\\\"b\\\\c"), std::string::npos);
}

TEST(Counters, ALibraryThatWasReplacedSince) {
    const Place mine(CLI_STANDIN);
    Running running({mine.thrum(), "run", kProbe, "hold"});
    std::filesystem::remove(mine.library());
    EXPECT_EQ(counters(running.pid()).out, stand_in_table(running.pid())) << "deleted";
    mine.write("lib/libthrum-cache.so", "another file\n");
    EXPECT_EQ(counters(running.pid()).out, stand_in_table(running.pid())) << "replaced";
}

void expect_failed(const Ended &ended, const std::string &line) {
    EXPECT_EQ(ended.err, "thrum counters: " + line + "\n");
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.code(), 1);
}

TEST(Counters, NoSuchProcess) {
    const Ended gone = spawn({kProbe, "exit", "0"});
    expect_failed(counters(gone.pid), "there is no process " + std::to_string(gone.pid));
    expect_failed(counters(2147483647), "there is no process 2147483647");
}

// Where /proc is not mounted, that is what is said, and not that there is no such process.
TEST(Counters, WithoutProc) {
    Words inside = {"/usr/bin/unshare", "-m"};
    if (getuid() != 0) // to be root there
        inside.insert(inside.end(), {"-U", "-r"});
    inside.insert(inside.end(), {"/bin/sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"});
    const auto within = [&inside](const Words &words) {
        Words all = inside;
        all.insert(all.end(), words.begin(), words.end());
        return spawn(all);
    };
    if (within({"/bin/true"}).code() != 0)
        GTEST_SKIP() << "no mounts of one's own here";
    const std::string thrum = place().thrum(), why = "/proc is not mounted here, or not readable\n";
    expect_failed(within({thrum, "counters", "1"}),
                  "cannot look at process 1: " + why.substr(0, why.size() - 1));
    EXPECT_EQ(within({thrum, "ps", "1"}).err, "thrum ps: cannot look at process 1: " + why);
    EXPECT_EQ(within({thrum, "stat", "-p", "1"}).err, "thrum stat: cannot look at process 1: " + why);
    const Ended run = within({thrum, "run", "--", "true"});
    EXPECT_EQ(run.err,
              "thrum run: cannot find thrum's own path by /proc/self/exe: /proc is not mounted here\n");
    EXPECT_EQ(run.code(), 125);
}

TEST(Counters, NotUnderThrum) {
    Running running({kProbe, "hold"});
    expect_failed(counters(running.pid()),
                  "process " + std::to_string(running.pid()) + " does not run under thrum");
}

TEST(Counters, AZombie) {
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    expect_failed(counters(pid), "process " + std::to_string(pid) + " does not run under thrum");
    waitpid(pid, nullptr, 0);
}

TEST(Counters, NoPermission) {
    if (getuid() != 0)
        GTEST_SKIP() << "only root can become another user to try it";
    Running running({place().thrum(), "run", kProbe, "hold"});
    World world;
    world.user = 54321;
    const Ended ended = counters(running.pid(), {}, world);
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(ended.err.find("thrum counters: no permission to read process " +
                             std::to_string(running.pid()) + "; "),
              0u)
        << ended.err;
    EXPECT_NE(ended.err.find("as root"), std::string::npos) << ended.err;
}

TEST(Counters, AnotherLibraryOfThatName) {
    const Place mine(CLI_LIBASAN);
    Running running({mine.thrum(), "run", kProbe, "hold"});
    expect_failed(counters(running.pid()),
                  "the libthrum-cache.so in process " + std::to_string(running.pid()) +
                      " has no thrum_cache_counters; it does not match this thrum command");
}

TEST(Counters, CountersOfAnotherVersion) {
    std::string library = read_file(CLI_STANDIN);
    const std::uint32_t head[] = {THRUM_CACHE_COUNTERS_VERSION, sizeof(struct thrum_cache_counters)};
    const std::string start(reinterpret_cast<const char *>(head), sizeof head);
    const std::size_t at = library.find(start + std::string("\x0c\0\0\0", 4)); // created = 12
    ASSERT_NE(at, std::string::npos);
    library[at] = 77;
    const Place mine("");
    mine.write("lib/libthrum-cache.so", library, 0644);
    Running running({mine.thrum(), "run", kProbe, "hold"});
    expect_failed(counters(running.pid()), "process " + std::to_string(running.pid()) +
                                               " has counters of version 77, but this thrum reads version " +
                                               std::to_string(THRUM_CACHE_COUNTERS_VERSION));
}

#ifdef CLI_CACHE
// The value behind a name in the table.
unsigned long long row(const std::string &table, const std::string &name) {
    const std::size_t at = table.find("\n" + name + " ");
    return at == std::string::npos ? ~0ull : std::stoull(table.substr(at + 1 + name.size()));
}

TEST(Counters, OfTheRealCache) {
    const Place real(CLI_CACHE);
    Running running({real.thrum(), "run", kProbe, "hold", "20"});
    const std::string table = counters(running.pid()).out;
    EXPECT_EQ(row(table, "created") + row(table, "reused") + row(table, "passed through"), 20u) << table;
    EXPECT_EQ(running.finish(), 0);
}
#endif

} // namespace
