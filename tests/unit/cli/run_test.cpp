// SPDX-License-Identifier: Apache-2.0
//
// `thrum run` where it does run the program: the program is what it would have been without, apart from the
// environment that was asked for.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <vector>

#include "place.hpp"

namespace {

const std::string kProbe = CLI_PROBE;

TEST(Run, EveryExitCodeIsTheProgramsOwn) {
    for (int code = 0; code <= 255; code++)
        ASSERT_EQ(place().run({"--", kProbe, "exit", std::to_string(code)}).code(), code);
}

TEST(Run, DeathBySignalIsTheProgramsOwn) {
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1,
                             SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGSYS, SIGRTMIN, SIGRTMAX}) {
        const Ended ended = place().run({"--", kProbe, "die", std::to_string(signal)});
        EXPECT_EQ(ended.signal(), signal);
        EXPECT_EQ(ended.err, "");
    }
}

TEST(Run, StreamsPassThrough) {
    std::string text = "line\nno end of line, a zero: ";
    text.push_back('\0');
    World world;
    world.input = text;
    const Ended ended = place().run({"--", kProbe, "copy"}, world);
    EXPECT_EQ(ended.out, text);
    EXPECT_EQ(ended.err, text);
    EXPECT_EQ(ended.code(), 0);
}

TEST(Run, TheProgramTakesThrumsPlace) {
    const Ended ended = place().run({kProbe, "pid"});
    EXPECT_EQ(ended.out, std::to_string(ended.pid));
}

TEST(Run, SignalsAndDescriptorsAreInherited) {
    World world;
    world.ignore_and_block = true;
    const Ended bare = spawn({kProbe, "inherited"}, world);
    ASSERT_NE(bare.out.find("SigBlk:\t0000000000000800"), std::string::npos) << bare.out;
    EXPECT_EQ(place().run({kProbe, "inherited"}, world).out, bare.out);
}

TEST(Run, ArgumentsArriveUnchanged) {
    const Words odd{"",    "a b", "--min-rest", "x",      "-v", "--", "--bogus", "--help", "[1,2]", "'q'",
                    "%s*", "@",   "run",        "--json", "-",  "--", "=",       "#",      "\n",    "\xff"};
    std::string expected;
    for (const std::string &word : odd)
        expected += "<" + word + ">";
    Words words{"--", kProbe, "args"};
    words.insert(words.end(), odd.begin(), odd.end());
    EXPECT_EQ(place().run(words).out, expected) << "behind --";
    words.erase(words.begin());
    EXPECT_EQ(place().run(words).out, expected) << "without --";
    words.insert(words.begin(), "--off");
    EXPECT_EQ(place().run(words).out, expected) << "behind an option";
}

TEST(Run, AProgramMayHaveTheNameOfACommandOrOfAnOption) {
    const std::string probe = read_file(kProbe);
    for (const char *name : {"run", "counters", "help"}) {
        place().write(name, probe);
        const World world = with({{"PATH", place().path("")}});
        EXPECT_EQ(place().run({name, "exit", "5"}, world).code(), 5) << name;
    }
    place().write("--off", probe);
    const World world = with({{"PATH", place().path("")}});
    EXPECT_EQ(place().run({"--", "--off", "env", "THRUM_CACHE"}, world).out, "THRUM_CACHE unset\n");
}

TEST(Run, TheProgramSeesTheNameItWasCalledBy) {
    place().write("named", read_file(kProbe));
    const World world = with({{"PATH", "/nowhere:" + place().path("") + ":/bin"}});
    EXPECT_EQ(place().run({"named", "name"}, world).out, "named");
    EXPECT_EQ(place().run({place().path("named"), "name"}, world).out, place().path("named"));
}

// --- the environment -----------------------------------------------------------------------------------------

const Words kVariables{"THRUM_CACHE", "THRUM_CACHE_VERBOSE", "THRUM_CACHE_MIN_REST", "THRUM_CACHE_WIPE_STACK",
                       "THRUM_CACHE_MAX_IDLE"};

// What the program finds in the variables, with these options.
std::string variables_with(Words options, const World &world = {}) {
    options.insert(options.end(), {"--", kProbe, "env"});
    options.insert(options.end(), kVariables.begin(), kVariables.end());
    return place().run(options, world).out;
}

TEST(Run, OptionsBecomeVariables) {
    EXPECT_EQ(variables_with({}), "THRUM_CACHE unset\nTHRUM_CACHE_VERBOSE unset\nTHRUM_CACHE_MIN_REST unset\n"
                                  "THRUM_CACHE_WIPE_STACK unset\nTHRUM_CACHE_MAX_IDLE unset\n");
    EXPECT_EQ(
        variables_with({"--verbose", "--wipe-stack", "--off", "--min-rest", "3600000", "--max-idle=1000000"}),
        "THRUM_CACHE=off\nTHRUM_CACHE_VERBOSE=1\nTHRUM_CACHE_MIN_REST=3600000\n"
        "THRUM_CACHE_WIPE_STACK=1\nTHRUM_CACHE_MAX_IDLE=1000000\n");
    EXPECT_EQ(variables_with({"-v", "--min-rest=1", "--min-rest", "0", "--max-idle", "0"}),
              "THRUM_CACHE unset\nTHRUM_CACHE_VERBOSE=1\nTHRUM_CACHE_MIN_REST=0\n"
              "THRUM_CACHE_WIPE_STACK unset\nTHRUM_CACHE_MAX_IDLE=0\n")
        << "the last of two counts";
}

