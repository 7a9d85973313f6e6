// SPDX-License-Identifier: Apache-2.0
//
// `thrum trace`: what it shows of a program (check-trace.py looks at the result), and each reason why it cannot.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <regex>
#include <utility>

#include "documents.hpp"
#include "place.hpp"
#include "symbols.hpp"

namespace {

const std::string kProbe = CLI_PROBE;

// Numbers in what was said: "threads 12 tasklets 5".
std::vector<long> numbers_in(const std::string &text) {
    std::vector<long> numbers;
    const std::regex number("[0-9]+");
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at)
        numbers.push_back(std::stol(at->str()));
    return numbers;
}

#ifdef CLI_TRACED

const std::string kTraced = CLI_TRACED;

struct Traced {
    Ended ended;
    std::string out;
};

using Environment = std::map<std::string, std::string>;

Traced trace(const Words &words, unsigned workers, const Words &options = {}, Environment environment = {}) {
    Traced traced{{}, place().path("trace.json")};
    Words all{place().thrum(), "trace", "-o", traced.out};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back("--");
    all.insert(all.end(), words.begin(), words.end());
    environment["THRUM_WORKERS"] = std::to_string(workers);
    traced.ended = spawn(all, with(environment));
    return traced;
}

// As trace.cpp reports it: the last is of how many runs the result consists.
std::string runs_reported(const std::string &err) {
    std::smatch match;
    return std::regex_search(err, match, std::regex("in ([0-9]+) runs")) ? match[1].str() : "none";
}

void expect_sound(const Traced &traced, Words expected) {
    Words words{CLI_PYTHON, CLI_CHECK_TRACE, traced.out};
    words.insert(words.end(), expected.begin(), expected.end());
    const Ended check = spawn(words);
    EXPECT_EQ(check.code(), 0) << check.out << check.err << traced.ended.err;
}

// What the program itself says that it made.
Words as_said(const Traced &traced) {
    const std::vector<long> said = numbers_in(traced.ended.out);
    if (said.size() != 2) {
        ADD_FAILURE() << traced.ended.out << traced.ended.err;
        return {};
    }
    return {"threads=" + std::to_string(said[0]), "tasklets=" + std::to_string(said[1]),
            "runs=" + runs_reported(traced.ended.err)};
}

void expect_all_there(const Traced &traced, const Words &more) {
    Words expected = as_said(traced);
    expected.insert(expected.end(), more.begin(), more.end());
    expect_sound(traced, expected);
}

class Trace : public testing::TestWithParam<unsigned> {};

TEST_P(Trace, ShowsAllThatHappened) {
    const Traced traced = trace({kTraced, "fini"}, GetParam());
    EXPECT_EQ(traced.ended.code(), 0) << traced.ended.err;
    const std::string workers = std::to_string(GetParam());
    expect_all_there(traced, {"processes=1", "workers=" + workers, "parked=1", "orphans=1", "migrated=2",
                              GetParam() > 1 ? "stolen=1" : "stolen=0"});
}

// Each mode has its own way to leave the worker and to come back.
TEST_P(Trace, OfPreemptedThreads) {
    for (const char *mode : {"lend", "own-tls", "klt"}) {
        const Traced traced =
            trace({kTraced, "preempt"}, GetParam(), {}, {{"THRUM_PREEMPT", mode}, {"THRUM_SLICE", "1000"}});
        EXPECT_EQ(traced.ended.code(), 0) << mode << traced.ended.err;
        expect_all_there(traced, {"processes=1", "preempted=10", "orphans=1"});
    }
}

TEST_P(Trace, OfAProgramThatExits) {
    const Traced traced = trace({kTraced, "exit"}, GetParam());
    EXPECT_EQ(traced.ended.code(), 5) << "the program's";
    const long threads = numbers_in(traced.ended.out).at(0);
    expect_all_there(traced, {"ended=" + std::to_string(threads - 2)}); // main and the one that waits
}

