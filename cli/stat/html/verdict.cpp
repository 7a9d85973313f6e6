// SPDX-License-Identifier: Apache-2.0
//
// The verdict with its cause, and the evidence.
#include "stat/html/html.hpp"
#include "stat/names.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum::stat::html {

namespace {

std::string place_of(const Finding &finding) {
    if (finding.file.empty())
        return finding.function;
    return finding.function + " (" + finding.file +
           (finding.line > 0 ? ":" + std::to_string(finding.line) : "") + ")";
}

std::string confidence_chip(const Finding &finding) {
    return html_element("span", "chip", std::string("confidence: ") + name_of(finding.confidence));
}

std::string term(const char *name, const std::string &html) {
    return html.empty() ? "" : html_element("dt", name) + "<dd>" + html + "</dd>\n";
}

std::string how_it_ended(const Report &report) {
    std::string text;
    if (report.interrupted)
        text += "interrupted: these are the results so far; ";
    if (report.signal != 0)
        text += "the program was ended by signal " + std::to_string(report.signal) + "; ";
    else if (report.exit_code != 0)
        text += "the program ended with exit code " + std::to_string(report.exit_code) + "; ";
    return text.empty() ? "" : text.substr(0, text.size() - 2);
}

} // namespace

std::string verdict_card(const Report &report) {
    std::string terms;
    if (!report.findings.empty()) {
        const Finding &cause = report.findings.front();
        const std::string place = place_of(cause);
        terms += term(report.outcome == Outcome::kScales ? "Finding" : "Cause",
                      html_words(cause.cause) + " " + confidence_chip(cause));
        terms += term("Where", place.empty() ? "" : html_element("code", place));
        terms += term("Fix", html_words(cause.fix));
    }
    terms += term("Note", html_text(how_it_ended(report)));
    return "<div class=\"verdict " + std::string(key_of(report.outcome)) + "\">\n" +
           html_element("p", "line", report.verdict) + "\n" +
           (terms.empty() ? "" : "<dl>\n" + terms + "</dl>\n") + "</div>\n";
}

std::string finding_card(const Finding &finding, bool with_fix) {
    const std::string place = place_of(finding);
    return "<div class=\"finding\">\n<p><strong>" + html_words(finding.cause) + "</strong> " +
           confidence_chip(finding) + " " + html_element("span", "chip", finding.rule) + "</p>\n" +
           (place.empty() ? "" : "<p>" + html_element("code", place) + "</p>\n") +
           (with_fix ? html_element("p", finding.fix) + "\n" : "") + list(finding.evidence) + "</div>\n";
}

std::string findings(const Report &report) {
    std::string text;
    for (const Finding &finding : report.findings)
        text += finding_card(finding, &finding != &report.findings.front());
    return text;
}

} // namespace thrum::stat::html
