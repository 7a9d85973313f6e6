// SPDX-License-Identifier: Apache-2.0
#include "stat/nameless.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "stat/waits.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kWorthSaying = 0.05; // of waits for locks, or of CPU time
constexpr double kMuchInside = 0.3;   // of CPU time, in a library of which some names are known

// In a file, other than the kernel's pages ("[vdso]"), memory without a name ("//anon"), what is not known ("(unknown)"), or
// kMadeCode.
bool is_library(const Frame &frame) {
    return !frame.is_user && !frame.module.empty() && frame.module.find_first_of("[(/") != 0;
}

struct Module {
    bool has_names = false; // of what the program calls by its name at least
    bool is_users = false;  // it is the program's own: what of it has no name is how it calls libraries
    double waiting = 0, burning = 0; // shares of sites with a place in it that has none
    double inside = 0;               // of CPU time: the function that ran has none
};

void add(const std::vector<Site> &sites, double Module::*share, std::map<std::string, Module> &modules) {
    for (const Site &site : sites) {
        std::set<std::string> nameless;
        for (const Frame &frame : site.stack) {
            if (frame.is_user)
                modules[frame.module].is_users = true;
            if (!is_library(frame))
                continue;
            if (frame.function.empty())
                nameless.insert(frame.module);
            else
                modules[frame.module].has_names = true;
        }
        for (const std::string &module : nameless)
            modules[module].*share += site.share;
    }
}

// Of sites with a function in it that has no name.
double made_share(const std::vector<Site> &sites) {
    double share = 0;
    for (const Site &site : sites)
        if (std::any_of(site.stack.begin(), site.stack.end(), [](const Frame &frame) {
                return frame.module == kMadeCode && frame.function.empty();
            }))
            share += site.share;
    return share;
}

void add_made_code(const Report &report, std::vector<std::string> &sentences) {
    const double waiting = made_share(report.waits), burning = made_share(report.burns);
    if (std::max(waiting, burning) < kWorthSaying)
        return;
    sentences.push_back(
        "no names of code compiled at run time, which " + fixed(100 * std::max(waiting, burning), 0) +
        " % of " + (waiting > burning ? "waits for locks" : "CPU time") +
        " went through: let the program write them to /tmp/perf-PID.map "
        "(java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit, jcmd PID Compiler.perfmap, "
        "node --perf-basic-prof, python -X perf)");
}

} // namespace

std::vector<std::string> nameless_code(const Report &report) {
    std::map<std::string, Module> modules;
    add(report.waits, &Module::waiting, modules);
    add(report.burns, &Module::burning, modules);
    for (const Site &site : report.burns) // libc's are known well enough by what calls them
        if (!site.stack.empty() && is_library(site.stack.front()) && site.stack.front().function.empty() &&
            !is_of_libc(site.stack.front()))
            modules[site.stack.front().module].inside += site.share;
    std::vector<std::string> sentences;
    add_made_code(report, sentences);
    for (const auto &[name, module] : modules) {
        const double share = module.has_names ? module.inside : std::max(module.waiting, module.burning);
        if (module.is_users || share < (module.has_names ? kMuchInside : kWorthSaying))
            continue;
        const bool waits = !module.has_names && module.waiting >= module.burning;
        sentences.push_back("no debugging information: " + name +
                            ", a system library; functions in it, which " + fixed(100 * share, 0) + " % of " +
                            (waits ? "waits for locks" : "CPU time") + " went through, are unknown");
    }
    return sentences;
}

} // namespace thrum::stat
