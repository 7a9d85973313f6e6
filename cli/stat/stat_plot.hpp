// SPDX-License-Identifier: Apache-2.0
//
// The pictures of the page that `thrum stat --html` writes, as SVG that takes its colours from the page's style sheet
// (report_html.cpp). Each is empty where there is nothing to show.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"

namespace thrum::stat {

constexpr double kPictureWidth = 920;

// How many times as fast as with the fewest threads, with the line that would be ideal.
std::string plot_sweep(const Report &report, double width = kPictureWidth);

// One bar over the whole width.
struct Part {
    const char *style; // of its colour
    std::string name;
    double seconds;
};
std::string plot_parts(const std::string &title, const std::vector<Part> &parts,
                       double width = kPictureWidth);

// A row for each thread, no more than kTimelineRows: those that were seen longest.
constexpr std::size_t kTimelineRows = 40;
std::string plot_timeline(const Report &report, double width = kPictureWidth);

// Of deeper stacks only the innermost kIcicleRows functions are shown.
constexpr std::size_t kIcicleRows = 40;
// Stacks from the outermost function, on top, down to the innermost one; as wide as they have time. `what` it is of:
// "waiting for locks".
std::string plot_icicle(const std::string &what, const std::vector<Site> &sites,
                        double width = kPictureWidth);

// A bar in a table's cell; share from 0 to 1.
std::string plot_share(double share, const char *style);

} // namespace thrum::stat
