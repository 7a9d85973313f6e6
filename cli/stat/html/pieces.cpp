// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the page are made of.
#include "stat/html/html.hpp"
#include "stat/names.hpp"
#include "stat/stat_plot.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum::stat::html {

std::string section(const std::string &title, const std::string &body) {
    return body.empty() ? "" : html_element("h2", title) + "\n" + body;
}

std::string picture(const char *style, const std::function<std::string(double)> &draw) {
    return html_picture(style, kPictureWidth, draw);
}

std::string note(const std::string &text) {
    return html_element("p", "legend", text) + "\n";
}

std::string list(const std::vector<std::string> &lines) {
    std::string text;
    for (const std::string &line : lines)
        text += html_element("li", line) + "\n";
    return text.empty() ? "" : "<ul>\n" + text + "</ul>\n";
}

std::string more(std::size_t all, std::size_t shown) {
    return all <= shown ? "" : note("and " + std::to_string(all - shown) + " more");
}

std::string percent(double share) {
    return number_text(100 * share, share < 0.0995 ? 1 : 0) + " %";
}

std::string key(const char *style, const std::string &text) {
    return "<li><svg viewBox=\"0 0 14 14\"><rect width=\"14\" height=\"14\" class=\"" + std::string(style) +
           "\"/></svg> " + html_words(text) + "</li>\n";
}

std::string keys(const std::string &items) {
    return "<ul class=\"keys\">\n" + items + "</ul>\n";
}

std::string threads_line(unsigned threads) {
    return threads > 0 ? counted(threads, "thread") : "this run";
}

} // namespace thrum::stat::html
