// SPDX-License-Identifier: Apache-2.0
//
// `thrum compare` from outside: what it starts and how often, what it prints, and how it ends. No test looks at a time.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "documents.hpp"
#include "place.hpp"
#include "thrum/cache.h"

namespace {

const std::string kProbe = CLI_PROBE;

Ended compare(Words words, const World &world = {}, const Place &where = place()) {
    words.insert(words.begin(), {where.thrum(), "compare"});
    return spawn(words, world);
}

// A shell script that has run for the `n`th time, from 0 on. The runs of a comparison are numbered in $1/count.
Words script(const Place &where, const std::string &text) {
    where.write("count", "0\n", 0644);
    return {"/bin/sh", "-c", "n=$(cat $0/count); echo $((n + 1)) >$0/count; " + text, where.path("")};
}

int runs_of(const Place &where) {
    return std::stoi(read_file(where.path("count")));
}

Ended compare_script(const Place &where, Words options, const std::string &text) {
    const Words words = script(where, text);
    options.push_back("--");
    options.insert(options.end(), words.begin(), words.end());
    return compare(options, {}, where);
}

// --- what is run ---------------------------------------------------------------------------------------------

TEST(Compare, RunsInPairsWhoseOrderAlternates) {
    const Place mine(CLI_STANDIN);
    const Ended ended =
        compare_script(mine, {"-n", "3", "--warmup", "0"}, "echo \"${LD_PRELOAD:-none}\" >>$0/log");
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.code(), 0);
    const std::string with = mine.library() + "\n", without = "none\n";
    EXPECT_EQ(read_file(mine.path("log")), without + with + with + without + without + with);
}

TEST(Compare, AWarmUpIsNotCounted) {
    const Place mine(CLI_STANDIN);
    EXPECT_EQ(compare_script(mine, {"-n", "3"}, "").code(), 0);
    EXPECT_EQ(runs_of(mine), 8);
    EXPECT_EQ(compare_script(mine, {"-n", "2", "--warmup", "3"}, "").code(), 0);
    EXPECT_EQ(runs_of(mine), 10);
}

TEST(Compare, TenPairsUnlessMoreAreQuick) {
    const Place mine(CLI_STANDIN);
    const std::string json = compare_script(mine, {"--json"}, "").out;
    const int pairs = std::stoi(json_value(json, "d['complete']"));
    EXPECT_GE(pairs, 10);
    EXPECT_LE(pairs, 40);
    EXPECT_EQ(runs_of(mine), 2 * pairs + 2);
}

TEST(Compare, OnlyThePreloadDiffers) {
    const Place mine(CLI_STANDIN);
    const Ended ended =
        compare_script(mine, {"-n", "1", "--warmup", "0", "--max-idle", "7"}, "env | sort >$0/env$n");
    ASSERT_EQ(ended.code(), 0) << ended.err;
    std::string without = read_file(mine.path("env0")), with = read_file(mine.path("env1"));
    EXPECT_NE(with.find("THRUM_CACHE_MAX_IDLE=7\n"), std::string::npos);
    const std::string preload = "LD_PRELOAD=" + mine.library() + "\n";
    ASSERT_NE(with.find(preload), std::string::npos);
    with.erase(with.find(preload), preload.size());
    EXPECT_EQ(with, without);
}

TEST(Compare, ABadValueInTheEnvironmentIsRefused) {
    const Place mine(CLI_STANDIN);
    for (const auto &[entry, takes] :
         {std::pair{std::pair{"THRUM_CACHE_MAX_IDLE", "bogus"}, "a whole number from 0 to 1000000"},
          {{"THRUM_CACHE_MIN_REST", "-1"}, "a whole number from 0 to 3600000"},
          {{"THRUM_CACHE", "foo"}, "on or off (or 1 or 0)"},
          {{"THRUM_CACHE_PRESSURE", "yes"}, "on or off (or 1 or 0)"}}) {
        const Ended ended = compare({"-n", "1", "--", "/bin/true"}, with({entry}), mine);
        EXPECT_EQ(ended.err, std::string("thrum compare: ") + entry.first + " takes " + takes + ", not '" +
                                 entry.second + "'\n");
        EXPECT_EQ(ended.out, "");
        EXPECT_EQ(ended.code(), 2);
    }
    const World fine = with({{"THRUM_CACHE_MAX_IDLE", ""}, {"THRUM_CACHE", "on"}});
    EXPECT_EQ(compare({"-n", "1", "--", "/bin/true"}, fine, mine).code(), 0);
    const World mended = with({{"THRUM_CACHE_MAX_IDLE", "bogus"}});
    EXPECT_EQ(compare({"-n", "1", "--max-idle", "7", "--", "/bin/true"}, mended, mine).code(), 0)
        << "an option wins";
}

