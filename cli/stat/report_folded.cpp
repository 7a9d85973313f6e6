// SPDX-License-Identifier: Apache-2.0
//
// --folded: a line for each stack, outermost function first, and how many samples of it there are: what flamegraph.pl,
// inferno and speedscope read. Stacks of lock waits are as they are; others have what the thread did as their innermost
// function, as in "main;sum;[running] 12", so that they can be told apart in one picture. Waits for threads to end and for
// work are left out: there are as many of them as there are idle threads.
#include <algorithm>

#include "names.hpp"

namespace thrum::stat {

namespace {

// A name as one of the list's: no separator in it, and nothing that ends the line.
std::string folded_name(const Frame &frame) {
    std::string name = frame_name(frame);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
        '?');
    std::replace(name.begin(), name.end(), ';', ':');
    return name;
}

std::string lines_of(const std::vector<Site> &sites) {
    std::string text;
    for (const Site &site : sites) {
        const std::uint64_t count = site.samples > 0 ? site.samples : site.calls.value_or(0);
        const bool left_out = site.doing == Doing::kJoinWait || site.doing == Doing::kIdleWait;
        if (count == 0 || left_out || site.stack.empty())
            continue;
        std::string line;
        for (auto frame = site.stack.rbegin(); frame != site.stack.rend(); ++frame)
            line += (line.empty() ? "" : ";") + folded_name(*frame);
        if (site.doing != Doing::kLockWait)
            line += std::string(";[") + name_of(site.doing) + "]";
        text += line + " " + std::to_string(count) + "\n";
    }
    return text;
}

} // namespace

std::string folded_of(const Report &report) {
    return lines_of(report.waits) + lines_of(report.others) + lines_of(report.burns);
}

} // namespace thrum::stat