TEST(Run, Retention) {
    EXPECT_EQ(place()
                  .run({"--max-age", "1", "--thread-seconds", "2", "--trim-after", "3", "--pressure", "--",
                        kProbe, "env", "THRUM_CACHE_MAX_AGE", "THRUM_CACHE_THREAD_SECONDS",
                        "THRUM_CACHE_TRIM_AFTER", "THRUM_CACHE_PRESSURE"})
                  .out,
              "THRUM_CACHE_MAX_AGE=1\nTHRUM_CACHE_THREAD_SECONDS=2\nTHRUM_CACHE_TRIM_AFTER=3\n"
              "THRUM_CACHE_PRESSURE=1\n");
    for (const char *option : {"--max-age", "--thread-seconds", "--trim-after"}) {
        const Ended ended = place().run({option, "soon", "--", kProbe});
        EXPECT_NE(ended.code(), 0);
        EXPECT_EQ(ended.err.find(std::string("thrum run: ") + option + " takes a whole number from 0 to "),
                  0u)
            << ended.err;
    }
}

TEST(Run, AnOptionWinsOverTheEnvironment) {
    const World world = with({{"THRUM_CACHE", "on"},
                              {"THRUM_CACHE_VERBOSE", "0"},
                              {"THRUM_CACHE_MIN_REST", "nonsense"},
                              {"THRUM_CACHE_WIPE_STACK", "0"},
                              {"THRUM_CACHE_MAX_IDLE", "7"}});
    EXPECT_EQ(variables_with({"-v", "--wipe-stack", "--off", "--min-rest", "5", "--max-idle", "6"}, world),
              "THRUM_CACHE=off\nTHRUM_CACHE_VERBOSE=1\nTHRUM_CACHE_MIN_REST=5\n"
              "THRUM_CACHE_WIPE_STACK=1\nTHRUM_CACHE_MAX_IDLE=6\n");
}

TEST(Run, TheEnvironmentWithoutAnOptionIsTheLibrarysBusiness) {
    const World world = with({{"THRUM_CACHE_MIN_REST", "nonsense"}, {"THRUM_CACHE", "maybe"}});
    EXPECT_EQ(variables_with({}, world),
              "THRUM_CACHE=maybe\nTHRUM_CACHE_VERBOSE unset\nTHRUM_CACHE_MIN_REST=nonsense\n"
              "THRUM_CACHE_WIPE_STACK unset\nTHRUM_CACHE_MAX_IDLE unset\n");
}

// --- what --verbose prints -------------------------------------------------------------------------------------

#ifdef CLI_CACHE
// The lines on stderr, without the process's number.
std::string said(const Words &words, const World &world = {}) {
    static const Place real(CLI_CACHE);
    const Ended ended = real.run(words, world);
    EXPECT_EQ(ended.code(), 0) << ended.err;
    std::string text = ended.err;
    const std::string number = "pid " + std::to_string(ended.pid) + " ";
    if (const std::size_t at = text.find(number); at != std::string::npos)
        text.replace(at, number.size(), "");
    return text;
}

TEST(Run, TheSummaryAccountsForEveryThread) {
    const std::string summary = said({"-v", kProbe, "hold", "8"});
    const auto number = [&](const std::string &word) {
        const std::size_t at = summary.find(word + " ");
        return at == std::string::npos ? -1 : std::stol(summary.substr(at + word.size()));
    };
    EXPECT_EQ(number("created") + number("reused"), 8) << summary;
    EXPECT_EQ(number("created"), number("retired") + number(", culled") + number(", live") + number(", idle"))
        << summary;
}

TEST(Run, VerboseNamesTheCallsThatMadeThreadsRetire) {
    const std::string summary = said({"-v", kProbe, "retire"});
    EXPECT_NE(summary.find("thrum:     changed what its children inherit, by pthread_setschedparam 1\n"),
              std::string::npos)
        << summary;
    EXPECT_NE(summary.find("thrum:     created a process, by fork 1\n"), std::string::npos) << summary;
}

