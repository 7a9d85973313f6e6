// SPDX-License-Identifier: Apache-2.0
#include "stat_plot.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "names.hpp"
#include "tools/svg.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kCharacter = 6.7; // the width of one in the fixed-width font, a little more than it takes

double finite(double value) {
    return std::isfinite(value) ? value : 0;
}

bool fits(const std::string &text, double width) {
    return static_cast<double>(text.size()) * kCharacter <= width;
}

// In as many characters as have room, never within one of more than one byte.
std::string cut_to(const std::string &text, double width) {
    if (fits(text, width))
        return text;
    const double room = std::floor(width / kCharacter);
    if (room < 4)
        return "";
    std::size_t length = static_cast<std::size_t>(room) - 2;
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80)
        length--;
    return text.substr(0, length) + "..";
}

std::string fixed_label(double x, double y, const char *anchor, const std::string &text) {
    return "<g class=\"code\">" + svg_label(x, y, anchor, text) + "</g>\n";
}

// --- the sweep -----------------------------------------------------------------------------------------

constexpr double kSweepHeight = 320;
constexpr double kSweepLeft = 56, kSweepRight = 20, kSweepTop = 16, kSweepBottom = 44;
constexpr double kValue = 36; // the width of one beside its point

// Times as fast as at the first point, as far as the times tell.
double speedup(const Point &first, double wall) {
    return wall > 0 ? finite(first.wall.median / wall) : 0;
}

// At best: as many times as fast as there are times as many threads, up to the number of CPUs.
double ideal(double threads, double first, double processors) {
    return std::min(threads, std::max(processors, first)) / first;
}

// Of the Universal Scalability Law, against its own value at `first`.
double modelled(const Scaling &scaling, double threads, double first) {
    const auto capacity = [&scaling](double n) {
        return n / (1 + scaling.contention * (n - 1) + scaling.coherency * n * (n - 1));
    };
    return finite(capacity(threads) / capacity(first));
}

class Sweep {
  public:
    Sweep(const Report &report, double width)
        : width_(width), points_(report.points), scaling_(report.scaling), first_(points_.front().threads),
          last_(points_.back().threads), processors_(report.machine.processors) {
        double highest = 1.2;
        for (const Point &point : points_)
            highest = std::max({highest, speedup(points_.front(), point.wall.median),
                                std::min(3.0, speedup(points_.front(), point.wall.low))});
        // With the ideal in sight, but not so high that nothing else can be told apart.
        highest = std::max(highest, std::min(ideal(last_, first_, processors_), 6 * highest));
        step_ = axis_step(highest);
        highest_ = std::ceil(highest / step_ - 1e-6) * step_;
    }

    std::string all() const { return grid() + columns() + lines() + dots(); }

  private:
    double x(double threads) const {
        return kSweepLeft + threads / last_ * (width_ - kSweepLeft - kSweepRight - kValue);
    }
    double y(double times) const {
        return kSweepHeight - kSweepBottom - times / highest_ * (kSweepHeight - kSweepTop - kSweepBottom);
    }
    std::string grid() const {
        std::string text;
        const auto steps = static_cast<int>(std::lround(highest_ / step_));
        for (int i = 0; i <= steps; i++) {
            text += svg_line(kSweepLeft, y(i * step_), width_ - kSweepRight, y(i * step_), "grid");
            text += svg_label(kSweepLeft - 8, y(i * step_) + 4, "end",
                              fixed(i * step_, axis_decimals(step_)) + "x");
        }
        return text;
    }
    std::string columns() const {
        std::string text;
        double free = 0;
        for (const Point &point : points_) {
            const double at = x(point.threads);
            if (at < free)
                continue;
            text += svg_label(at, kSweepHeight - kSweepBottom + 17, "middle", std::to_string(point.threads));
            free = at + 28;
        }
        return text +
               svg_label((kSweepLeft + width_ - kSweepRight) / 2, kSweepHeight - 8, "middle", "threads");
    }
    // A curve from the first to the last number of threads, as far as it is within the picture.
    template <typename Value>
    std::string curve(const char *style, Value value) const {
        constexpr int kSteps = 240;
        std::string at;
        for (int i = 0; i <= kSteps; i++) {
            const double threads = first_ + (last_ - first_) * i / kSteps, times = finite(value(threads));
            if (times <= highest_)
                at += fixed(x(threads), 1) + "," + fixed(y(times), 1) + " ";
        }
        return "<polyline class=\"" + std::string(style) + "\" points=\"" + at + "\"/>\n";
    }
    std::string lines() const {
        std::string text =
            curve("ideal", [this](double threads) { return ideal(threads, first_, processors_); });
        if (scaling_)
            text += curve("model", [this](double threads) { return modelled(*scaling_, threads, first_); });
        std::string at;
        for (const Point &point : points_)
            at += fixed(x(point.threads), 1) + "," +
                  fixed(y(speedup(points_.front(), point.wall.median)), 1) + " ";
        return text + "<polyline class=\"measured\" points=\"" + at + "\"/>\n";
    }
    double speedup_of(std::size_t point) const {
        return speedup(points_.front(), points_[point].wall.median);
    }
    // Where neither the line to the point nor the one from it runs: behind it where they rise, before it where they fall.
    std::string value_label(std::size_t point, double at, double height) const {
        const std::size_t from = point + 1 < points_.size() ? point : point - 1;
        const bool falls = speedup_of(from + 1) < speedup_of(from);
        const bool above = height > kSweepHeight - kSweepBottom - 22;
        const bool before = falls != above;
        return svg_label(at + (before ? -9 : 9), height + (above ? -9 : 18), before ? "end" : "start",
                         factor_text(speedup_of(point)));
    }
    std::string dots() const {
        std::string text;
        double free = 0;
        for (std::size_t i = 0; i < points_.size(); i++) {
            const Point &point = points_[i];
            const double at = x(point.threads), height = y(speedup_of(i));
            text += svg_line(at, y(std::min(highest_, speedup(points_.front(), point.wall.low))), at,
                             y(std::min(highest_, speedup(points_.front(), point.wall.high))), "spread");
            text += svg_dot(at, height, "point",
                            counted(point.threads, "thread") + ": " + time_text(point.wall.median) + ", " +
                                factor_text(speedup_of(i)));
            if (at < free)
                continue;
            text += value_label(i, at, height);
            free = at + 48;
        }
        return text;
    }

