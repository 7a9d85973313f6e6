// SPDX-License-Identifier: Apache-2.0
#include "tools/svg.hpp"

#include <algorithm>
#include <cmath>

#include "tools/text.hpp"

namespace thrum {

namespace {

std::string closed(const char *name, const std::string &title) {
    if (title.empty())
        return "/>\n";
    return "><title>" + html_text(title) + "</title></" + name + ">\n";
}

} // namespace

std::string svg_attribute(const char *name, double value) {
    return std::string(" ") + name + "=\"" + fixed(std::isfinite(value) ? value : 0, 1) + "\"";
}

std::string svg_line(double x1, double y1, double x2, double y2, const char *style) {
    return "<line" + svg_attribute("x1", x1) + svg_attribute("y1", y1) + svg_attribute("x2", x2) +
           svg_attribute("y2", y2) + " class=\"" + style + "\"/>\n";
}

std::string svg_dot(double x, double y, const char *style, const std::string &title) {
    return "<circle" + svg_attribute("cx", x) + svg_attribute("cy", y) + " r=\"4.5\" class=\"" + style +
           "\"" + closed("circle", title);
}

std::string svg_box(double x, double y, double width, double height, const char *style,
                    const std::string &title) {
    return "<rect" + svg_attribute("x", x) + svg_attribute("y", y) + svg_attribute("width", width) +
           svg_attribute("height", height) + " class=\"" + style + "\"" + closed("rect", title);
}

std::string svg_label(double x, double y, const char *anchor, const std::string &text) {
    return "<text" + svg_attribute("x", x) + svg_attribute("y", y) + " text-anchor=\"" + anchor + "\">" +
           html_text(text) + "</text>\n";
}

std::string svg_picture(double width, double height, const std::string &title, const std::string &content) {
    return "<svg viewBox=\"0 0 " + fixed(width, 0) + " " + fixed(height, 0) +
           "\" role=\"img\" aria-label=\"" + html_text(title) + "\">\n" + content + "</svg>\n";
}

double axis_step(double span) {
    const double power = std::pow(10, std::floor(std::log10(span / 4)));
    for (const double step : {5.0, 2.0})
        if (span / (step * power) >= 4)
            return step * power;
    return power;
}

int axis_decimals(double step) {
    return std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
}

} // namespace thrum
