// SPDX-License-Identifier: Apache-2.0
//
// A page that stands by itself: no scripts, nothing to fetch, light or dark as the reader has it. What the pages of
// compare_html.cpp and stat/report_html.cpp have in common.
#pragma once

#include <functional>
#include <string>

#include "tools/machine.hpp"

namespace thrum {

// <name>text</name>, `text` being anything.
std::string html_element(const std::string &name, const std::string &text);
// The same with a class.
std::string html_element(const std::string &name, const char *style, const std::string &text);

// A row of two columns; nothing where there is no text.
std::string html_fact(const std::string &name, const std::string &text);
std::string html_machine(const Machine &machine); // as such rows
// `rows` as they are, wider than the page where they have to be. `style`: the table's class, or "".
std::string html_table(const char *style, const std::string &rows);

// A picture in a box of this class, and as a narrow page has it: `draw` is given the width to draw it in, and returns the
// picture or nothing.
std::string html_picture(const char *style, double width, const std::function<std::string(double)> &draw);

// `style`: what it has in its style sheet beside that of all pages (page.cpp); `body` as it is.
std::string html_page(const std::string &title, const std::string &style, const std::string &body);

} // namespace thrum
