// SPDX-License-Identifier: Apache-2.0
#include "tools/page.hpp"

#include "tools/svg.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

constexpr const char *kCommonStyle = R"(
:root { --page: #fbfbf9; --card: #ffffff; --text: #1d2026; --faint: #666d78; --line: #dcdfe4;
        --good: #16794a; --bad: #b3261e; --open: #8a6d00; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14161a; --card: #1c1f25; --text: #e4e6ea; --faint: #9aa1ac; --line: #343942;
          --good: #5fd39a; --bad: #ff8a80; --open: #e3c452; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: 2rem 1rem 3rem; background: var(--page); color: var(--text);
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 800px; margin: 0 auto; }
h1 { font-size: 1rem; font-weight: 600; margin: 0 0 .25rem; color: var(--faint); }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
pre { margin: 0 0 1.25rem; padding: .75rem 1rem; background: var(--card); border: 1px solid var(--line);
      border-radius: 8px; overflow-x: auto; font-size: .9rem; }
.verdict { padding: 1rem 1.25rem; background: var(--card); border: 1px solid var(--line);
           border-left: 6px solid var(--open); border-radius: 8px; }
.verdict p { margin: .25rem 0 0; color: var(--faint); }
.verdict .line { margin: 0; font-size: 1.5rem; font-weight: 650; line-height: 1.3; color: var(--text); }
.faster { border-left-color: var(--good); }
.slower { border-left-color: var(--bad); }
.scroll, .wide, .plot { overflow-x: auto; }
.scroll th:first-child, .scroll td:first-child { position: sticky; left: 0; background: var(--page); }
.plot.broad svg { min-width: 520px; }
.narrow { display: none; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.option { white-space: nowrap; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.facts td:last-child { text-align: left; width: 100%; white-space: normal; }
th { font-weight: 600; color: var(--faint); }
small { color: var(--faint); }
svg { display: block; width: 100%; height: auto; background: var(--card); border: 1px solid var(--line);
      border-radius: 8px; }
svg text { font: 12px system-ui, sans-serif; fill: var(--faint); }
.grid { stroke: var(--line); stroke-width: 1; }
.legend { margin: .4rem 0 0; color: var(--faint); font-size: .9rem; }
.legend svg { display: inline; width: 14px; height: 14px; border: 0; background: none; vertical-align: -2px; }
@media (max-width: 600px) {
  .broad { display: none; }
  .narrow { display: block; }
  body { padding: 1rem .6rem 2rem; }
  .verdict .line { font-size: 1.2rem; overflow-wrap: anywhere; }
  .scroll th:first-child, .scroll td:first-child { max-width: 45vw; white-space: normal; overflow-wrap: break-word;
    border-right: 1px solid var(--line); padding-right: .5rem; }
}
details { margin-top: 2rem; }
summary { cursor: pointer; font-weight: 600; }
)";

// A command and a name in a program keep the spaces that they have.
std::string content(const std::string &name, const std::string &text) {
    return name == "pre" || name == "code" || name == "title" ? html_text(text) : html_words(text);
}

} // namespace

std::string html_element(const std::string &name, const std::string &text) {
    return "<" + name + ">" + content(name, text) + "</" + name + ">";
}

std::string html_element(const std::string &name, const char *style, const std::string &text) {
    return "<" + name + " class=\"" + style + "\">" + content(name, text) + "</" + name + ">";
}

std::string html_fact(const std::string &name, const std::string &text) {
    return text.empty() ? "" : "<tr>" + html_element("td", name) + html_element("td", text) + "</tr>\n";
}

std::string html_machine(const Machine &machine) {
    return html_fact("processor", machine.processor) + html_fact("CPUs", std::to_string(machine.processors)) +
           html_fact("kernel", machine.kernel) + html_fact("C library", machine.libc);
}

std::string html_table(const char *style, const std::string &rows) {
    const std::string of_class = *style == '\0' ? "" : " class=\"" + std::string(style) + "\"";
    return "<div class=\"scroll\"><table" + of_class + ">\n" + rows + "</table></div>\n";
}

// Drawn anew, for what is made smaller as a whole has letters that are too small.
std::string html_picture(const char *style, double width, const std::function<std::string(double)> &draw) {
    const auto box = [style](const char *kind, const std::string &picture) {
        return "<div class=\"" + std::string(style) + " " + kind + "\">" + picture + "</div>\n";
    };
    const std::string picture = draw(width);
    return picture.empty() ? "" : box("broad", picture) + box("narrow", draw(kNarrowPicture));
}

std::string html_page(const std::string &title, const std::string &style, const std::string &body) {
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
           html_element("title", title) + "\n<style>" + kCommonStyle + style +
           "</style>\n</head>\n<body>\n<main>\n" + body + "</main>\n</body>\n</html>\n";
}

} // namespace thrum