    const double width_;
    const std::vector<Point> &points_;
    const std::optional<Scaling> &scaling_;
    const double first_, last_, processors_;
    double step_, highest_;
};

// --- the timeline --------------------------------------------------------------------------------------

constexpr double kRowHeight = 16, kRowGap = 4, kTimelineLeft = 150, kTimelineRight = 12, kAxis = 26;
constexpr double kColumn = 2, kTime = 48; // pixels: of a column, and of a label on the axis
constexpr std::size_t kTitled = 4;        // columns, from which on a stretch says what it is
constexpr int kDoings = static_cast<int>(Doing::kDoings);

// What a thread did for most of a column's time.
struct Column {
    double seconds[kDoings] = {}, longest = 0; // `longest`: of the span that `span` is
    const Thread::Span *span = nullptr;

    int most() const { return static_cast<int>(std::max_element(seconds, seconds + kDoings) - seconds); }
    bool same(const Column &other) const {
        const bool both = span != nullptr && other.span != nullptr;
        return both ? most() == other.most() && span->site == other.span->site : span == other.span;
    }
};

class TimelineRows {
  public:
    TimelineRows(const Report &report, double width)
        : report_(report), width_(width), left_(std::min(kTimelineLeft, width / 3)),
          columns_(static_cast<std::size_t>((width - left_ - kTimelineRight) / kColumn)),
          end_(finite(report.sampled_wall)) {
        for (const Thread &thread : report.threads)
            if (!thread.spans.empty()) {
                shown_.push_back(&thread);
                end_ = std::max(end_, finite(thread.end));
            }
        if (!(end_ > 0))
            end_ = 1;
        const auto seen = [](const Thread *thread) { return finite(thread->end) - finite(thread->begin); };
        if (shown_.size() > kTimelineRows) {
            std::stable_sort(shown_.begin(), shown_.end(), [&seen](const Thread *one, const Thread *other) {
                return seen(one) > seen(other);
            });
            shown_.resize(kTimelineRows);
        }
        std::stable_sort(shown_.begin(), shown_.end(), [](const Thread *one, const Thread *other) {
            return finite(one->begin) < finite(other->begin);
        });
    }

    bool empty() const { return shown_.empty(); }
    double height() const { return static_cast<double>(shown_.size()) * (kRowHeight + kRowGap) + kAxis; }
    std::string all() const {
        std::string text = axis();
        for (std::size_t i = 0; i < shown_.size(); i++)
            text += row(*shown_[i], kRowGap + static_cast<double>(i) * (kRowHeight + kRowGap));
        return text;
    }

  private:
    double x(double seconds) const { return left_ + seconds / end_ * (width_ - left_ - kTimelineRight); }
    double column_seconds() const { return end_ / static_cast<double>(columns_); }