TEST(Compare, AnInputThatCannotBeRead) {
    const Place mine(CLI_STANDIN);
    const Ended folder = compare({"-n", "1", "--input", mine.path(""), "--", "/bin/true"}, {}, mine);
    EXPECT_EQ(folder.err, "thrum compare: cannot read " + mine.path("") + ": Is a directory\n");
    EXPECT_EQ(folder.code(), 1);
    EXPECT_EQ(compare({"-n", "1", "--input", mine.path("none"), "--", "/bin/true"}, {}, mine).code(), 1);
}

TEST(Compare, TheProgramsStreams) {
    World world;
    world.input = "not for the program";
    const Ended quiet = compare({"-n", "1", "--", "/bin/sh", "-c", "cat; echo OUT; echo ERR >&2"}, world);
    EXPECT_EQ(quiet.err, "");
    EXPECT_EQ(quiet.out.find("OUT\n"), std::string::npos);
    const std::string file = place().write("input", "IN\n", 0644);
    const Ended shown = compare({"-n", "1", "--warmup", "0", "--show-output", "--input", file, "--json", "--",
                                 "/bin/sh", "-c", "cat; echo OUT; echo ERR >&2"});
    EXPECT_EQ(shown.err, "IN\nOUT\nERR\nIN\nOUT\nERR\n");
    EXPECT_EQ(json_value(shown.out, "d['complete']"), "1");
}

TEST(Compare, AScriptWithoutAFirstLineIsOneForTheShell) {
    const std::string plain = place().write("plain-script", "exit 0\n");
    const Ended ended = compare({"-n", "1", "--", plain});
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(ended.code(), 0);
}

// --- what is printed -----------------------------------------------------------------------------------------

TEST(Compare, Json) {
    const Ended ended = compare({"-n", "2", "--json", "--", kProbe, "exit", "0", "a\"b\\\n<&'\xff"});
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1);
    EXPECT_EQ(json_value(ended.out, "ascii(d['command'][3])"), "'a\"b\\\\\\n<&\\'\\ufffd'");
    EXPECT_EQ(
        json_value(ended.out, "d['wanted'], d['complete'], d['interrupted'], d['failure'], len(d['pairs'])"),
        "2 2 False None 2");
    EXPECT_EQ(json_value(ended.out, "[p['first'] for p in d['pairs']]"), "['without', 'with']");
    EXPECT_EQ(json_value(ended.out, "all(p[a]['wall'] > 0 for p in d['pairs'] for a in ('without', 'with'))"),
              "True");
    EXPECT_EQ(json_value(ended.out, "d['verdict']['kind'], d['summary']['threads']"), "inconclusive None");
}

