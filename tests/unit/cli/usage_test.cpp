// SPDX-License-Identifier: Apache-2.0
//
// The command line: what is wrong with it is said in one line on stderr, with exit code 2; help and version.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <iterator>
#include <sstream>

#include "place.hpp"
#include "session.hpp"

namespace {

Ended thrum(Words words) {
    words.insert(words.begin(), place().thrum());
    return spawn(words);
}

struct Wrong {
    Words words;
    std::string line;
};

const Wrong kWrong[] = {
    {{"bogus"}, "thrum: there is no command 'bogus'; see thrum --help"},
    {{""}, "thrum: there is no command ''; see thrum --help"},
    {{"--bogus"}, "thrum: unknown option '--bogus'; see thrum --help"},
    {{"help", "bogus"}, "thrum help: there is no command 'bogus'; see thrum --help"},
    {{"run"}, "thrum run: missing program: thrum run [OPTIONS] -- PROG ARGS..."},
    {{"run", "--"}, "thrum run: missing program: thrum run [OPTIONS] -- PROG ARGS..."},
    {{"run", "--verbose"}, "thrum run: missing program: thrum run [OPTIONS] -- PROG ARGS..."},
    {{"run", "--bogus", "true"}, "thrum run: unknown option '--bogus'; see thrum run --help"},
    {{"run", "--bogus", "--", "true"}, "thrum run: unknown option '--bogus'; see thrum run --help"},
    {{"run", "--verb", "true"}, "thrum run: unknown option '--verb'; see thrum run --help"},
    {{"run", "-vx", "true"}, "thrum run: unknown option '-x'; see thrum run --help"},
    {{"run", "--verbose=3", "true"}, "thrum run: --verbose takes no value; see thrum run --help"},
    {{"run", "--min-rest"}, "thrum run: --min-rest needs a value; see thrum run --help"},
    {{"run", "--max-idle", "--", "true"}, "thrum run: --max-idle needs a value; see thrum run --help"},
    {{"run", "--min-rest", "true"},
     "thrum run: --min-rest takes a whole number from 0 to 3600000, not 'true'"},
    {{"run", "--min-rest=-1", "true"},
     "thrum run: --min-rest takes a whole number from 0 to 3600000, not '-1'"},
    {{"run", "--min-rest", "-1", "true"},
     "thrum run: --min-rest takes a whole number from 0 to 3600000, not '-1'"},
    {{"run", "--min-rest", "1.5", "true"},
     "thrum run: --min-rest takes a whole number from 0 to 3600000, not '1.5'"},
    {{"run", "--min-rest", "3600001", "true"},
     "thrum run: --min-rest takes a whole number from 0 to 3600000, not '3600001'"},
    {{"run", "--max-idle", "1000001", "true"},
     "thrum run: --max-idle takes a whole number from 0 to 1000000, not '1000001'"},
    {{"run", "--max-idle", "99999999999999999999999", "true"},
     "thrum run: --max-idle takes a whole number from 0 to 1000000, not '99999999999999999999999'"},
    {{"run", "--max-idle", "0x10", "true"},
     "thrum run: --max-idle takes a whole number from 0 to 1000000, not '0x10'"},
    {{"run", "--max-idle", " 7", "true"},
     "thrum run: --max-idle takes a whole number from 0 to 1000000, not ' 7'"},
    {{"run", "--max-idle"}, "thrum run: --max-idle needs a value; see thrum run --help"},
    {{"run", "--mode", "stacks", "true"}, "thrum run: unknown option '--mode'; see thrum run --help"},
    {{"compare"}, "thrum compare: missing program: thrum compare [OPTIONS] -- PROG ARGS..."},
    {{"compare", "--json", "--"}, "thrum compare: missing program: thrum compare [OPTIONS] -- PROG ARGS..."},
    {{"compare", "--bogus", "true"}, "thrum compare: unknown option '--bogus'; see thrum compare --help"},
    {{"compare", "--off", "true"}, "thrum compare: unknown option '--off'; see thrum compare --help"},
    {{"compare", "--json=1", "true"}, "thrum compare: --json takes no value; see thrum compare --help"},
    {{"compare", "-n"}, "thrum compare: --runs needs a value; see thrum compare --help"},
    {{"compare", "-n", "0", "true"}, "thrum compare: -n takes a whole number from 1 to 10000, not '0'"},
    {{"compare", "--runs=ten", "true"}, "thrum compare: -n takes a whole number from 1 to 10000, not 'ten'"},
    {{"compare", "-n", "10001", "true"},
     "thrum compare: -n takes a whole number from 1 to 10000, not '10001'"},
    {{"compare", "-n", "./no-such-program", "500"},
     "thrum compare: -n takes a whole number from 1 to 10000, not './no-such-program'"},
    {{"compare", "-n", "", "true"}, "thrum compare: -n takes a whole number from 1 to 10000, not ''"},
    {{"compare", "--warmup", "", "true"},
     "thrum compare: --warmup takes a whole number from 0 to 100, not ''"},
    {{"compare", "--timeout", "", "true"},
     "thrum compare: --timeout takes seconds from 0.001 to 86400, not ''"},
    {{"compare", "--html", "", "true"}, "thrum compare: --html takes a file name, not ''"},
    {{"compare", "--input", "", "true"}, "thrum compare: --input takes a file name, not ''"},
    {{"compare", "--warmup", "101", "true"},
     "thrum compare: --warmup takes a whole number from 0 to 100, not '101'"},
    {{"compare", "--timeout", "0", "true"},
     "thrum compare: --timeout takes seconds from 0.001 to 86400, not '0'"},
    {{"compare", "--timeout", "1.2.3", "true"},
     "thrum compare: --timeout takes seconds from 0.001 to 86400, not '1.2.3'"},
    {{"compare", "--timeout", "-1", "true"},
     "thrum compare: --timeout takes seconds from 0.001 to 86400, not '-1'"},
    {{"compare", "--min-rest", "x", "true"},
     "thrum compare: --min-rest takes a whole number from 0 to 3600000, not 'x'"},
    {{"counters"}, "thrum counters: missing process number: thrum counters PID"},
    {{"counters", "abc"}, "thrum counters: PID is a process number from 1 to 2147483647, not 'abc'"},
    {{"counters", "0"}, "thrum counters: PID is a process number from 1 to 2147483647, not '0'"},
    {{"counters", "99999999999"},
     "thrum counters: PID is a process number from 1 to 2147483647, not '99999999999'"},
    {{"counters", "1", "2"}, "thrum counters: one argument too many: '2'; see thrum counters --help"},
    {{"counters", "--bogus", "1"}, "thrum counters: unknown option '--bogus'; see thrum counters --help"},
    {{"counters", "--json=1", "1"}, "thrum counters: --json takes no value; see thrum counters --help"},
};

TEST(Usage, EveryMistakeIsOneLineAndTwo) {
    for (const Wrong &wrong : kWrong) {
        const Ended ended = thrum(wrong.words);
        EXPECT_EQ(ended.err, wrong.line + "\n");
        EXPECT_EQ(ended.out, "");
        EXPECT_EQ(ended.code(), 2) << wrong.line;
    }
}

TEST(Usage, NoArgumentsPrintHelpAndFail) {
    const Ended ended = thrum({});
    EXPECT_EQ(ended.code(), 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err, thrum({"--help"}).out);
}

TEST(Usage, Version) {
    const Ended ended = thrum({"--version"});
    EXPECT_EQ(ended.out, "thrum " CLI_VERSION "\n");
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.code(), 0);
}

