// SPDX-License-Identifier: Apache-2.0
//
// The two plots of a comparison's page, as SVG that stands in HTML and takes its colours from the page's style
// sheet. Used by compare_html.cpp.
#pragma once

#include <string>

#include "comparison.hpp"

namespace thrum {

constexpr double kPlotWidth = 760;

// Every pair's two wall times, joined; the axis starts at 0, so that lengths may be compared.
std::string plot_times(const Comparison &comparison, double width = kPlotWidth);
// Every pair's ratio, the median with its interval, and the line where nothing differs.
std::string plot_ratios(const std::vector<double> &ratios, const Interval &median, double width = kPlotWidth);

} // namespace thrum