    std::string axis() const {
        const double step = axis_step(end_), bottom = height() - kAxis;
        const Unit unit = unit_of_time(end_);
        std::string text;
        double free = 0;
        for (int i = 0; i * step <= end_ * 1.0001; i++) {
            text += svg_line(x(i * step), 0, x(i * step), bottom + 4, "grid");
            const bool is_last = x(i * step) > width_ - 30; // and has no room on its right
            const double middle = is_last ? x(i * step) - kTime / 2 : x(i * step);
            if (middle < free)
                continue;
            free = middle + kTime;
            text += svg_label(x(i * step), height() - 8, is_last ? "end" : "middle",
                              fixed(i * step / unit.seconds, axis_decimals(step / unit.seconds)) + " " +
                                  unit.name);
        }
        return text;
    }

    std::vector<Column> columns_of(const Thread &thread) const {
        std::vector<Column> columns(columns_);
        for (const Thread::Span &span : thread.spans) {
            const double begin = std::max(0.0, finite(span.begin)), end = std::min(end_, finite(span.end));
            const auto first = static_cast<std::size_t>(std::min(begin, end_) / column_seconds());
            for (std::size_t i = first; i < columns_; i++) {
                const double from = static_cast<double>(i) * column_seconds();
                const double part = std::min(end, from + column_seconds()) - std::max(begin, from);
                if (part <= 0)
                    break;
                columns[i].seconds[std::min(static_cast<int>(span.doing), kDoings - 1)] += part;
                if (part > columns[i].longest) {
                    columns[i].longest = part;
                    columns[i].span = &span;
                }
            }
        }
        return columns;
    }

    // Columns from `first` up to `last`, which show the same.
    std::string stretch(const Column &column, std::size_t first, std::size_t last, double y) const {
        const auto doing = static_cast<Doing>(column.most());
        const double begin = static_cast<double>(first) * column_seconds(),
                     end = static_cast<double>(last) * column_seconds();
        std::string title;
        if (last - first >= kTitled) {
            const Site *site = column.span->doing == doing ? site_of(report_, *column.span) : nullptr;
            title = std::string(name_of(doing)) + ", " + time_text(begin) + " to " + time_text(end) +
                    (site == nullptr ? "" : ": " + chain_of(site->stack, 6));
        }
        return svg_box(x(begin), y, x(end) - x(begin), kRowHeight, key_of(doing), title);
    }

    std::string row(const Thread &thread, double y) const {
        const std::vector<Column> columns = columns_of(thread);
        const std::string id = std::to_string(thread.id);
        std::string text = "<g><title>" + html_text(thread.name + " " + id) + ": " + time_text(thread.cpu) +
                           " on a CPU, " + time_text(thread.run_delay) + " without one</title>\n";
        text += fixed_label(left_ - 8, y + kRowHeight - 4, "end",
                            cut_to(thread.name, left_ - 14 - kCharacter * (id.size() + 1)) + " " + id);
        for (std::size_t first = 0, last; first < columns_; first = last) {
            for (last = first + 1; last < columns_ && columns[last].same(columns[first]);)
                last++;
            if (columns[first].span != nullptr)
                text += stretch(columns[first], first, last, y);
        }
        return text + "</g>\n";
    }

    const Report &report_;
    const double width_, left_;
    const std::size_t columns_;
    std::vector<const Thread *> shown_;
    double end_;
};

// --- the icicle ----------------------------------------------------------------------------------------

constexpr double kIcicleRow = 21, kIcicleNarrowest = 1.2;

struct Node {
    const Frame *frame = nullptr;
    bool one_place = true; // all that was merged into it is in one line of the source
    double weight = 0, seconds = 0;
    std::uint64_t samples = 0, calls = 0;
    std::map<std::string, std::unique_ptr<Node>> below;

    void add(const Site &site, double of_site) {
        weight += of_site;
        seconds += finite(site.seconds);
        samples += site.samples;
        calls += site.calls.value_or(0);
    }
};

// Sites that have samples and no seconds are as wide as they have samples.
Node tree_of(const std::vector<Site> &sites) {
    bool timed = false;
    for (const Site &site : sites)
        timed = timed || finite(site.seconds) > 0;
    Node root;
    for (const Site &site : sites) {
        const double weight = timed ? std::max(0.0, finite(site.seconds)) : static_cast<double>(site.samples);
        root.add(site, weight);
        Node *node = &root;
        const std::size_t depth = std::min(site.stack.size(), kIcicleRows);
        for (std::size_t i = depth; i-- > 0;) {
            const Frame &frame = site.stack[i];
            std::unique_ptr<Node> &next = node->below[frame_name(frame) + '\n' + frame.module];
            if (!next)
                next = std::make_unique<Node>();
            if (next->frame != nullptr && next->frame->line != frame.line)
                next->one_place = false;
            next->frame = &frame;
            next->add(site, weight);
            node = next.get();
        }
    }
    return root;
}

