// SPDX-License-Identifier: Apache-2.0
//
// cli/stat/python.hpp: tables of lines and memory that are made up, and a program of the system's Python.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "child.hpp"
#include "spawn.hpp"
#include "stat/layers.hpp"
#include "stat/python.hpp"
#include "stat/rules.hpp"
#include "tools/clock.hpp"

namespace {

using namespace thrum;
using namespace thrum::stat;

constexpr const char *kPython = "/usr/bin/python3";

// As the compiler writes it: form and length, then columns or differences.
unsigned char head(unsigned form, unsigned units) {
    return static_cast<unsigned char>(0x80 | form << 3 | (units - 1));
}

TEST(PythonStacks, Lines) {
    const std::vector<unsigned char> table = {
        head(13, 1), 0,                       // line 10, a unit, no columns
        head(11, 4), 4,           9,          // the next line
        head(0, 2),  0x12,                    // the same
        head(14, 3), 0x40 | 0x28, 1, 0, 1, 2, // 52 lines further, in two bytes
        head(15, 1),                          // none
        head(13, 8), 5,                       // two lines back
    };
    const auto line = [&table](long unit) { return python_line(table, 10, unit); };
    EXPECT_EQ(line(-1), 10) << "not begun";
    EXPECT_EQ(line(0), 10);
    EXPECT_EQ(line(1), 11);
    EXPECT_EQ(line(4), 11);
    EXPECT_EQ(line(5), 11);
    EXPECT_EQ(line(6), 11);
    EXPECT_EQ(line(7), 63);
    EXPECT_EQ(line(9), 63);
    EXPECT_EQ(line(10), 0);
    EXPECT_EQ(line(11), 61);
    EXPECT_EQ(line(18), 61);
    EXPECT_EQ(python_line({}, 7, 3), 7);
    EXPECT_EQ(python_line({head(14, 1)}, 7, 0), 7) << "cut off";
}

std::vector<Frame> native() {
    std::vector<Frame> stack(5);
    const char *const names[] = {"pthread_cond_timedwait", "", "_PyEval_EvalFrameDefault", "",
                                 "PyEval_EvalCode"};
    for (std::size_t i = 0; i < stack.size(); i++) {
        stack[i].function = names[i];
        stack[i].module = i == 0 ? "libc.so.6" : "python3.11";
        stack[i].is_user = i != 0;
    }
    return stack;
}

TEST(PythonStacks, StandInTheInterpretersPlace) {
    Frame compute;
    compute.function = "compute";
    compute.file = "gil.py";
    compute.line = 17;
    compute.is_user = true;
    const std::vector<Frame> merged = with_python(native(), {compute});
    ASSERT_EQ(merged.size(), 4U);
    EXPECT_EQ(merged[2].function, "_PyEval_EvalFrameDefault");
    EXPECT_EQ(merged[3].function, "compute");
    EXPECT_EQ(std::count_if(merged.begin(), merged.end(), [](const Frame &frame) { return frame.is_user; }),
              1);
    EXPECT_EQ(with_python(native(), {}).size(), 5U) << "nothing is known of it";
}

// A program of threads that fight for the interpreter, until it is ended.
class Script {
  public:
    explicit Script(const std::string &text) : child_({kPython, written(text)}) {}
    ~Script() {
        unlink(path().c_str());
        rmdir(folder().c_str());
    }
    Script(const Script &) = delete;
    Script &operator=(const Script &) = delete;
    Child &child() { return child_; }

  private:
    static std::string folder() {
        return testing::TempDir() + "thrum-stat-python-" + std::to_string(getpid());
    }
    static std::string path() { return folder() + "/fight.py"; }
    static std::string written(const std::string &text) {
        mkdir(folder().c_str(), 0755);
        std::ofstream(path()) << text;
        return path();
    }

    Child child_;
};

constexpr const char *kFight = "import threading\n"                           // 1
                               "def count():\n"                               // 2
                               "    total = 0\n"                              // 3
                               "    while True:\n"                            // 4
                               "        total = (total * 31 + 1) % 1000003\n" // 5
                               "class Café:\n"                                // 6
                               "    def serve(self):\n"                       // 7
                               "        count()\n"                            // 8
                               "for i in range(3):\n"                         // 9
                               "    threading.Thread(target=Café().serve).start()\n";

Report sampled(double patience) {
    Script script(kFight);
    Sampler sampler(200, 0.5);
    sampler.forked(script.child().pid());
    script.child().go();
    const double begin = seconds_now();
    const auto is_enough = [&sampler] {
        return std::count_if(sampler.samples.begin(), sampler.samples.end(),
                             [](const ProcSample &sample) { return sample.python != SIZE_MAX; }) > 60;
    };
    while (!is_enough() && seconds_now() - begin < patience) {
        sampler.poll(seconds_now() - begin);
        usleep(3000);
    }
    Report report;
    add_samples(report, sampler, seconds_now() - begin);
    return report;
}

bool has_warning(const Report &report, const std::string &piece) {
    return std::any_of(report.warnings.begin(), report.warnings.end(),
                       [&](const std::string &warning) { return warning.find(piece) != std::string::npos; });
}

// Of versions whose memory is not known it is said that it is not.
TEST(PythonStacks, OfAProgram) {
    if (access(kPython, X_OK) != 0)
        GTEST_SKIP() << "there is no " << kPython;
    const std::string version =
        spawn({kPython, "-c", "import sys; print('%d.%d' % sys.version_info[:2], end='')"}).out;
    const Report report = sampled(version == "3.11" ? 30 : 2);
    if (version != "3.11") {
        EXPECT_TRUE(has_warning(report, "functions of the Python program are unknown")) << version;
        return;
    }
    double share = 0;
    std::string text; // of all
    for (const Site &site : report.waits) {
        text += std::to_string(site.share);
        for (const Frame &frame : site.stack)
            text += " <- " + frame.function + ":" + std::to_string(frame.line);
        text += "\n";
        const auto at = std::find_if(site.stack.begin(), site.stack.end(),
                                     [](const Frame &frame) { return frame.function == "count"; });
        if (site.stack.end() - at < 3)
            continue;
        share += site.share;
        EXPECT_EQ(at->file, "fight.py");
        EXPECT_TRUE(at->line == 4 || at->line == 5) << at->line;
        EXPECT_TRUE(at->is_user);
        EXPECT_EQ((at + 1)->function, "Café.serve");
        EXPECT_EQ((at + 1)->line, 8);
        EXPECT_EQ((at + 2)->function, "Thread.run");
        EXPECT_EQ((at + 2)->file, "threading.py");
        EXPECT_FALSE((at + 2)->is_user) << "it is Python's own";
    }
    EXPECT_GT(share, 0.3) << text; // the others start, and have no Python code yet
    ASSERT_FALSE(report.locks.empty());
    EXPECT_NE(report.locks.front().lock.text.find("global interpreter lock"), std::string::npos);
}

} // namespace
