// SPDX-License-Identifier: Apache-2.0
#include "stat/nameless.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "text.hpp"

namespace thrum::stat {

namespace {

constexpr double kWorthSaying = 0.05; // of waits for locks, or of CPU time

// In a file, other than the kernel's pages ("[vdso]"), memory without a name ("//anon") and what is not known ("(unknown)").
bool is_library(const Frame &frame) {
    return !frame.is_user && !frame.module.empty() && frame.module.find_first_of("[(/") != 0;
}

struct Module {
    bool has_names = false;          // of what the program calls by its name at least
    double waiting = 0, burning = 0; // shares of sites with a place in it that has none
};

void add(const std::vector<Site> &sites, double Module::*share, std::map<std::string, Module> &modules) {
    for (const Site &site : sites) {
        std::set<std::string> nameless;
        for (const Frame &frame : site.stack) {
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

} // namespace

std::vector<std::string> nameless_libraries(const Report &report) {
    std::map<std::string, Module> modules;
    add(report.waits, &Module::waiting, modules);
    add(report.burns, &Module::burning, modules);
    std::vector<std::string> sentences;
    for (const auto &[name, module] : modules) {
        const double share = std::max(module.waiting, module.burning);
        if (module.has_names || share < kWorthSaying)
            continue;
        const bool waits = module.waiting >= module.burning;
        sentences.push_back("no debugging information: " + name +
                            ", a library of the system; functions in it, which " + fixed(100 * share, 0) +
                            " % of " + (waits ? "waits for locks" : "CPU time") +
                            " went through, are not known");
    }
    return sentences;
}

} // namespace thrum::stat
