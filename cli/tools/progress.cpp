// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/clock.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr std::size_t kBar = 24, kLongest = 79;
constexpr const char *kClear = "\r\033[K";

bool can_clear_lines() {
    const char *terminal = std::getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

// "12 s", "3 min".
std::string time_left(double seconds) {
    return seconds < 100 ? fixed(std::ceil(seconds), 0) + " s" : fixed(seconds / 60, 0) + " min";
}

} // namespace

PassingLine::PassingLine() : shown_(can_clear_lines()) {}

// The last column stays free: some terminals wrap when it is written to.
std::size_t PassingLine::room() const {
    return std::min(kLongest, terminal_columns(STDERR_FILENO) - 1);
}

void PassingLine::show(const std::string &line) {
    if (!shown_)
        return;
    used_ = true;
    clear();
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    drawn_ = line.size();
}

// A terminal that has become narrower since has wrapped the line: then it stands on several.
void PassingLine::clear() {
    if (!used_)
        return;
    const std::size_t columns = terminal_columns(STDERR_FILENO);
    const std::size_t above = drawn_ > 0 && columns > 0 ? (drawn_ - 1) / columns : 0;
    if (above > 0)
        std::fprintf(stderr, "\033[%zuA\r\033[J", above);
    std::fputs(kClear, stderr);
    drawn_ = 0;
}

Progress::Progress(bool wanted, const std::string &note) : wanted_(wanted), note_(note) {
    if (!note_.empty())
        draw();
}

void Progress::set_done(std::size_t runs, double seconds, const std::string &note) {
    done_ = runs;
    each_ = seconds;
    since_ = seconds_now();
    note_ = note;
    draw();
}

void Progress::draw() {
    if (wanted_ && line_.is_shown())
        line_.show(text(line_.room()));
}

// What fits: without the bar where there is no room, and then cut.
std::string Progress::text(std::size_t room) const {
    if (total_ == 0)
        return cut(note_, room);
    const std::size_t filled = kBar * done_ / total_;
    const std::string bar = "[" + std::string(filled, '#') + std::string(kBar - filled, '.') + "] ";
    std::string runs = "run " + std::to_string(done_) + " of " + std::to_string(total_);
    const double left = each_ * static_cast<double>(total_ - done_) - (seconds_now() - since_);
    if (each_ > 0)
        runs += ", " + time_left(std::max(0.0, left)) + " left";
    const std::string note = note_.empty() ? "" : "  " + note_;
    for (const std::string &line : {bar + runs + note, bar + runs, runs + note, runs})
        if (line.size() <= room)
            return line;
    return cut(runs, room);
}

} // namespace thrum