TEST_P(Trace, OfAProgramThatNeverCallsInit) {
    const Traced traced = trace({kTraced, "outside"}, GetParam());
    EXPECT_EQ(traced.ended.code(), 0) << traced.ended.err;
    expect_all_there(traced, {});
}

TEST_P(Trace, OfAChildOfFork) {
    const Traced traced = trace({kTraced, "fork"}, GetParam());
    EXPECT_EQ(traced.ended.code(), 0) << traced.ended.err;
    const std::vector<long> said = numbers_in(traced.ended.out);
    expect_sound(traced,
                 {"processes=2", "threads=" + std::to_string(said.at(0) + 2),
                  "ended=" + std::to_string(said.at(0) + 1)}); // main of the parent continues to its end
}

TEST_P(Trace, OfTwoRuntimes) {
    const Traced traced = trace({kTraced, "twice"}, GetParam());
    EXPECT_EQ(traced.ended.code(), 0) << traced.ended.err;
    expect_all_there(traced, {"processes=1"});
}

TEST_P(Trace, KeepsTheNewest) {
    const Traced traced = trace({kTraced, "fini"}, GetParam(), {"--events", "64"});
    EXPECT_EQ(traced.ended.code(), 0) << traced.ended.err;
    expect_sound(traced, {"whole=0"});
    EXPECT_NE(traced.ended.err.find("oldest events had no room (--events)"), std::string::npos)
        << traced.ended.err;
}

INSTANTIATE_TEST_SUITE_P(Workers, Trace, testing::Values(1U, 2U, 4U));

// One that writes nothing itself: what was seen of it by then is written, if it lived long enough for a look.
TEST(TraceCommand, KilledOrLeft) {
    const std::pair<const char *, const char *> ways[] = {{"kill", "it was ended by signal 9 (Killed)\n"},
                                                          {"leave", "it ended with exit code 7\n"}};
    for (const auto &[way, how] : ways) {
        const Traced gone = trace({kTraced, way}, 2);
        EXPECT_EQ(gone.ended.code(), *way == 'k' ? 128 + SIGKILL : 7);
        if (!std::filesystem::exists(gone.out)) {
            EXPECT_EQ(gone.ended.err, "thrum trace: " + kTraced +
                                          " wrote no trace (thrum_fini() or exit() writes it); " + how);
            continue;
        }
        EXPECT_NE(gone.ended.err.find(" wrote no trace, so this is what was seen in its memory"),
                  std::string::npos)
            << gone.ended.err;
        EXPECT_EQ(json_value(read_file(gone.out), "len(d['traceEvents']) > 0"), "True");
        std::filesystem::remove(gone.out);
    }
}

// Of `traced stay`, when it has said that it is ready: all but what called thrum_init, and the one that sleeps.
std::string ended_of_stay() {
    const Ended all = spawn({kTraced, "fini"}, with({{"THRUM_WORKERS", "2"}}));
    return "ended=" + std::to_string(numbers_in(all.out).at(0) - 1);
}

// What was seen until a signal ended it; the command ends by the signal that it was sent.
TEST(TraceCommand, WritesWhatWasSeenUntilASignal) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        const std::string out = place().path("ended.json");
        Running running({place().thrum(), "trace", "-o", out, "--", "/bin/sh", "-c",
                         "ulimit -c 0; exec $0 stay", kTraced},
                        with({{"THRUM_WORKERS", "2"}}));
        kill(running.pid(), signal);
        const int status = running.finish();
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
        const Ended check = spawn({CLI_PYTHON, CLI_CHECK_TRACE, out, "processes=1", "workers=2",
                                   ended_of_stay(), "whole=1", "orphans=1", "migrated=2"});
        EXPECT_EQ(check.code(), 0) << check.out << check.err;
        std::filesystem::remove(out);
    }
}

