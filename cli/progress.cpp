// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clock.hpp"
#include "text.hpp"

namespace thrum {

namespace {

constexpr std::size_t kBar = 24;
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

Progress::Progress(bool wanted) : shown_(wanted && can_clear_lines()) {
    draw();
}

Progress::~Progress() {
    if (shown_)
        std::fputs(kClear, stderr);
}

void Progress::set_done(std::size_t runs, double seconds, const std::string &note) {
    done_ = runs;
    each_ = seconds;
    since_ = seconds_now();
    note_ = note;
    draw();
}

void Progress::draw() {
    if (!shown_)
        return;
    std::string line = note_;
    if (total_ > 0) {
        const std::size_t filled = kBar * done_ / total_;
        line = "[" + std::string(filled, '#') + std::string(kBar - filled, '.') + "] run " +
               std::to_string(done_) + " of " + std::to_string(total_);
        const double left = each_ * static_cast<double>(total_ - done_) - (seconds_now() - since_);
        if (each_ > 0)
            line += ", " + time_left(std::max(0.0, left)) + " left";
        line += note_.empty() ? "" : "  " + note_;
    }
    std::fprintf(stderr, "%s%s", kClear, line.substr(0, 79).c_str());
    std::fflush(stderr);
}

} // namespace thrum