TEST(Usage, VersionOfEachCommandIsThrums) {
    for (const char *command : {"run", "compare", "stat", "trace", "ps", "counters"}) {
        const Ended ended = thrum({command, "--version"});
        EXPECT_EQ(ended.out, "thrum " CLI_VERSION "\n") << command;
        EXPECT_EQ(ended.err, "");
        EXPECT_EQ(ended.code(), 0);
    }
    const Ended of_the_program = thrum({"run", "--", "echo", "--version"});
    EXPECT_EQ(of_the_program.out.find("thrum " CLI_VERSION), std::string::npos);
}

// No word of it is 36 columns long. What another program reads keeps its lines.
TEST(Usage, HelpFitsItsTerminal) {
    for (const char *command : {"run", "compare", "stat", "trace", "ps", "counters"})
        for (const unsigned short columns : {40, 60, 80, 150}) {
            const Ended ended = Session({CLI_THRUM, command, "--help"}, {}, columns).finish();
            EXPECT_EQ(ended.code(), 0) << ended.out;
            std::istringstream lines(ended.out);
            for (std::string line; std::getline(lines, line);)
                EXPECT_LE(line.size(), columns) << command << ": " << line;
            const auto words = [](const std::string &text) {
                std::istringstream stream(text);
                return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
            };
            EXPECT_EQ(words(ended.out), words(thrum({command, "--help"}).out)) << "the same words";
        }
}

