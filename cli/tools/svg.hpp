// SPDX-License-Identifier: Apache-2.0
//
// Pieces of pictures: SVG that stands in HTML and takes its colours from the page's style sheet, where `style` names a
// class. Used by plot.cpp and stat/stat_plot.cpp.
#pragma once

#include <string>

namespace thrum {

// ' name="12.3"'; what is infinite or not a number becomes 0.
std::string svg_attribute(const char *name, double value);

std::string svg_line(double x1, double y1, double x2, double y2, const char *style);
// `title` is shown where a pointer rests on it; empty: none.
std::string svg_dot(double x, double y, const char *style, const std::string &title);
std::string svg_box(double x, double y, double width, double height, const char *style,
                    const std::string &title = "");
// `anchor`: whether x is the "start", "middle" or "end" of the text.
std::string svg_label(double x, double y, const char *anchor, const std::string &text);

// Of a picture that a narrow page has in the place of one that is wider.
constexpr double kNarrowPicture = 400;
// `title` is for screen readers.
std::string svg_picture(double width, double height, const std::string &title, const std::string &content);

// 1, 2 or 5 times a power of ten, so that there are four to nine steps in `span`, which is more than 0.
double axis_step(double span);
int axis_decimals(double step);

} // namespace thrum
