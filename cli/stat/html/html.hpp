// SPDX-License-Identifier: Apache-2.0
//
// The parts of the page that `thrum stat --html` writes: report_html.cpp puts them together. Each is HTML, and empty if the
// report has nothing for it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "stat/report.hpp"

namespace thrum::stat::html {

constexpr std::size_t kRows = 20; // of a table that may have any number of rows

// --- pieces.cpp ---

std::string section(const std::string &title, const std::string &body);
// As html_picture does, in the width of this page.
std::string picture(const char *style, const std::function<std::string(double)> &draw);
std::string note(const std::string &text);
std::string list(const std::vector<std::string> &lines);
// Behind a table that would be too long.
std::string more(std::size_t all, std::size_t shown);
std::string percent(double share);
// What the colours of a picture mean.
std::string key(const char *style, const std::string &text);
std::string keys(const std::string &items);
std::string threads_line(unsigned threads); // "4 threads"

// --- verdict.cpp: what is concluded ---

std::string verdict_card(const Report &report);
std::string finding_card(const Finding &finding, bool with_fix);
std::string findings(const Report &report);

// --- sweep.cpp: the runs by number of threads, and the machine that they were on ---

std::string sweep(const Report &report);
std::string machine(const Report &report);

// --- sampled.cpp: the sampled run ---

std::string where_time_went(const Report &report);
std::string timeline(const Report &report);
std::string waits(const Report &report);
std::string locks(const Report &report);
std::string profile(const Report &report);
// Stacks as a picture: what called what, each as wide as its share.
std::string icicle(const std::string &what, const std::vector<Site> &sites);

// --- counted.cpp: what was counted where that is allowed, thread by thread, process by process ---

std::string system_calls(const Report &report);
std::string counters(const Report &report);
std::string switches(const Report &report);
std::string threads_table(const Report &report);
std::string processes(const Report &report);

} // namespace thrum::stat::html