// In the same words, whichever command it is.
TEST(Usage, HelpTellsWhatADashStandsFor) {
    for (const char *command : {"compare", "stat", "trace", "ps", "counters"}) {
        std::string words;
        std::istringstream stream(thrum({command, "--help"}).out);
        for (std::string word; stream >> word;)
            words += word + " ";
        EXPECT_NE(words.find("-: stdout"), std::string::npos) << command << ": " << words;
        EXPECT_EQ(words.find("standard output"), std::string::npos) << command << ": " << words;
    }
}

TEST(Usage, HelpNamesEveryCommand) {
    const Ended ended = thrum({"--help"});
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(ended.err, "");
    for (const char *command : {"run", "compare", "counters", "help"})
        EXPECT_NE(ended.out.find(std::string("\n  ") + command + " "), std::string::npos) << command;
    EXPECT_EQ(thrum({"help"}).out, ended.out);
}

TEST(Usage, HelpOfACommandIsTheSameEitherWay) {
    for (const char *command : {"run", "compare", "counters"}) {
        const Ended ended = thrum({"help", command});
        EXPECT_EQ(ended.code(), 0);
        EXPECT_EQ(ended.out, thrum({command, "--help"}).out);
        EXPECT_NE(ended.out.find(std::string("Usage: thrum ") + command), std::string::npos);
    }
}

TEST(Usage, HelpOfRunNamesEveryOptionAndItsVariable) {
    const std::string help = thrum({"help", "run"}).out;
    for (const char *word :
         {"--verbose", "--wipe-stack", "--off", "--min-rest", "--max-idle", "--max-age", "--thread-seconds",
          "--trim-after", "--pressure", "THRUM_CACHE_MAX_AGE", "THRUM_CACHE_THREAD_SECONDS",
          "THRUM_CACHE_TRIM_AFTER", "THRUM_CACHE_PRESSURE", "THRUM_CACHE_VERBOSE", "THRUM_CACHE_WIPE_STACK",
          "THRUM_CACHE=off", "THRUM_CACHE_MIN_REST", "THRUM_CACHE_MAX_IDLE"})
        EXPECT_NE(help.find(word), std::string::npos) << word;
}

TEST(Usage, HelpThatCannotBeWrittenFails) {
    struct stat full;
    ASSERT_EQ(stat("/dev/full", &full), 0);
    const Ended ended = spawn({"/bin/sh", "-c", "exec \"$0\" --help >/dev/full", place().thrum()});
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(ended.err, "thrum: cannot write to standard output\n");
}

// One mistake, and one line for it whatever the command. An interpreter's name is the script's choice, and no command to a
// terminal.
TEST(Usage, WhatIsMissingIsToldAlike) {
    const std::string script = place().write("no-interpreter", "#!/nowhere/inter\x1b[31mpreter\ntrue\n");
    for (const char *command : {"run", "compare", "stat", "trace"}) {
        const Ended ended = thrum({command, "--", script});
        EXPECT_EQ(ended.code(), 127) << command;
        EXPECT_EQ(ended.err, "thrum " + std::string(command) + ": " + script +
                                 ": its interpreter /nowhere/inter?[31mpreter does not exist\n");
    }
}

} // namespace