TEST(Compare, ThePageStandsByItself) {
    const std::string page = place().path("page.html");
    const Ended ended = compare({"-n", "3", "--html", page, "--", kProbe, "exit", "0", "</title><b>&\"\xff"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_NE(ended.out.find("3 pairs of runs"), std::string::npos) << "the table comes as well";
    expect_sound_page(read_file(page));
    EXPECT_NE(read_file(page).find("<circle "), std::string::npos) << "and so do the plots";
}

TEST(Compare, APageIsReplacedAndNotLeftEmpty) {
    const std::string old = place().write("old.html", std::string(100000, 'x'), 0644);
    EXPECT_EQ(compare({"-n", "1", "--html", old, "--", kProbe, "exit", "0"}).code(), 0);
    expect_sound_page(read_file(old));
    const std::string none = place().path("none.html");
    EXPECT_EQ(compare({"--html", none, "--", kProbe, "exit", "3"}).code(), 1);
    EXPECT_FALSE(std::filesystem::exists(none));
}

TEST(Compare, ATableThatCannotBeWrittenFails) {
    const Ended ended =
        spawn({"/bin/sh", "-c", "exec \"$0\" compare -n 1 -- true >/dev/full", place().thrum()});
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(ended.err, "thrum: cannot write to standard output\n");
}

// --- what is refused -----------------------------------------------------------------------------------------

void expect_refused(const Ended &ended, int code, const std::string &line) {
    EXPECT_EQ(ended.err, "thrum compare: " + line + "\n");
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.code(), code);
}

TEST(Compare, RefusesWhatRunRefuses) {
    expect_refused(compare({"--", "no-such-program"}), 127, "there is no program 'no-such-program' in PATH");
    const std::string plain = place().write("not-executable", "text\n", 0644);
    expect_refused(compare({plain}), 126, plain + " is not executable");
    const std::string bad = place().write("bad-interpreter", "#!/no/such/shell\n");
    expect_refused(compare({bad}), 127, bad + ": its interpreter /no/such/shell does not exist");
#ifdef CLI_STATIC_PROGRAM
    expect_refused(compare({CLI_STATIC_PROGRAM}), 125,
                   std::string(CLI_STATIC_PROGRAM) +
                       " is statically linked, so LD_PRELOAD cannot reach it; link it dynamically, or run it "
                       "without thrum");
#endif
#ifdef CLI_MUSL_PROGRAM
    EXPECT_EQ(compare({CLI_MUSL_PROGRAM}).code(), 125);
#endif
}

TEST(Compare, RefusesWhereTheCacheWouldBeOff) {
    expect_refused(compare({CLI_PROBE_ASAN_LINKED}), 125,
                   std::string(CLI_PROBE_ASAN_LINKED) +
                       " is built with AddressSanitizer (linked in), so it runs "
                       "without the cache and there is nothing to compare");
    expect_refused(compare({kProbe}, with({{"THRUM_CACHE", "off"}})), 125,
                   "THRUM_CACHE=off is in the environment and turns the cache off; unset it to compare");
}

TEST(Compare, RefusesFilesThatItCannotOpen) {
    expect_refused(compare({"--html", "/no/such/page", kProbe}), 1,
                   "cannot write /no/such/page: No such file or directory");
    expect_refused(compare({"--input", "/no/such/input", kProbe, "exit", "0"}), 1,
                   "cannot open /no/such/input: No such file or directory");
}

// --- programs that fail --------------------------------------------------------------------------------------

TEST(Compare, AProgramThatFailsIsNotCompared) {
    expect_refused(compare({kProbe, "exit", "3"}), 1,
                   "the program failed: exit code 3, both without and with the cache (-i compares anyway)");
    expect_refused(compare({kProbe, "die", "11"}), 1,
                   "the program failed: signal 11 (Segmentation fault), both without and with the cache (-i "
                   "compares anyway)");
}

TEST(Compare, ItsLastWordsAreShown) {
    const Ended ended = compare({"--", "/bin/sh", "-c", "echo out; echo a >&2; echo b >&2; exit 1"});
    EXPECT_EQ(ended.err.find("  | a\n  | b\nthrum compare: the program failed: "), 0u) << ended.err;
}

TEST(Compare, AProgramThatAlwaysFailsMayBeCompared) {
    const Ended ended = compare({"-i", "-n", "2", "--json", "--", kProbe, "exit", "3"});
    EXPECT_EQ(ended.code(), 0);
    EXPECT_EQ(ended.err, "");
    EXPECT_EQ(json_value(ended.out, "d['complete'], d['pairs'][0]['with']['status']"), "2 768");
}

TEST(Compare, DifferentEndsAreAFailureAlways) {
    for (const Words &options : {Words{}, Words{"-i"}}) {
        Words words = options;
        words.insert(words.end(), {"-n", "2", "--", "/bin/sh", "-c", "test -z \"$LD_PRELOAD\" || exit 5"});
        expect_refused(compare(words), 1,
                       "the program ended differently: exit code 0 without the cache, exit code 5 with it");
    }
}

TEST(Compare, AFailureLaterOnKeepsWhatWasSeen) {
    const Place mine(CLI_STANDIN);
    const Ended ended = compare_script(mine, {"-n", "5", "--warmup", "0"}, "test $n -lt 4 || exit 9");
    EXPECT_EQ(ended.code(), 1);
    EXPECT_NE(ended.out.find("\n2 of 5 pairs of runs, "), std::string::npos) << ended.out;
    EXPECT_NE(ended.err.find("the program failed: exit code 9"), std::string::npos) << ended.err;
    EXPECT_EQ(runs_of(mine), 6);
}

TEST(Compare, ARunThatTakesTooLongIsEnded) {
    const Place mine(CLI_STANDIN);
    const Ended ended = compare_script(mine, {"--timeout", "0.2"}, "echo $$ >$0/pid; exec sleep 1000");
    EXPECT_EQ(ended.code(), 1);
    EXPECT_EQ(ended.err, "thrum compare: a run without the cache took longer than 0.2 s and was ended\n");
    EXPECT_EQ(runs_of(mine), 1);
    EXPECT_EQ(kill(std::stoi(read_file(mine.path("pid"))), 0), -1);
}

// What outlives the comparison loads the library when nothing is summed up any more, and has nothing to say about that.
#ifdef CLI_CACHE
TEST(Compare, AProcessThatIsLeftBehindSaysNothing) {
    const Place mine(CLI_CACHE);
    const std::string late = mine.write("late", "", 0644), errors = mine.write("errors", "", 0644);
    const Ended ended = compare({"-n", "1", "--warmup", "0", "--show-output", "--", "/bin/sh", "-c",
                                 "(while kill -0 $PPID 2>/dev/null; do sleep 0.05; done; /bin/echo late 2>>" +
                                     errors + " >>" + late + ") >/dev/null 2>&1 & echo hi"},
                                {}, mine);
    EXPECT_EQ(ended.code(), 0) << ended.err;
    for (int i = 0; i < 1000 && read_file(late).size() < 10; i++)
        usleep(10000);
    EXPECT_EQ(read_file(late), "late\nlate\n") << "of a run without the cache, and one with it";
    EXPECT_EQ(read_file(errors), "");
}
#endif

// --- two commands -----------------------------------------------------------------------------------------------

// Both as they are, in turn, each with its own arguments.
TEST(Compare, TwoCommands) {
    const Place mine(CLI_STANDIN);
    const std::string log = mine.path("log");
    const Words a = {"/bin/sh", "-c", "echo \"a ${LD_PRELOAD:-none} $*\" >>" + log, "name", "1", "--json"},
                b = {"/bin/sh", "-c", "echo b >>" + log};
    for (const bool has_dashes : {false, true}) {
        mine.write("log", "", 0644);
        Words words = {"-n", "2", "--warmup", "0", "--json", "--"};
        words.insert(words.end(), a.begin(), a.end());
        words.push_back("--vs");
        if (has_dashes)
            words.push_back("--");
        words.insert(words.end(), b.begin(), b.end());
        const Ended ended = compare(words, {}, mine);
        EXPECT_EQ(ended.code(), 0) << ended.err;
        const std::string line = "a none 1 --json\n";
        EXPECT_EQ(read_file(log), line + "b\nb\n" + line);
        EXPECT_EQ(
            json_value(ended.out, "d['command'][3:], len(d['other']), [p['first'] for p in d['pairs']]"),
            "['name', '1', '--json'] 3 ['A', 'B']");
        EXPECT_EQ(json_value(ended.out, "all(p[a]['wall'] > 0 for p in d['pairs'] for a in 'AB')"), "True");
        EXPECT_EQ(json_value(ended.out, "d['summary']['wall']['A']['median'] > 0"), "True");
    }
}

TEST(Compare, TwoCommandsInATable) {
    const std::string csv = place().path("two.csv"), document = place().path("two.md"),
                      page = place().path("two.html");
    const Ended ended =
        compare({"-n", "5", "--warmup", "0", "--export-csv", csv, "--export-markdown", document, "--html",
                 page, "--", kProbe, "exit", "0", "--vs", "/bin/sh", "-c", "sleep 0.2"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out.find("A: " + kProbe +
                             " exit 0\nB: /bin/sh -c 'sleep 0.2'\n5 pairs of runs, A and B in "
                             "turn; median (middle half)\n\n"),
              0U)
        << ended.out;
    EXPECT_NE(ended.out.find("\nB is slower: "), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("cache"), std::string::npos) << ended.out;
    EXPECT_EQ(ended.out.find("without"), std::string::npos) << ended.out;
    EXPECT_EQ(read_file(csv).rfind("pair,first,A_wall,", 0), 0U) << read_file(csv);
    EXPECT_NE(read_file(document).find("| | A | B | A / B |"), std::string::npos) << read_file(document);
    EXPECT_EQ(read_file(page).find("cache"), std::string::npos);
    expect_sound_page(read_file(page));
}

TEST(Compare, TwoCommandsThatCannotBeCompared) {
    expect_refused(compare({"-n", "1", "--", kProbe, "exit", "0", "--vs", kProbe, "exit", "3"}), 1,
                   "B failed: exit code 3 (-i compares all the same)");
    EXPECT_EQ(compare({"-i", "-n", "1", "--", kProbe, "exit", "0", "--vs", kProbe, "exit", "3"}).code(), 0);
    expect_refused(
        compare({"-n", "1", "--timeout", "0.2", "--", kProbe, "exit", "0", "--vs", "/bin/sleep", "1000"}), 1,
        "a run of B took longer than 0.2 s and was ended");
    const std::string usage =
        "--vs stands between two commands: thrum compare [OPTIONS] -- A ARGS... --vs B ARGS...";
    for (const Words &words :
         {Words{"--", kProbe, "--vs"}, Words{"--vs", kProbe}, Words{"--", "--vs", kProbe}})
        expect_refused(compare(words), 2, usage);
    expect_refused(compare({"--max-idle", "8", "--", kProbe, "--vs", kProbe}), 2,
                   "with --vs both commands run as they are, without the cache, so that options of the cache "
                   "have no effect; thrum run may be a part of a command");
    expect_refused(compare({"--", kProbe, "--vs", "/nowhere"}), 127, "/nowhere: No such file or directory");
}

// --- other forms ------------------------------------------------------------------------------------------------

TEST(Compare, ForSpreadsheetsAndDocuments) {
    const std::string csv = place().path("pairs.csv"), document = place().path("pairs.md"),
                      table = place().path("table");
    const Ended ended = compare({"-n", "3", "--warmup", "0", "--export-csv", csv, "--export-markdown",
                                 document, "-o", table, "--", kProbe, "exit", "0", "a|b"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out, "") << "the table is in its file";
    EXPECT_NE(read_file(table).find("3 pairs of runs, without and with the cache in turn"),
              std::string::npos);
    const std::string lines = read_file(csv);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
    EXPECT_EQ(lines.rfind("pair,first,without_wall,", 0), 0U) << lines;
    EXPECT_EQ(std::count(lines.begin(), lines.end(), ','), 4 * 12) << lines;
    EXPECT_NE(read_file(document).find("| wall time | "), std::string::npos);
    EXPECT_EQ(compare({"--html", csv, "--export-csv", csv, "--", kProbe}).code(), 2);
}

TEST(Compare, ToStandardOutput) {
    const std::string table = place().path("table");
    const Ended ended =
        compare({"-n", "1", "--warmup", "0", "--export-csv", "-", "-o", table, "--", kProbe, "exit", "0"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(ended.out.rfind("pair,first,", 0), 0U) << ended.out;
    EXPECT_FALSE(std::filesystem::exists("-"));
    expect_refused(
        compare({"--html", "-", "--", kProbe}), 2,
        "two of --html, --export-csv, --export-markdown and the table name the same file, standard output; "
        "-o FILE writes the table elsewhere");
}

TEST(Compare, APreparationBeforeEachRun) {
    const Place mine(CLI_STANDIN);
    const std::string count = mine.write("prepared", "", 0644);
    const Ended ended = compare(
        {"-n", "2", "--warmup", "1", "--prepare", "echo >>" + count, "--", kProbe, "exit", "0"}, {}, mine);
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(read_file(count).size(), 6U) << "two runs to warm up, and two pairs";
    const Ended failed = compare({"-n", "1", "--prepare", "exit 3", "--", kProbe, "exit", "0"});
    EXPECT_EQ(failed.code(), 1);
    EXPECT_EQ(failed.err, "thrum compare: the --prepare command failed: exit code 3\n");
}

// --- Ctrl-C --------------------------------------------------------------------------------------------------

TEST(Compare, CtrlCGivesWhatWasSeen) {
    const Place mine(CLI_STANDIN);
    const std::string page = mine.path("page.html");
    const Ended ended =
        compare_script(mine, {"-n", "20", "--warmup", "0", "--html", page},
                       "echo $$ >$0/pid; test $n -lt 12 || { kill -INT $PPID; exec sleep 1000; }");
    EXPECT_EQ(ended.signal(), SIGINT);
    EXPECT_EQ(ended.err, "thrum compare: interrupted after 6 of 20 pairs of runs\n");
    EXPECT_NE(ended.out.find("\n6 of 20 pairs of runs, "), std::string::npos) << ended.out;
    expect_sound_page(read_file(page));
    EXPECT_EQ(kill(std::stoi(read_file(mine.path("pid"))), 0), -1) << "the program was ended";
}

TEST(Compare, CtrlCInTheWarmUp) {
    const Place mine(CLI_STANDIN);
    const Ended ended = compare_script(mine, {"--json"}, "kill -TERM $PPID; exec sleep 1000");
    EXPECT_EQ(ended.signal(), SIGTERM);
    EXPECT_EQ(ended.err, "thrum compare: interrupted before the first pair of runs was complete\n");
    EXPECT_EQ(json_value(ended.out, "d['complete'], d['wanted'], d['interrupted'], d['verdict']['kind']"),
              "0 None True none");
}

TEST(Compare, AProgramThatDoesNotHeedCtrlCIsEnded) {
    const Place mine(CLI_STANDIN);
    const Ended ended = compare_script(
        mine, {}, "trap '' INT TERM; echo $$ >$0/pid; kill -INT $PPID; sleep 1000; sleep 1000");
    EXPECT_EQ(ended.signal(), SIGINT);
    EXPECT_EQ(kill(std::stoi(read_file(mine.path("pid"))), 0), -1);
}

// --- with the real cache -------------------------------------------------------------------------------------

#ifdef CLI_CACHE
TEST(Compare, ThreadsAreCounted) {
    const Place real(CLI_CACHE);
    const std::string json = compare({"-n", "2", "--json", "--", kProbe, "hold", "40"}, {}, real).out;
    EXPECT_EQ(json_value(json, "d['summary']['threads']"), "40.0");
    EXPECT_EQ(json_value(json, "d['summary']['threads_reused'] > 0"), "True");
    EXPECT_EQ(json_value(json, "d['summary']['threads_reused'] + d['summary']['threads_created']"), "40.0");
    EXPECT_EQ(json_value(json, "d['pairs'][0]['without']['threads']"), "None");
}

TEST(Compare, ThreadsOfSeveralProcessesAreSummed) {
    const Place real(CLI_CACHE);
    const std::string both = "\"$0\" hold 5; \"$0\" hold 7 & wait; env \"$0\" hold 8";
    const std::string json =
        compare({"-n", "1", "--json", "--", "/bin/sh", "-c", both, kProbe}, {}, real).out;
    EXPECT_EQ(json_value(json, "d['summary']['threads']"), "20.0");
}

TEST(Compare, AProgramWithoutThreadsHasNone) {
    const Place real(CLI_CACHE);
    const std::string json = compare({"-n", "1", "--json", "--", kProbe, "exit", "0"}, {}, real).out;
    EXPECT_EQ(json_value(json, "d['summary']['threads']"), "0.0");
}

TEST(Compare, AFileThatIsNotMadeForTheTotalIsLeftAlone) {
    const Place real(CLI_CACHE);
    const std::string text(sizeof(struct thrum_cache_total), 'x');
    const std::string file = real.write("not-a-total", text, 0644);
    const std::string words =
        ": cannot be written, or does not begin as <thrum/cache.h> says; adding nothing to it\n";
    for (const std::string &path : {file, std::string("/no/such/file"), std::string("/dev/null")}) {
        const Ended ended = real.run({kProbe, "hold", "3"}, with({{"THRUM_CACHE_TOTAL", path}}));
        EXPECT_EQ(ended.err, "thrum: THRUM_CACHE_TOTAL=" + path + words);
        EXPECT_EQ(ended.out, "ready\n");
    }
    EXPECT_EQ(read_file(file), text);
}
#endif

} // namespace