// The program ignores the first signal: the second one is forwarded as what it is.
TEST(TraceCommand, ForwardsEachSignalAsItself) {
    const std::string out = place().path("second.json");
    Running running(
        {place().thrum(), "trace", "-o", out, "--", "/bin/sh", "-c", "trap '' INT; exec $0 stay", kTraced});
    kill(running.pid(), SIGINT);
    kill(running.pid(), SIGTERM);
    const int status = running.finish();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    EXPECT_TRUE(std::filesystem::remove(out));
}

// The rings are read while their workers write to them, and are overwritten many times meanwhile.
TEST(TraceCommand, OfAProcessThatRuns) {
    for (const char *events : {"100000", "16"}) {
        const std::string raw = place().path("own"), out = place().path("attached.json");
        Running running({kTraced, "stay"},
                        with({{"THRUM_TRACE", raw}, {"THRUM_TRACE_EVENTS", events}, {"THRUM_WORKERS", "2"}}));
        const bool is_whole = *events == '1' && events[1] == '0';
        const Ended so_far =
            spawn({place().thrum(), "trace", "-p", std::to_string(running.pid()), "-o", out});
        EXPECT_EQ(so_far.code(), 0) << so_far.err;
        Words check = {CLI_PYTHON, CLI_CHECK_TRACE, out, "processes=1", is_whole ? "whole=1" : "whole=0"};
        if (is_whole)
            check.insert(check.end(), {"migrated=2", ended_of_stay()});
        const Ended sound = spawn(check);
        EXPECT_EQ(sound.code(), 0) << sound.out << sound.err;
        const Ended from_now = spawn(
            {place().thrum(), "trace", "-p", std::to_string(running.pid()), "--seconds", "0.3", "-o", out});
        EXPECT_EQ(from_now.code(), 0) << from_now.err;
        EXPECT_EQ(json_value(read_file(out), "any(e.get('name') == 'sleeps_and_wakes' for e in "
                                             "d['traceEvents'])"),
                  "True")
            << from_now.err;
        EXPECT_EQ(json_value(read_file(out), "any(e.get('name') == 'migrates' for e in d['traceEvents'])"),
                  "False")
            << "which was over before";
        kill(running.pid(), SIGKILL);
    }
}

TEST(TraceCommand, OfAProcessThatKeepsNone) {
    Running running({kTraced, "stay"});
    const Ended ended = spawn(
        {place().thrum(), "trace", "-p", std::to_string(running.pid()), "-o", place().path("none.json")});
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(ended.err, "thrum trace: process " + std::to_string(running.pid()) +
                             " keeps no trace; start it with THRUM_TRACE=FILE in its environment, and -p can "
                             "read at any time what it has kept\n");
    EXPECT_FALSE(std::filesystem::exists(place().path("none.json")));
    kill(running.pid(), SIGKILL);
    Running other({"/bin/sh", "-c", "echo ready; read line"});
    EXPECT_EQ(spawn({place().thrum(), "trace", "-p", std::to_string(other.pid())}).err,
              "thrum trace: process " + std::to_string(other.pid()) + " does not use libthrum\n");
}

// The folder that the program's processes write to is gone.
TEST(TraceCommand, LeavesNothingBeside) {
    trace({kTraced, "fini"}, 2);
    for (const auto &entry : std::filesystem::directory_iterator(place().path(".")))
        EXPECT_EQ(entry.path().filename().string().find(".thrum-trace"), std::string::npos) << entry.path();
}

