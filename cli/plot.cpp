// SPDX-License-Identifier: Apache-2.0
#include "plot.hpp"

#include <algorithm>
#include <cmath>

#include "tools/svg.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr double kHeight = 260;
constexpr double kLeft = 64, kRight = 16, kTop = 20, kBottom = 40;

// What an axis leaves out, so that all the rest can be told apart: of values that lie far from most. 0: nothing.
double cut_above(const std::vector<double> &values) {
    constexpr std::size_t kFewest = 5;
    constexpr double kFar = 2.5; // times as much as most
    if (values.size() < kFewest)
        return 0;
    const double upper = quantile(values, 0.75), spread = upper - quantile(values, 0.25);
    const double limit = std::max(upper + 6 * spread, kFar * upper);
    double highest = 0;
    for (const double value : values)
        highest = value <= limit ? std::max(highest, value) : highest;
    return highest < *std::max_element(values.begin(), values.end()) ? 1.1 * highest : 0;
}

// Where values and pairs stand on the page.
class Frame {
  public:
    Frame(double low, double high, std::size_t columns, double width)
        : width_(width), step_(axis_step(high > low ? high - low : 1)), low_(std::floor(low / step_) * step_),
          high_(std::max(std::ceil(high / step_) * step_, low_ + step_)),
          columns_(std::max<std::size_t>(columns, 1)) {}

    double left() const { return kLeft; }
    double right() const { return width_ - kRight; }
    double x(std::size_t column) const {
        const double each = (right() - kLeft) / static_cast<double>(columns_);
        return kLeft + each * (static_cast<double>(column) + 0.5);
    }
    // What lies beyond the axis stands at its end.
    double y(double value) const {
        return kHeight - kBottom -
               (std::min(value, high_) - low_) / (high_ - low_) * (kHeight - kTop - kBottom);
    }
    bool is_beyond(double value) const { return value > high_; }
    // That some do, and how far.
    std::string cut_note(std::size_t count, const std::string &farthest) const {
        if (count == 0)
            return "";
        return svg_line(kLeft, y(high_), right(), y(high_), "cut") +
               svg_label(right() - 4, kTop - 6, "end",
                         counted(static_cast<double>(count), "point") + " beyond the axis, up to " +
                             farthest);
    }
    // The grid with its numbers, each value shown as value / unit.
    std::string grid(double unit, const std::string &suffix) const {
        std::string text;
        const auto steps = static_cast<int>(std::lround((high_ - low_) / step_));
        for (int i = 0; i <= steps; i++) {
            const double value = low_ + i * step_;
            text += svg_line(kLeft, y(value), right(), y(value), "grid");
            text += svg_label(kLeft - 8, y(value) + 4, "end",
                              fixed(value / unit, axis_decimals(step_ / unit)) + suffix);
        }
        return text;
    }
    std::string columns(const std::string &name) const {
        std::string text;
        constexpr double kLabel = 34;
        const auto most = static_cast<std::size_t>((right() - kLeft) / kLabel);
        const std::size_t every = (columns_ + most - 1) / most;
        for (std::size_t i = 0; i < columns_; i += every)
            text += svg_label(x(i), kHeight - kBottom + 16, "middle", std::to_string(i + 1));
        return text + svg_label((kLeft + right()) / 2, kHeight - 6, "middle", name);
    }

  private:
    double width_, step_, low_, high_;
    std::size_t columns_;
};

std::string name_of(std::size_t pair) {
    return "pair " + std::to_string(pair + 1);
}

} // namespace

std::string plot_times(const Comparison &comparison, double width) {
    const std::vector<Pair> &pairs = comparison.pairs;
    std::vector<double> walls;
    for (const Pair &pair : pairs)
        walls.insert(walls.end(), {pair.runs[kWithout].wall, pair.runs[kWith].wall});
    const double longest = walls.empty() ? 0 : *std::max_element(walls.begin(), walls.end()),
                 limit = cut_above(walls);
    const double highest = limit > 0 ? limit : longest;
    const Unit unit = unit_of_time(highest);
    const Frame frame(0, highest, pairs.size(), width);
    const auto style = [&frame](double wall, const char *usual) {
        return frame.is_beyond(wall) ? "beyond" : usual;
    };
    std::string text = frame.grid(unit.seconds, std::string(" ") + unit.name) + frame.columns("pair");
    for (std::size_t i = 0; i < pairs.size(); i++) {
        const double without = pairs[i].runs[kWithout].wall, with = pairs[i].runs[kWith].wall;
        text += svg_line(frame.x(i), frame.y(without), frame.x(i), frame.y(with), "join");
        text += svg_dot(frame.x(i), frame.y(without), style(without, "without"),
                        name_of(i) + ", " + comparison.name_of(kWithout) + ": " + duration(without));
        text += svg_dot(frame.x(i), frame.y(with), style(with, "with"),
                        name_of(i) + ", " + comparison.name_of(kWith) + ": " + duration(with));
    }
    const auto beyond =
        std::count_if(walls.begin(), walls.end(), [&frame](double wall) { return frame.is_beyond(wall); });
    text += frame.cut_note(static_cast<std::size_t>(beyond), duration(longest));
    return svg_picture(width, kHeight, "Wall time of every run", text);
}

std::string plot_ratios(const std::vector<double> &ratios, const Interval &median, double width) {
    // Of few pairs, the interval reaches to the farthest: it is cut with that.
    const double limit = cut_above(ratios),
                 interval_end = limit > 0 ? std::min(median.high, limit) : median.high;
    double low = 1, high = std::max(1.0, interval_end), most = 1;
    for (const double ratio : ratios) {
        low = std::min(low, ratio);
        most = std::max(most, ratio);
        high = limit <= 0 || ratio <= limit ? std::max(high, ratio) : high;
    }
    const double margin = std::max(0.08 * (high - low), 0.02);
    const Frame frame(std::max(0.0, low - margin), high + margin, ratios.size(), width);
    const double from = frame.left(), to = frame.right();
    std::string text = svg_box(from, frame.y(median.high), to - from,
                               frame.y(median.low) - frame.y(median.high), "interval");
    text += frame.grid(1, "x") + frame.columns("pair");
    text += svg_line(from, frame.y(1), to, frame.y(1), "one");
    text += svg_line(from, frame.y(median.median), to, frame.y(median.median), "median");
    for (std::size_t i = 0; i < ratios.size(); i++)
        text += svg_dot(frame.x(i), frame.y(ratios[i]), frame.is_beyond(ratios[i]) ? "beyond" : "ratio",
                        name_of(i) + ": " + three_digits(ratios[i]) + "x");
    const auto beyond = std::count_if(ratios.begin(), ratios.end(),
                                      [&frame](double ratio) { return frame.is_beyond(ratio); });
    text += frame.cut_note(static_cast<std::size_t>(beyond), three_digits(most) + "x");
    return svg_picture(width, kHeight, "Ratio of wall times, pair by pair", text);
}

} // namespace thrum