class Icicle {
  public:
    Icicle(const std::string &what, const std::vector<Site> &sites, double width)
        : what_(what), root_(tree_of(sites)), width_(width) {}

    bool empty() const { return !(root_.weight > 0); }
    std::string all() {
        const std::string text = box(root_, 0, width_, 0);
        return svg_picture(width_, static_cast<double>(deepest_ + 1) * kIcicleRow + 1, what_, text);
    }

  private:
    std::string title(const Node &node, const std::string &name) const {
        std::string text = name + ": " + fixed(100 * node.weight / root_.weight, 1) + " %";
        if (node.seconds > 0)
            text += ", " + time_text(node.seconds);
        if (node.samples > 0)
            text += ", " + counted(static_cast<double>(node.samples), "sample");
        if (node.calls > 0)
            text += ", " + counted(static_cast<double>(node.calls), "wait");
        return text;
    }
    std::string box(const Node &node, double x, double width, std::size_t depth) {
        deepest_ = std::max(deepest_, depth);
        const bool is_root = node.frame == nullptr;
        const std::string name = is_root ? what_ : frame_name(*node.frame);
        const std::string place = is_root || !node.one_place ? name : frame_place(*node.frame);
        const double y = static_cast<double>(depth) * kIcicleRow;
        const char *style = is_root ? "frame root" : node.frame->is_user ? "frame own" : "frame library";
        const std::string full = is_root ? title(node, name) : place;
        const double room = width - 10;
        const std::string shown = cut_to(fits(full, room) ? full : name, room);
        std::string text =
            svg_box(x + 0.5, y + 0.5, std::max(0.5, width - 1), kIcicleRow - 1, style, title(node, place));
        if (!shown.empty())
            text += fixed_label(x + 6, y + 15, "start", shown);
        return text + boxes_below(node, x, width, depth);
    }
    // The widest first.
    std::string boxes_below(const Node &node, double x, double width, std::size_t depth) {
        std::vector<const Node *> below;
        for (const auto &[key, one] : node.below)
            below.push_back(one.get());
        std::stable_sort(below.begin(), below.end(),
                         [](const Node *one, const Node *other) { return one->weight > other->weight; });
        std::string text;
        for (const Node *one : below) {
            const double wide = width * one->weight / node.weight;
            if (wide < kIcicleNarrowest)
                break;
            text += box(*one, x, wide, depth + 1);
            x += wide;
        }
        return text;
    }

    const std::string what_;
    const Node root_;
    const double width_;
    std::size_t deepest_ = 0;
};

} // namespace

std::string plot_sweep(const Report &report, double width) {
    if (report.points.size() < 2 || report.points.front().threads == 0 ||
        report.points.front().threads >= report.points.back().threads)
        return "";
    return svg_picture(width, kSweepHeight, "Speedup by number of threads", Sweep(report, width).all());
}

std::string plot_parts(const std::string &title, const std::vector<Part> &parts, double width) {
    constexpr double kHeight = 30;
    double sum = 0;
    for (const Part &part : parts)
        sum += std::max(0.0, finite(part.seconds));
    if (!(sum > 0))
        return "";
    std::string text;
    double x = 0;
    for (const Part &part : parts) {
        const double share = std::max(0.0, finite(part.seconds)) / sum, wide = share * width;
        const std::string percent = fixed(100 * share, 0) + " %";
        if (share > 0)
            text += svg_box(x, 0, wide, kHeight, part.style,
                            part.name + ": " + time_text(part.seconds) + ", " + percent);
        if (wide > 44)
            text += "<g class=\"on-" + std::string(part.style) + "\">" +
                    svg_label(x + wide / 2, kHeight / 2 + 4.5, "middle", percent) + "</g>\n";
        x += wide;
    }
    return svg_picture(width, kHeight, title, text);
}

std::string plot_timeline(const Report &report, double width) {
    const TimelineRows rows(report, width);
    return rows.empty() ? ""
                        : svg_picture(width, rows.height(), "What each thread did, over time", rows.all());
}

std::string plot_icicle(const std::string &what, const std::vector<Site> &sites, double width) {
    Icicle icicle(what, sites, width);
    return icicle.empty() ? "" : icicle.all();
}

std::string plot_share(double share, const char *style) {
    const double width = 100 * std::clamp(finite(share), 0.0, 1.0);
    return "<svg class=\"share\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">" +
           svg_box(0, 0, width, 10, style) + "</svg>";
}

} // namespace thrum::stat