// The program's own output is not in the middle of it.
TEST(TraceCommand, ToStandardOutput) {
    const Ended ended = spawn({place().thrum(), "trace", "-o", "-", "--", kTraced, "fini"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out.rfind("{", 0), 0U) << ended.out.substr(0, 100);
    EXPECT_FALSE(std::filesystem::exists("-"));
    const std::string out = place().write("stdout.json", ended.out);
    EXPECT_EQ(spawn({CLI_PYTHON, CLI_CHECK_TRACE, out}).code(), 0);
    EXPECT_NE(ended.err.find("thrum trace: standard output has "), std::string::npos) << ended.err;
    EXPECT_FALSE(numbers_in(ended.err).empty()) << "what the program prints";
}

TEST(TraceCommand, ConvertsWhatAProgramWrote) {
    const std::string raw = place().path("raw"), out = place().path("converted.json");
    const Ended ran = spawn({kTraced, "fini"}, with({{"THRUM_TRACE", raw}, {"THRUM_WORKERS", "2"}}));
    EXPECT_EQ(ran.code(), 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    const Ended converted = spawn({place().thrum(), "trace", "--convert", raw, "-o", out});
    EXPECT_EQ(converted.code(), 0) << converted.err;
    const std::vector<long> said = numbers_in(ran.out);
    expect_sound({converted, out}, {"threads=" + std::to_string(said.at(0)), "workers=2"});

    const std::string whole = read_file(raw);
    const std::string cut = place().write("cut", whole.substr(0, whole.size() - 1));
    const Ended refused = spawn({place().thrum(), "trace", "--convert", cut});
    EXPECT_EQ(refused.code(), 1);
    EXPECT_EQ(refused.err,
              "thrum trace: " + cut + " is truncated: the disk was full, or it is still being written\n");
    std::string newer = whole;
    newer[8] = 99;
    const Ended unknown = spawn({place().thrum(), "trace", "--convert", place().write("newer", newer)});
    EXPECT_NE(unknown.err.find(" is a trace of version 99, but this thrum reads version 1\n"),
              std::string::npos)
        << unknown.err;
}

// However it is damaged, the answer is a result or a line.
TEST(TraceCommand, ConvertsOrRefusesWhatIsDamaged) {
    const std::string raw = place().path("raw");
    const Ended ran = spawn({kTraced, "fini"}, with({{"THRUM_TRACE", raw}, {"THRUM_TRACE_EVENTS", "50"}}));
    EXPECT_EQ(ran.code(), 0) << ran.err;
    const std::string whole = read_file(raw);
    for (std::size_t i = 0; i < 40; i++) {
        std::string damaged = whole;
        for (std::size_t at = i * 13 + 12; at < damaged.size(); at += 97)
            damaged[at] = static_cast<char>(damaged[at] ^ (1U << (at + i) % 8));
        const Ended ended = spawn({place().thrum(), "trace", "--convert", place().write("damaged", damaged),
                                   "-o", place().path("damaged.json")});
        EXPECT_TRUE(ended.code() == 0 || ended.code() == 1) << ended.status << ended.err;
    }
}

#endif

void expect_refused(const Words &words, int code, const std::string &line) {
    Words all{place().thrum(), "trace"};
    all.insert(all.end(), words.begin(), words.end());
    const Ended ended = spawn(all);
    EXPECT_EQ(ended.err, "thrum trace: " + line + "\n");
    EXPECT_EQ(ended.code(), code);
}

TEST(TraceCommand, NotOfLibthrum) {
    const std::string out = place().path("none.json");
    expect_refused({"-o", out, kProbe, "exit", "0"}, 1,
                   kProbe + " did not use libthrum: it is not linked with it, or spawned no thread; it ended "
                            "with exit code 0");
    EXPECT_FALSE(std::filesystem::exists(out));
    expect_refused({"-o", out, kProbe, "exit", "3"}, 3,
                   kProbe + " did not use libthrum: it is not linked with it, or spawned no thread; it ended "
                            "with exit code 3");
    const std::string old = place().write("old.json", "something else\n");
    spawn({place().thrum(), "trace", "-o", old, kProbe, "exit", "0"});
    EXPECT_EQ(read_file(old), "something else\n") << "there is nothing new to put in its place";
}

// One of the two would be lost.
TEST(TraceCommand, TwoToOneFile) {
    const std::string out = place().path("shared.json");
    Running first({place().thrum(), "trace", "-o", out, "--", "/bin/sh", "-c", "echo ready; read line"});
    expect_refused({"-o", out, kProbe}, 1, "something else is writing to " + out + "; name another file");
    EXPECT_TRUE(std::filesystem::exists(out)) << "the first one's";
    first.finish();
}

TEST(TraceCommand, SaysWhatIsWrong) {
    const std::string text = place().write("text", "twelve words\n");
    expect_refused({"--convert", text}, 1,
                   text + " is not a trace: expected a file that libthrum wrote for THRUM_TRACE, which "
                          "begins with 'thrumtrc'");
    const std::string empty = place().write("empty", "");
    expect_refused({"--convert", empty}, 1,
                   empty + " is empty: a signal or _exit() ended the process, or it is still running");
    expect_refused({"--convert", "/nowhere/at-all"}, 1,
                   "cannot read /nowhere/at-all: No such file or directory");
    expect_refused({"-o", "/nowhere/out", kProbe}, 1, "cannot write /nowhere/out: No such file or directory");
    expect_refused({"-o", "", kProbe}, 2, "-o takes a file name, not ''");
    expect_refused({"--events", "few", kProbe}, 2,
                   "--events takes a whole number from 16 to 1000000000, not 'few'");
    expect_refused({"--convert", text, kProbe}, 2, "--convert FILE and a program exclude each other");
    expect_refused({"/nowhere/program"}, 127, "/nowhere/program: No such file or directory");
    expect_refused({}, 2, "missing program: thrum trace [OPTIONS] -- PROG ARGS...");
}

// While it is looked at, ten times a second, and at its end.
TEST(TraceCommand, AProgramMayRemoveTheFolder) {
    const std::string folder = place().path("trace-cleaned");
    std::filesystem::create_directories(folder);
    const Ended ended = spawn({place().thrum(), "trace", "-o", folder + "/out.json", "--", "/bin/sh", "-c",
                               "rm -rf " + folder + "/.thrum-trace.*; sleep 0.3; exit 3"});
    EXPECT_EQ(ended.code(), 3) << "the program's own\n" << ended.err;
    EXPECT_NE(ended.err.find("removed the folder .thrum-trace.*"), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder + "/out.json"));
}

// --- names ------------------------------------------------------------------------------------------------

std::string shortened(const std::string &function) {
    thrum::Symbol symbol;
    symbol.function = function;
    return thrum::short_name(symbol);
}

TEST(SymbolNames, AreShort) {
    EXPECT_EQ(shortened("plain_c"), "plain_c");
    EXPECT_EQ(shortened("plain.constprop.0"), "plain.constprop.0");
    EXPECT_EQ(shortened("f(int, char (*)(double))"), "f");
    EXPECT_EQ(shortened("void *f<int>(int) const"), "f");
    EXPECT_EQ(shortened("std::vector<int, std::allocator<int> > a::g<b<c> >(void (*)(int))"), "a::g");
    EXPECT_EQ(shortened("(anonymous namespace)::worker(void*)"), "(anonymous namespace)::worker");
    EXPECT_EQ(shortened("main::{lambda(int)#1}::operator()(int) const"), "main::{lambda(int)#1}::operator()");
    EXPECT_EQ(shortened("a::operator<(a const&)"), "a::operator<");
    EXPECT_EQ(shortened("f<int>(int)::{lambda()#2}::_FUN(void*)"), "f::{lambda()#2}::_FUN");
    EXPECT_EQ(shortened("internal/sync.(*Mutex).lockSlow"), "internal/sync.(*Mutex).lockSlow");
    EXPECT_EQ(shortened("main.main.func1"), "main.main.func1");
}

TEST(SymbolNames, AreThoseOfCallables) {
    EXPECT_EQ(shortened("void* thrum::detail::run_from_heap<main::{lambda()#1}, "
                        "thrum::detail::keeping_what_is_thrown>(void*)"),
              "main::{lambda()#1}");
    EXPECT_EQ(
        shortened("thrum::branch<thrum::invoke<quick<int*>(int*)::{lambda()#3}, x>(x)::{lambda()#1}>(void*)"),
        "quick::{lambda()#3}");
    EXPECT_EQ(
        shortened("void* thrum::detail::run_from_heap<thrum::detail::bind<void (&)(int), int>(void (&)(int), "
                  "int&&)::{lambda()#1}>(void*)"),
        "void (&)(int)");
    EXPECT_EQ(
        shortened("thrum::detail::async_state<thrum::detail::bind<main::{lambda()#2}>(main::{lambda()#2}&&)::"
                  "{lambda()#1}, int>::run(void*)"),
        "main::{lambda()#2}");
    EXPECT_EQ(shortened("thrum::branch<thrum::detail::stop_wakes<0u>::run>::run(void*)"),
              "thrum::branch::run");
    EXPECT_EQ(shortened("void* thrum::detail::run_from_pointer<std::reference_wrapper<a::S>, x>(void*)"),
              "a::S");
    EXPECT_EQ(
        shortened("void* thrum::detail::run_from_pointer<std::reference_wrapper<a::S const>, x>(void*)"),
        "a::S");
    EXPECT_EQ(shortened("std::_Function_handler<void (int, char), main::{lambda(int, char)#3}>::_M_manager("
                        "std::_Any_data&)"),
              "main::{lambda(int, char)#3}");
    for (const char *holder : {"void (*)()", "int (*&)(int)", "int (S::*)(int) const", "std::function"})
        EXPECT_TRUE(thrum::is_holder_of_function(holder)) << holder;
    EXPECT_FALSE(thrum::is_holder_of_function("main::{lambda(int)#1}"));
}

TEST(SymbolNames, AreFoundInThisProgram) {
    const thrum::Symbols symbols(read_file("/proc/self/maps"));
    const auto address = reinterpret_cast<std::uint64_t>(&numbers_in);
    EXPECT_EQ(thrum::describe(symbols.at(0x10), 0x10), "0x10");
    const thrum::Symbol &symbol = symbols.at(address);
    EXPECT_EQ(symbol.module, "cli-test");
#ifdef CLI_ELFUTILS
    EXPECT_EQ(thrum::describe(symbol, address).find("(anonymous namespace)::numbers_in (trace_test.cpp:"), 0U)
        << thrum::describe(symbol, address);
#endif
    const thrum::Symbols none("");
    EXPECT_EQ(thrum::describe(none.at(address), 0x1234), "0x1234");
    const thrum::Symbols nonsense("twelve\nwords in no order\n\n-\n");
    EXPECT_EQ(thrum::describe(nonsense.at(address), 0x1234), "0x1234");
}

#ifdef CLI_ELFUTILS

} // namespace

// Names in C that are letters for types in mangled ones of C++ (float, wchar_t, long), and one that is mangled.
extern "C" {
long m = 1;
__attribute__((noinline)) long f() {
    return m;
}
__attribute__((noinline)) long w() {
    return m + 1;
}
}
__attribute__((noinline)) long mangled_name(long n) {
    return m + n;
}

namespace {

TEST(SymbolNames, OfCAreNoTypes) {
    const thrum::Symbols symbols(read_file("/proc/self/maps"));
    const auto name_at = [&symbols](auto *what) {
        return symbols.at(reinterpret_cast<std::uint64_t>(what)).function;
    };
    EXPECT_EQ(name_at(&f), "f");
    EXPECT_EQ(name_at(&w), "w");
    EXPECT_EQ(name_at(&m), "m");
    EXPECT_EQ(name_at(&mangled_name), "mangled_name(long)");
}

#endif

} // namespace
