// SPDX-License-Identifier: Apache-2.0
//
// `thrum stat` from outside: its command line, what it starts and how often, the streams and the end of the program. No
// test looks at how long something took.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "documents.hpp"
#include "place.hpp"
#include "stat/sweep.hpp"
#include "tools/machine.hpp"

namespace {

Ended thrum_stat(Words words, const World &world = {}) {
    words.insert(words.begin(), {place().thrum(), "stat"});
    return spawn(words, world);
}

// A shell script that writes its arguments, and what else `text` says, into a fresh file for each test.
struct Script {
    explicit Script(const std::string &text)
        : log(place().path("stat-log")),
          path(place().write("stat-script", "#!/bin/sh\necho \"$@\" >>" + log + "\n" + text)) {
        std::filesystem::remove(log);
    }
    std::string ran() const { return std::filesystem::exists(log) ? read_file(log) : ""; }
    std::string log, path;
};

struct Wrong {
    Words words;
    std::string line;
};

const std::string kPidOnly = "thrum stat: -p observes a running process; it combines only with --seconds, "
                             "--json, --html, --trace, --folded, -o, --locks, --no-profile and --no-follow";
const std::string kTold = "thrum stat: --sweep needs a way to tell the program the number of threads: write "
                          "{} in its arguments, or give --threads-env NAME or --by-affinity";

std::string bad_sweep(const std::string &text) {
    return "thrum stat: --sweep takes numbers of threads from 1 to 100000, as 1,2,4 or 1-4, not '" + text +
           "'";
}

const Wrong kWrong[] = {
    {{}, "thrum stat: missing program: thrum stat [OPTIONS] -- PROG ARGS..."},
    {{"--json", "--"}, "thrum stat: missing program: thrum stat [OPTIONS] -- PROG ARGS..."},
    {{"--bogus", "true"}, "thrum stat: unknown option '--bogus'; see thrum stat --help"},
    {{"--exact=1", "true"}, "thrum stat: --exact takes no value; see thrum stat --help"},
    {{"--html", "x", "--folded", "x", "--", "true"},
     "thrum stat: two of --html, --trace, --folded and -o name the same file, x"},
    {{"--sweep"}, "thrum stat: --sweep needs a value; see thrum stat --help"},
    {{"--sweep", "", "--", "true", "{}"}, bad_sweep("")},
    {{"--sweep", "1,x", "--", "true", "{}"}, bad_sweep("1,x")},
    {{"--sweep", "0,1", "--", "true", "{}"}, bad_sweep("0,1")},
    {{"--sweep", "4-1", "--", "true", "{}"}, bad_sweep("4-1")},
    {{"--sweep", "1,,2", "--", "true", "{}"}, bad_sweep("1,,2")},
    {{"--sweep", "1-65", "--", "true", "{}"},
     "thrum stat: --sweep takes at most 64 numbers; '1-65' has more"},
    {{"--sweep", "1,2", "--", "true"}, kTold},
    {{"--sweep", "1,2", "--", "{}", "x"}, kTold},
    {{"--sweep", "1,100000", "--by-affinity", "--", "true"}, ""},
    {{"--threads-env", "", "--", "true"}, "thrum stat: --threads-env takes a variable name, not ''"},
    {{"--threads-env", "A=1", "--", "true"}, "thrum stat: --threads-env takes a variable name, not 'A=1'"},
    {{"-n", "0", "--", "true"}, "thrum stat: -n takes a whole number from 1 to 1000, not '0'"},
    {{"--runs", "x", "--", "true"}, "thrum stat: -n takes a whole number from 1 to 1000, not 'x'"},
    {{"--html", "", "--", "true"}, "thrum stat: --html takes a file name, not ''"},
    {{"--trace", "", "--", "true"}, "thrum stat: --trace takes a file name, not ''"},
    {{"--folded", "", "--", "true"}, "thrum stat: --folded takes a file name, not ''"},
    {{"--seconds", "1", "--", "true"}, "thrum stat: --seconds needs -p; a program is observed until it ends"},
    {{"--seconds", "x", "-p", "1"}, "thrum stat: --seconds takes seconds from 0.001 to 86400, not 'x'"},
    {{"-p", "abc"}, "thrum stat: PID is a process number from 1 to 2147483647, not 'abc'"},
    {{"-p", "1", "--", "true"}, "thrum stat: -p PID and a program exclude each other"},
    {{"-p", "1", "--exact"}, kPidOnly},
    {{"-p", "1", "--timeout", "3"}, kPidOnly},
    {{"-p", "1", "--sweep", "1,2"}, kPidOnly},
};

TEST(StatUsage, EveryMistakeIsOneLineAndTwo) {
    for (const Wrong &wrong : kWrong) {
        const Ended ended = thrum_stat(wrong.words);
        if (wrong.line.empty())
            EXPECT_NE(ended.err.find("thrum stat: --by-affinity can give a program 1 to "),
                      std::string::npos);
        else
            EXPECT_EQ(ended.err, wrong.line + "\n");
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
        EXPECT_EQ(ended.out, "");
        EXPECT_EQ(ended.code(), 2) << wrong.line;
    }
}

TEST(StatUsage, RefusesWhatCannotBeStarted) {
    EXPECT_EQ(thrum_stat({"--", "no-such-program"}).code(), 127);
    const std::string plain = place().write("stat-not-executable", "text\n", 0644);
    EXPECT_EQ(thrum_stat({"--", plain}).code(), 126);
    const Ended input = thrum_stat({"--input", "/no/such/input", "--", "true"});
    EXPECT_EQ(input.err, "thrum stat: cannot open /no/such/input: No such file or directory\n");
    EXPECT_EQ(input.code(), 1);
    const Ended page = thrum_stat({"--html", "/no/such/page", "--", "true"});
    EXPECT_EQ(page.err, "thrum stat: cannot write /no/such/page: No such file or directory\n");
    EXPECT_EQ(page.code(), 1);
    EXPECT_EQ(thrum_stat({"-p", "2147483647"}).code(), 1);
}

// --- what is run --------------------------------------------------------------------------------------------

TEST(StatUsage, WithoutASweepItRunsOnce) {
    const Script script("echo OUT; echo ERR >&2; cat\n");
    World world;
    world.input = "IN\n";
    const Ended ended = thrum_stat({"--", script.path, "a", "b"}, world);
    EXPECT_EQ(script.ran(), "a b\n");
    EXPECT_EQ(ended.out, "OUT\nIN\n") << "nothing but the program's";
    EXPECT_EQ(ended.err.compare(0, 4, "ERR\n"), 0) << ended.err;
    EXPECT_NE(ended.err.find("\nVERDICT "), std::string::npos) << ended.err;
    EXPECT_EQ(ended.code(), 0);
}

TEST(StatUsage, ASweepRunsEachNumberAndShowsTheFirst) {
    const Script script("echo OUT $T $*\n");
    const Ended ended = thrum_stat({"--sweep", "2,1", "--threads-env", "T", "--no-profile", "-n", "2", "--",
                                    script.path, "n={}", "{}{}"});
    EXPECT_EQ(script.ran(), "n=1 11\n" // to warm up
                            "n=1 11\nn=2 22\nn=2 22\nn=1 11\n"
                            "n=2 22\n"); // to be sampled
    EXPECT_EQ(ended.out, "OUT 1 n=1 11\n");
    EXPECT_EQ(ended.code(), 0);
    const Ended all =
        thrum_stat({"--sweep", "1", "--show-output", "--no-profile", "-n", "1", "--", script.path, "{}"});
    EXPECT_EQ(all.out, "OUT 1\nOUT 1\nOUT 1\n");
}

// The numbers of the sweep that is made where none is asked for: the first to warm up, each once, and the last to be looked
// at; each on a line of its own.
std::string default_lines() {
    const std::vector<unsigned> numbers = thrum::stat::default_sweep(thrum::this_machine().processors);
    std::string lines = std::to_string(numbers.front()) + "\n";
    for (const unsigned number : numbers)
        lines += std::to_string(number) + "\n";
    return lines + std::to_string(numbers.back()) + "\n";
}

TEST(StatUsage, AWayToPassTheNumberNeedsASweep) {
    const Script variable("echo $T >>$0.told\n");
    std::filesystem::remove(variable.path + ".told");
    const Ended ended =
        thrum_stat({"--threads-env", "T", "--no-profile", "-n", "1", "--json", "--", variable.path});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(read_file(variable.path + ".told"), default_lines());
    EXPECT_EQ(json_value(ended.out,
                         "d['points'][0]['threads'], len(d['points']) == len({p['threads'] for p in "
                         "d['points']})"),
              "1 True");
    const Script affinity("nproc >>$0.cpus\n");
    std::filesystem::remove(affinity.path + ".cpus");
    EXPECT_EQ(thrum_stat({"--by-affinity", "--no-profile", "-n", "1", "--", affinity.path}).code(), 0);
    EXPECT_EQ(read_file(affinity.path + ".cpus"), default_lines());
}

// Bare ones, the first of which is the user's, and one more that is looked at.
TEST(StatUsage, RunsThatAreAskedForWithoutASweep) {
    const Script script("echo OUT\n");
    const Ended ended = thrum_stat({"-n", "3", "--no-profile", "--json", "--", script.path, "a"});
    EXPECT_EQ(script.ran(), "a\na\na\na\n");
    EXPECT_EQ(ended.err, "OUT\n");
    EXPECT_EQ(json_value(ended.out, "d['outcome'], len(d['points']), d['points'][0]['threads'], "
                                    "d['points'][0]['runs'], d['points'][0]['wall']['count']"),
              "one_run 1 None 3 3");
    EXPECT_EQ(json_value(ended.out, "any('medians of bare runs' in line for line in d['how_known']), "
                                    "any('run once' in line for line in d['how_known'])"),
              "True False");
}

TEST(StatUsage, BracesWithoutASweepAreTheProgramsOwn) {
    const Script script("");
    const std::string note = "the {} was passed to the program as it is: there is no --sweep";
    for (const bool asked : {false, true}) {
        const Ended ended = asked
                                ? thrum_stat({"-n", "1", "--no-profile", "--json", "--", script.path, "x={}"})
                                : thrum_stat({"--no-profile", "--json", "--", script.path, "x={}"});
        EXPECT_EQ(json_value(ended.out, "'" + note + "' in d['warnings'], d['command'][1:]"),
                  "True ['x={}']");
    }
    EXPECT_EQ(script.ran(), "x={}\nx={}\nx={}\n");
    const Ended without = thrum_stat({"--no-profile", "--json", "--", script.path, "x"});
    EXPECT_EQ(json_value(without.out, "'" + note + "' in d['warnings']"), "False");
}

// --- what is bare --------------------------------------------------------------------------------------------

#ifdef CLI_STAT

// Says for each run what of ours there is in the program's environment.
struct Environments {
    Environments() { std::filesystem::remove(script.path + ".found"); }
    std::string found() const { return read_file(script.path + ".found"); }
    Script script{"echo \"$1${LD_PRELOAD:+ preloaded}${THRUM_STAT:+ told}\" >>$0.found\n"};
};

const std::string kBareOnes = "1\n" // to warm up
                              "1\n2\n2\n1\n";

TEST(StatUsage, BareRunsAreBare) {
    const Environments environments;
    const Ended ended = spawn({CLI_THRUM, "stat", "--sweep", "1,2", "-n", "2", "--no-profile", "--exact",
                               "--", environments.script.path, "{}"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(environments.found(), kBareOnes + "2\n" // sampled, from outside
                                                "2 preloaded told\n");
}

// What a filter forbids to the library ends the program.
TEST(StatUsage, HowToDoWithoutTheLibraryIsSaid) {
    const Script script("test -z \"$THRUM_STAT\" || kill -SYS $$\n");
    const std::string begin = "SIGSYS ends a program that makes a system call";
    const Ended exact = spawn({CLI_THRUM, "stat", "--no-profile", "--exact", "--", script.path});
    const std::string said =
        json_value(spawn({CLI_THRUM, "stat", "--no-profile", "--exact", "--json", "--", script.path}).out,
                   "[w for w in d['warnings'] if w.startswith('" + begin + "')]");
    EXPECT_NE(said.find("without --exact the program runs without that library"), std::string::npos) << said;
    EXPECT_NE(exact.err.find("next: thrum stat --html\n"), std::string::npos) << exact.err;
    const Ended timer = spawn({CLI_SAMPLED_O2, "confined", CLI_THRUM, "stat", "--json", "--", script.path});
    EXPECT_NE(json_value(timer.out, "d['warnings']")
                  .find("with --no-profile the program runs without that library"),
              std::string::npos)
        << timer.out;
    const Ended bare =
        spawn({CLI_THRUM, "stat", "--no-profile", "--json", "--", "/bin/sh", "-c", "kill -SYS $$"});
    EXPECT_EQ(json_value(bare.out, "d['warnings']").find(begin), std::string::npos) << bare.out;
}

// The profile is made inside the program where perf events are refused.
TEST(StatUsage, BareRunsAreBareWithATimerInTheOthers) {
    const Environments environments;
    const Ended ended = spawn({CLI_SAMPLED_O2, "confined", CLI_THRUM, "stat", "--sweep", "1,2", "-n", "2",
                               "--", environments.script.path, "{}"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(environments.found(), kBareOnes + "2 preloaded told\n1 preloaded told\n");
}

// What the user has preloads stays there, and nothing comes to it.
TEST(StatUsage, BareRunsHaveTheUsersEnvironment) {
    const Environments environments;
    const Script &script = environments.script;
    place().write("stat-script", "#!/bin/sh\necho $LD_PRELOAD >>$0.found\n");
    const Ended ended = spawn(
        {CLI_THRUM, "stat", "--sweep", "1", "-n", "1", "--no-profile", "--exact", "--", script.path, "{}"},
        with({{"LD_PRELOAD", CLI_STANDIN}}));
    EXPECT_EQ(ended.code(), 0) << ended.err;
    const std::string own = std::string(CLI_STANDIN) + "\n";
    const std::string found = environments.found();
    EXPECT_EQ(found.compare(0, 3 * own.size(), own + own + own), 0) << found;
    EXPECT_NE(found.find(".so:" + own, 3 * own.size()), std::string::npos) << "ours before the user's\n"
                                                                           << found;
}

#endif

// What a bare run's times are held against: three threads that have one CPU between them, whatever else the machine does.
TEST(StatUsage, HowLongThreadsWantedACpu) {
    const Ended ended = thrum_stat({"--sweep", "1", "--by-affinity", "--no-profile", "-n", "1", "--json",
                                    "--", CLI_WATCHED, "spin", "3", "150000000"});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(json_value(ended.out, "d['points'][0]['most_threads']"), "4");
    if (std::filesystem::exists("/proc/self/schedstat")) {
        EXPECT_EQ(json_value(ended.out, "d['points'][0]['run_delay'] > 0.5 * d['points'][0]['cpu'] > 0"),
                  "True")
            << json_value(ended.out, "d['points']") << "\ntwice as long, all together, as one of them ran";
    }
    const bool has_pressure = std::filesystem::exists("/proc/pressure/cpu");
    EXPECT_EQ(json_value(ended.out, "d['points'][0]['load']['waited'] is not None"),
              has_pressure ? "True" : "False");
    if (has_pressure) {
        // The kernel takes the mean of the CPUs that have something to do; on the others no task may have to wait.
        EXPECT_EQ(
            json_value(ended.out, "0.5 / d['machine']['processors'] < d['points'][0]['load']['waited'] <= 1"),
            "True")
            << json_value(ended.out, "d['points'][0]['load']");
    }
}

TEST(StatUsage, ByAffinityGivesThatManyCPUs) {
    const Script script("nproc >>$0.cpus\n");
    std::filesystem::remove(script.path + ".cpus");
    EXPECT_EQ(
        thrum_stat({"--sweep", "1", "--by-affinity", "--no-profile", "-n", "1", "--", script.path}).code(),
        0);
    EXPECT_EQ(read_file(script.path + ".cpus"), "1\n1\n1\n");
}

TEST(StatUsage, AnInputIsReadByEachRun) {
    const Script script("wc -c >>$0.sizes\n");
    std::filesystem::remove(script.path + ".sizes");
    const std::string input = place().write("stat-input", "four", 0644);
    EXPECT_EQ(
        thrum_stat({"--sweep", "1", "--input", input, "-n", "1", "--no-profile", "--", script.path, "{}"})
            .code(),
        0);
    EXPECT_EQ(read_file(script.path + ".sizes"), "4\n4\n4\n");
}

TEST(StatUsage, JsonIsAllOfStandardOutput) {
    const Ended ended = thrum_stat({"--json", "--", "/bin/sh", "-c", "echo OUT"});
    EXPECT_EQ(ended.out.compare(0, 1, "{"), 0) << ended.out;
    EXPECT_EQ(ended.err, "OUT\n");
}

TEST(StatUsage, AFileThatCannotBeWrittenCostsNoReport) {
    if (access("/dev/full", W_OK) != 0)
        GTEST_SKIP() << "there is no /dev/full";
    const Ended page = thrum_stat({"--no-profile", "--html", "/dev/full", "--", "/bin/true"});
    EXPECT_EQ(page.code(), 1);
    EXPECT_NE(page.err.find("VERDICT"), std::string::npos) << page.err;
    EXPECT_NE(page.err.find("cannot write /dev/full"), std::string::npos) << page.err;
    const Ended report =
        spawn({"/bin/sh", "-c", "exec \"$0\" stat --no-profile -- /bin/true 2>/dev/full", place().thrum()});
    EXPECT_EQ(report.code(), 1) << "no process has it";
}

// --- how it ends --------------------------------------------------------------------------------------------

TEST(StatUsage, TheEndIsTheProgramsOwn) {
    const Ended code = thrum_stat({"--", "/bin/sh", "-c", "exit 7"});
    EXPECT_EQ(code.code(), 7);
    EXPECT_NE(code.err.find("VERDICT"), std::string::npos) << "and there is a report";
    const Ended died = thrum_stat({"--", "/bin/sh", "-c", "kill -SEGV $$"});
    EXPECT_EQ(died.signal(), SIGSEGV);
    EXPECT_NE(died.err.find("signal 11"), std::string::npos) << died.err;
    EXPECT_EQ(thrum_stat({"--sweep", "1", "--no-profile", "-n", "1", "--", "/bin/sh", "-c", "exit $0", "{}"})
                  .code(),
              1);
}

TEST(StatUsage, ASweepOfAProgramThatFailsIsOver) {
    const Script script("test $1 = 1 || kill -ABRT $$\n");
    const Ended ended = thrum_stat({"--sweep", "1,2,4", "--no-profile", "-n", "3", "--", script.path, "{}"});
    EXPECT_EQ(script.ran(), "1\n1\n2\n");
    EXPECT_EQ(ended.signal(), SIGABRT);
    EXPECT_NE(ended.err.find("with 2 threads"), std::string::npos) << ended.err;
}

TEST(StatUsage, CtrlCGivesWhatWasSeen) {
    const Script script(
        "test -e $0.again && { kill -INT $PPID; exec sleep 1000; }; test $1 = 1 || : >$0.again\n");
    std::filesystem::remove(script.path + ".again");
    const Ended ended = thrum_stat({"--sweep", "1,2", "--no-profile", "-n", "9", "--", script.path, "{}"});
    EXPECT_EQ(ended.signal(), SIGINT);
    EXPECT_NE(ended.err.find("VERDICT"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("interrupted"), std::string::npos) << ended.err;
    EXPECT_EQ(script.ran(), "1\n1\n2\n2\n");
}

TEST(StatUsage, CtrlCInTheOnlyRunIsForTheProgram) {
    const Ended ended =
        thrum_stat({"--", "/bin/sh", "-c",
                    "trap 'echo CAUGHT; exit 5' INT; kill -INT $PPID; while :; do sleep 0.1; done"});
    EXPECT_EQ(ended.out, "CAUGHT\n");
    EXPECT_NE(ended.err.find("VERDICT"), std::string::npos) << ended.err;
    EXPECT_EQ(ended.code(), 5);
}

// The others were waiting when one of them crashed: what for can be read, the cause is the crash alone, and nothing is different
// for the caller.
void expect_crash(const Ended &ended) {
    EXPECT_EQ(ended.signal(), SIGSEGV);
    EXPECT_EQ(json_value(ended.out, "d['signal'], d['exit_code'], d['interrupted']"), "11 0 False");
    EXPECT_EQ(json_value(ended.out, "any('signal 11' in line for line in d['warnings'])"), "True");
#ifdef CLI_ELFUTILS
    EXPECT_EQ(json_value(ended.out,
                         "len(d['findings']), d['findings'][0]['cause'], d['locks'][0]['lock']['symbol']"),
              "1 The program was ended by signal 11 (Segmentation fault) pot_lock")
        << json_value(ended.out, "d['findings']");
#endif
}

Words before_crash(Words words) {
    words.insert(words.end(), {CLI_WATCHED, "crash", "4", "400"});
    return words;
}

// A program that handles the first one and does not end, as one that is stuck: the second one is its end, not the report's.
TEST(StatUsage, ASecondInterruptKillsTheProgramAndTheReportFollows) {
    const std::string program = std::string("trap '' INT; echo ready; exec ") + CLI_SAMPLED_O2 + " sleep 1";
    const Ended ended = spawn({"/usr/bin/python3", "-c", R"(
import json, signal, subprocess, sys, time
running = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
assert running.stderr.readline() == 'ready\n'
for _ in range(2):
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
report = json.loads(running.communicate(timeout=60)[0])
print(running.returncode, report['interrupted'], report['samples'] > 0, report['signal'], end='')
)",
                               place().thrum(), "stat", "--json", "--", "/bin/sh", "-c", program});
    EXPECT_EQ(ended.out, "-2 True True 9") << ended.err;
}

TEST(StatUsage, AThreadThatCrashes) {
    expect_crash(thrum_stat(before_crash({"--json", "--"})));
    const Ended shell =
        spawn(before_crash({"/bin/sh", "-c", "\"$@\"; echo $?", "sh", CLI_THRUM, "stat", "--"}));
    EXPECT_EQ(shell.out, "139\n");
    EXPECT_NE(shell.err.find("signal 11"), std::string::npos) << shell.err;
    EXPECT_NE(shell.err.find("VERDICT"), std::string::npos) << shell.err;
}

#ifdef CLI_STAT
TEST(StatUsage, AThreadThatCrashesWithATimerInIt) {
    expect_crash(spawn(before_crash({CLI_SAMPLED_O2, "confined", CLI_THRUM, "stat", "--json", "--"})));
}
#endif

// --- programs out of the ordinary ---------------------------------------------------------------------------

void expect_hidden_lock(const Ended &ended) {
    ASSERT_EQ(ended.code(), 3) << ended.err;
#ifdef CLI_ELFUTILS
    EXPECT_EQ(json_value(ended.out, "d['findings'][0]['rule'], 'putc' in d['findings'][0]['cause']"),
              "hidden-lock True")
        << ended.out.substr(0, 4000);
#endif
}

TEST(StatUsage, TenThousandThreads) {
    const Ended ended = thrum_stat({"--json", "--", CLI_SAMPLED_O2, "crowd", "10000"});
    expect_hidden_lock(ended);
    EXPECT_EQ(ended.err, "10000 threads\n");
    EXPECT_EQ(json_value(ended.out, "d['points'][0]['most_threads'], d['waits'][0]['doing']"),
              "10001 lock_wait");
}

// They end before any look: two that were created, and the thread that did it, are not "1 thread".
TEST(StatUsage, ThreadsThatNoLookHasSeenWereThere) {
    const Ended ended = thrum_stat({"--json", "--", CLI_PROBE, "hold", "2"});
    EXPECT_EQ(json_value(ended.out, "d['threads_created'], d['points'][0]['most_threads']"), "2 2")
        << ended.err;
}

// What the command has left alone; one number on a line.
void kill_all(const std::string &numbers) {
    std::istringstream lines(numbers);
    for (pid_t number; lines >> number;)
        EXPECT_EQ(kill(number, SIGKILL), 0) << number << " has ended before";
}

// Those that stay do so until the command has ended, however long that takes.
TEST(StatUsage, ADaemonIsLeftAlone) {
    const Ended ended = thrum_stat({"--", CLI_SAMPLED_O2, "daemon"});
    EXPECT_EQ(ended.code(), 4);
    kill_all(ended.out);
    EXPECT_NE(ended.err.find("VERDICT"), std::string::npos) << ended.err;
    const bool is_told =
        ended.err.find("perf events are refused") == std::string::npos; // of processes, by the kernel
    EXPECT_EQ(ended.err.find("kept running when it ended") != std::string::npos, is_told) << ended.err;
    const Script script("sleep 60 </dev/null >/dev/null 2>&1 & echo $! >>$0.left\n");
    std::filesystem::remove(script.path + ".left");
    const Ended swept =
        thrum_stat({"--sweep", "1", "-n", "1", "--no-profile", "--threads-env", "T", "--", script.path});
    EXPECT_EQ(swept.code(), 0);
    kill_all(read_file(script.path + ".left"));
    EXPECT_NE(swept.err.find("left processes running"), std::string::npos) << swept.err;
}

// Names that mean something else there: numbers of processes, users, mounts.
TEST(StatUsage, InAContainersNamespaces) {
    Words inside = {"/usr/bin/unshare", "-p", "-f", "--mount-proc"};
    if (getuid() != 0) // to be root there, and an ordinary user here
        inside.insert(inside.end(), {"-U", "-r"});
    const auto within = [&inside](const Words &words) {
        Words all = inside;
        all.insert(all.end(), words.begin(), words.end());
        return spawn(all);
    };
    if (within({"/bin/true"}).code() != 0)
        GTEST_SKIP() << "no namespaces of one's own here";
    expect_hidden_lock(within({place().thrum(), "stat", "--json", "--", CLI_SAMPLED_O2, "crowd", "3"}));
}

// What it forbids is done another way, and said.
TEST(StatUsage, InAConfinedContainer) {
    const Ended ended = spawn(
        {CLI_SAMPLED_O2, "confined", place().thrum(), "stat", "--json", "--", CLI_SAMPLED_O2, "crowd", "3"});
    expect_hidden_lock(ended);
    EXPECT_NE(ended.out.find("perf events are refused"), std::string::npos) << ended.out;
}

// --- what is refused -----------------------------------------------------------------------------------------

// Says it, and does without.
void expect_no_profile(const std::string &program, const std::string &why) {
    const Ended ended = spawn({CLI_SAMPLED_O2, "confined", CLI_THRUM, "stat", "--json", "--", program});
    EXPECT_EQ(ended.code(), 0) << ended.err;
    EXPECT_EQ(json_value(ended.out, "d['profile_source'], d['burns']"), "None []");
    EXPECT_EQ(
        json_value(
            ended.out,
            "[line for line in d['warnings'] if line.startswith('no CPU profile: perf events are refused "
            "(') and ', and ' in line and '" +
                why + "' in line] != []"),
        "True")
        << json_value(ended.out, "d['warnings']");
    EXPECT_EQ(ended.out.find("without thrum"), std::string::npos) << "the report is there";
}

#ifdef CLI_STATIC_PROGRAM
TEST(StatUsage, NoProfileAtAllIsSaid) {
    expect_no_profile(CLI_STATIC_PROGRAM, "is statically linked");
    const Ended text = spawn({CLI_SAMPLED_O2, "confined", CLI_THRUM, "stat", "--", CLI_STATIC_PROGRAM});
    EXPECT_NE(text.err.find("no CPU profile: perf events are refused"), std::string::npos) << text.err;
}
#endif

#ifdef CLI_MUSL_PROGRAM
TEST(StatUsage, NoProfileOfAProgramOfMuslsIsSaid) {
    expect_no_profile(CLI_MUSL_PROGRAM, "is linked against musl");
}
#endif

#ifdef CLI_STAT
// With libthrum-stat.so, where any user may read it.
const Place &place_with_probe() {
    static const Place the_place(CLI_STANDIN, "with-probe");
    static const std::string library = the_place.copy(CLI_STAT, "lib/libthrum-stat.so", 0644);
    return the_place;
}

// Before anything is run, in one line.
void expect_refusal(const std::string &program, const std::string &why) {
    constexpr uid_t kNoLife = 65534;
    World world;
    world.user = getuid() == 0 ? kNoLife : 0;
    const Place &here = place_with_probe();
    for (const Words &options :
         {Words{"--exact"}, Words{"--exact", "--sweep", "1,2", "--threads-env", "T"}}) {
        Words words = {here.thrum(), "stat"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {"--", program});
        const Ended ended = spawn(words, world);
        EXPECT_EQ(ended.code(), 125) << ended.err;
        EXPECT_EQ(ended.out, "");
        EXPECT_EQ(ended.err.find("thrum stat: " + program + " " + why), 0U) << ended.err;
        EXPECT_NE(ended.err.find("; leave out --exact, or run it as root\n"), std::string::npos) << ended.err;
        EXPECT_EQ(ended.err.find("without thrum"), std::string::npos) << ended.err;
        EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    }
}

#ifdef CLI_STATIC_PROGRAM
TEST(StatUsage, ExactIsRefusedForAStaticProgram) {
    expect_refusal(place_with_probe().copy(CLI_STATIC_PROGRAM, "static"), "is statically linked");
}
#endif

#ifdef CLI_MUSL_PROGRAM
TEST(StatUsage, ExactIsRefusedForAProgramOfMusls) {
    expect_refusal(place_with_probe().copy(CLI_MUSL_PROGRAM, "musl"), "is linked against musl");
}
#endif

TEST(StatUsage, ExactIsRefusedForAProgramWithASanitizer) {
    expect_refusal(place_with_probe().copy(CLI_PROBE_ASAN_LINKED, "sanitized"),
                   "is built with AddressSanitizer");
}
#endif

TEST(StatUsage, SignalsAreInherited) {
    World world;
    world.ignore_and_block = true;
    const Ended ended =
        thrum_stat({"--", "/bin/sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"}, world);
    const Ended bare = spawn({"/bin/sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"}, world);
    EXPECT_EQ(ended.out, bare.out);
}

} // namespace