// A shell that starts two processes with threads of one name, and one without any.
TEST(Run, VerboseSumsUpAllProcessesInOneTable) {
    const std::string script = "\"$0\" hold 3 </dev/null; \"$0\" hold 5 </dev/null; \"$0\" exit 0; exit 0";
    const std::string text = said({"-v", "/bin/sh", "-c", script, kProbe});
    const std::string name = kProbe.substr(kProbe.rfind('/') + 1).substr(0, 15);
    std::istringstream lines(text);
    std::map<std::string, std::vector<long>> rows;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string thrum, first;
        words >> thrum >> first;
        for (long number; words >> number;)
            rows[first].push_back(number);
    }
    ASSERT_EQ(rows[name].size(), 6u) << text;
    EXPECT_EQ(rows[name][0], 2) << text;
    EXPECT_EQ(rows[name][1] + rows[name][2], 8) << "created and reused\n" << text;
    EXPECT_EQ(rows["together"], rows[name]) << text;
    EXPECT_NE(text.find("without threads: 2\n"), std::string::npos) << "the shell and one more\n" << text;
    EXPECT_EQ(text.find("(peak "), std::string::npos) << "no process speaks for itself\n" << text;
}

TEST(Run, VerboseSaysSoWhereThereWasNoThread) {
    const std::string none = "thrum: (" + kProbe.substr(kProbe.rfind('/') + 1) + "): no threads\n";
    EXPECT_EQ(said({"-v", kProbe, "exit", "0"}), none);
    EXPECT_EQ(said({kProbe, "exit", "0"}, with({{"THRUM_CACHE_VERBOSE", "on"}})), none);
    EXPECT_EQ(said({kProbe, "exit", "0"}), "");
    EXPECT_EQ(said({"-v", "/bin/sh", "-c", "\"$0\" exit 0; (exit 0); exec \"$0\" exit 0", kProbe}), none)
        << "not of what the program starts";
}

TEST(Run, VerboseSaysThatTheCacheIsOff) {
    const std::string off = "thrum: the cache is off: THRUM_CACHE=off\n";
    EXPECT_EQ(said({"-v", "--off", kProbe, "exit", "0"}), off);
    EXPECT_EQ(said({"-v", "--off", kProbe, "hold", "2"}), off);
    EXPECT_EQ(said({"--off", kProbe, "hold", "2"}), "");
}
#endif

// --- LD_PRELOAD ----------------------------------------------------------------------------------------------

// LD_PRELOAD as the program finds it, where it was `before` for thrum.
std::string preload_with(const std::string &before, Words words = {}) {
    words.insert(words.end(), {kProbe, "env", "LD_PRELOAD"});
    World world;
    if (!before.empty())
        world.environment["LD_PRELOAD"] = before;
    return place().run(words, world).out;
}

TEST(Run, TheLibraryIsLoaded) {
    EXPECT_EQ(spawn({kProbe, "loaded"}).out, "no");
    EXPECT_EQ(place().run({kProbe, "loaded"}).out, "yes");
}

TEST(Run, ThePreloadChainIsKeptBehindTheLibrary) {
    const std::string first = "LD_PRELOAD=" + place().library();
    EXPECT_EQ(preload_with(""), first + "\n");
    EXPECT_EQ(preload_with("libm.so.6"), first + ":libm.so.6\n");
    EXPECT_EQ(preload_with(" libm.so.6  libdl.so.2:libc.so.6: "),
              first + ":libm.so.6:libdl.so.2:libc.so.6\n");
}

TEST(Run, ThrumInsideThrumLoadsItOnce) {
    const std::string first = "LD_PRELOAD=" + place().library();
    EXPECT_EQ(preload_with("libm.so.6", {place().thrum(), "run", "--"}), first + ":libm.so.6\n");
    EXPECT_EQ(preload_with("libm.so.6:" + place().library()), first + ":libm.so.6\n");
}

TEST(Run, ThrumIsFoundThroughALink) {
    const std::string link = place().path("thrum-link");
    unlink(link.c_str());
    ASSERT_EQ(symlink(place().thrum().c_str(), link.c_str()), 0);
    EXPECT_EQ(spawn({link, "run", kProbe, "loaded"}).out, "yes");
}

TEST(Run, ALibraryThatIsMissingIsRefused) {
    const Place without("");
    const Ended ended = without.run({kProbe, "exit", "0"});
    EXPECT_EQ(ended.code(), 125);
    EXPECT_EQ(ended.err.find("thrum run: cannot find libthrum-cache.so: there is no readable " +
                             without.path("bin")),
              0u)
        << ended.err;
    EXPECT_NE(ended.err.find("/../lib/libthrum-cache.so\n"), std::string::npos) << ended.err;
}

TEST(Run, APathThatLdPreloadCannotNameIsRefused) {
    for (const char *name : {"with space", "with:colon", "with$ORIGIN"}) {
        const Place odd(CLI_STANDIN, name);
        const Ended ended = odd.run({kProbe, "exit", "0"});
        EXPECT_EQ(ended.code(), 125);
        EXPECT_EQ(ended.err,
                  "thrum run: LD_PRELOAD cannot name '" + odd.library() +
                      "', because there is a space, a colon or a '$' in it; move thrum's folder to a path "
                      "without\n");
    }
}

} // namespace
