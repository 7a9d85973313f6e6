// SPDX-License-Identifier: Apache-2.0
#include "stat/scaling.hpp"

#include <algorithm>
#include <cmath>

#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kFewestPoints = 4; // two coefficients, and something left to see whether they fit
constexpr double kPoorFit = 0.1;         // relative residual from which on the law is not believed
constexpr double kNothing = 1e-9;
constexpr double kStart = 0.002; // seconds by which the start and the end of a program vary
// From six runs on the order of the ratios bounds the median with a confidence of 95 %. Of fewer, this part of the ratio,
// divided by their number, is added on both sides: two runs of one program may differ by that.
constexpr std::size_t kEnoughRuns = 6;
constexpr double kChance = 0.2;

unsigned cores_of(const Report &report) {
    return report.cores == 0 ? report.machine.processors : std::min(report.cores, report.machine.processors);
}

double law(const Scaling &scaling, double n) {
    return n / (1 + scaling.contention * (n - 1) + scaling.coherency * n * (n - 1));
}

double residual_of(const Scaling &scaling, const std::vector<Speedup> &points) {
    double sum = 0;
    for (const Speedup &point : points) {
        const double off = law(scaling, point.threads) / point.speedup - 1;
        sum += off * off;
    }
    return std::sqrt(sum / static_cast<double>(points.size()));
}

// N / speedup - 1 = contention * (N - 1) + coherency * N * (N - 1) is linear in both. Where the best coefficient would be
// negative, the best without it lies on the border.
void solve(const std::vector<Speedup> &points, Scaling &scaling) {
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
    for (const Speedup &point : points) {
        const double a = point.threads - 1, b = point.threads * a, y = point.threads / point.speedup - 1;
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a * y;
        by += b * y;
    }
    const double determinant = aa * bb - ab * ab;
    scaling.contention = (ay * bb - by * ab) / determinant;
    scaling.coherency = (aa * by - ab * ay) / determinant;
    if (scaling.coherency < 0) {
        scaling.coherency = 0;
        scaling.contention = ay / aa;
    }
    if (scaling.contention < 0) {
        scaling.contention = 0;
        scaling.coherency = by / bb;
    }
    scaling.contention = std::max(0.0, scaling.contention);
    scaling.coherency = std::max(0.0, scaling.coherency);
}

std::vector<Speedup> speedups_of(const Report &report) {
    std::vector<Speedup> list;
    if (report.points.empty() || report.points.front().threads != 1)
        return list;
    const double one = report.points.front().wall.median;
    for (const Point &point : report.points)
        if (point.threads <= cores_of(report) && point.wall.median > 0)
            list.push_back({static_cast<double>(point.threads), one / point.wall.median});
    return list;
}

std::string percent(double share) {
    return fixed(100 * share, share < 0.0995 ? 1 : 0) + " %";
}

std::string text_of(const Scaling &scaling) {
    const std::string residual = " (residual " + percent(scaling.residual) + ").";
    if (scaling.coherency < kNothing)
        return "Amdahl's law: " + percent(scaling.contention) + " of the work is sequential" + residual;
    std::string text = "Universal Scalability Law: contention " + percent(scaling.contention) +
                       ", coherency " + percent(scaling.coherency);
    if (scaling.best_threads > 0)
        text += ", best at " + counted(scaling.best_threads, "thread");
    return text + residual;
}

// As the verdict has it, beyond what the runs can tell.
bool is_slower(const Point &first, const Point &point) {
    const Interval &known = point.speedup;
    return (known.count > 0 ? known : speedup_interval(first, point, {})).high < 1;
}

const Point *best_of(const Report &report) {
    const auto best =
        std::min_element(report.points.begin(), report.points.end(),
                         [](const Point &a, const Point &b) { return a.wall.median < b.wall.median; });
    return best == report.points.end() ? nullptr : &*best;
}

std::string why_not(const Report &report, const std::vector<Speedup> &points) {
    if (report.points.front().threads != 1)
        return "No scaling model fitted: that needs the time of 1 thread.";
    if (points.size() < kFewestPoints)
        return "No scaling model fitted: that needs 4 points up to the number of cores (" +
               std::to_string(cores_of(report)) + ").";
    return "No scaling model fitted: neither Amdahl's law nor the Universal Scalability\nLaw describes these "
           "times.";
}

} // namespace

bool is_too_short(const Report &report) {
    return report.points.size() > 1 &&
           std::all_of(report.points.begin(), report.points.end(),
                       [](const Point &point) { return point.wall.median < kShortestRuns; });
}

Interval speedup_interval(const Point &first, const Point &point, const std::vector<double> &ratios) {
    const double one = first.wall.median, many = point.wall.median;
    if (!(one > 0 && many > 0))
        return {};
    Interval interval;
    if (ratios.empty()) {
        interval.low = first.wall.low / point.wall.high;
        interval.high = first.wall.high / std::max(point.wall.low, kNothing);
        interval.confidence = std::min(first.wall.confidence, point.wall.confidence);
        interval.count = std::min(first.wall.count, point.wall.count);
    } else {
        interval = median_interval(ratios);
    }
    interval.median = one / many;
    const double by_chance = interval.count < kEnoughRuns
                                 ? kChance / static_cast<double>(std::max<std::size_t>(1, interval.count))
                                 : 0;
    const double wider = (1 + by_chance) * (1 + kStart / one) * (1 + kStart / many);
    interval.low = std::min(interval.low, interval.median) / wider;
    interval.high = std::max(interval.high, interval.median) * wider;
    return interval;
}

double ideal_speedup(const Report &report, unsigned threads) {
    return std::max(1U, std::min(threads, cores_of(report)));
}

std::optional<Scaling> fit_universal_law(const std::vector<Speedup> &points) {
    if (points.size() < kFewestPoints)
        return std::nullopt;
    Scaling scaling;
    solve(points, scaling);
    scaling.residual = residual_of(scaling, points);
    if (!std::isfinite(scaling.residual) || scaling.residual > kPoorFit || scaling.contention > 1)
        return std::nullopt;
    const double best =
        scaling.coherency > kNothing ? std::sqrt((1 - scaling.contention) / scaling.coherency) : 0;
    if (best > 0 && best <= points.back().threads)
        scaling.best_threads = std::max(1.0, std::floor(best));
    return scaling;
}

void add_scaling(Report &report) {
    if (report.points.size() < 2 || is_too_short(report))
        return;
    const Point *best = best_of(report);
    if (best->threads == 1) {
        const bool is_sure =
            std::all_of(report.points.begin(), report.points.end(),
                        [best](const Point &point) { return &point == best || is_slower(*best, point); });
        report.scaling_text = is_sure ? "Retrograde: best at 1 thread (no scaling model fitted)."
                                      : "No number of threads is faster than 1 (no scaling model fitted).";
        return;
    }
    const std::vector<Speedup> points = speedups_of(report);
    report.scaling = fit_universal_law(points);
    report.scaling_text = report.scaling ? text_of(*report.scaling) : why_not(report, points);
}

} // namespace thrum::stat
