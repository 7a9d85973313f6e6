// SPDX-License-Identifier: Apache-2.0
#include "tools/text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace thrum {

namespace {

constexpr std::size_t kColumns = 80, kNarrowest = 40;
constexpr const char *kReplacement = "\xef\xbf\xbd"; // U+FFFD

unsigned char byte_at(const std::string &text, std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

// The length of the UTF-8 sequence that starts here, 0 where none does: no overlong forms, no surrogates.
std::size_t utf8_length(const std::string &text, std::size_t at) {
    const unsigned char first = byte_at(text, at), second = byte_at(text, at + 1);
    if (first < 0x80)
        return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    for (std::size_t i = 1; i < length; i++)
        if ((byte_at(text, at + i) & 0xc0) != 0x80)
            return 0;
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return overlong || beyond ? 0 : length;
}

// Control characters are not allowed in HTML at all, but for white space.
std::string html_character(unsigned char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\t':
    case '\n': return std::string(1, static_cast<char>(c));
    default: return c < 0x20 || c == 0x7f ? kReplacement : std::string(1, static_cast<char>(c));
    }
}

bool is_plain(const std::string &word) {
    static const char *const plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
    return !word.empty() && word.find_first_not_of(plain) == std::string::npos;
}

// In quotation marks; with control characters in it, in the shell's $'...' form, for the line stays one line.
std::string shell_word(const std::string &word) {
    if (is_plain(word))
        return word;
    std::string quoted, escapes;
    bool control = false;
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        char octal[8];
        std::snprintf(octal, sizeof octal, "\\%03o", byte);
        const bool is_control = byte < 0x20 || byte == 0x7f;
        control = control || is_control;
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
        escapes += is_control ? octal : c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return control ? "$'" + escapes + "'" : "'" + quoted + "'";
}

std::size_t columns_of_reports = kColumns;

bool is_digit(const std::string &text, std::size_t at) {
    return std::isdigit(byte_at(text, at)) != 0;
}

// An option and its number are one word: "-n 32".
bool is_number_of_option(const std::string &text, std::size_t space) {
    if (space < 2 || byte_at(text, space) != ' ' || !is_digit(text, space + 1))
        return false;
    const std::size_t before = text.find_last_of(" (", space - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return text[begin] == '-' && space - begin >= 2 && !is_digit(text, begin + 1);
}

// A number and its unit are one word: "100 %", "2.3 ms".
bool is_unit_of_number(const std::string &text, std::size_t space) {
    static const char *const units[] = {"%", "s", "ms", "us", "MB", "Hz"};
    if (space == 0 || byte_at(text, space) != ' ' || !is_digit(text, space - 1))
        return false;
    std::size_t end = space + 1;
    while (end < text.size() && (std::isalnum(byte_at(text, end)) != 0 || text[end] == '%'))
        end++;
    return std::find(std::begin(units), std::end(units), text.substr(space + 1, end - space - 1)) !=
           std::end(units);
}

bool is_within_word(const std::string &text, std::size_t space) {
    return is_unit_of_number(text, space) || is_number_of_option(text, space);
}

// Where the word that follows the space at `from` ends.
std::size_t end_of_word(const std::string &text, std::size_t from) {
    std::size_t to = from;
    do
        to = std::min(text.find(' ', to + 1), text.size());
    while (is_within_word(text, to));
    return to;
}

// Behind an option's name that begins at `at`, as "--sweep" or "-n"; else `at`. A browser may break a line behind each dash.
std::size_t end_of_option(const std::string &text, std::size_t at) {
    const auto is_in = [&text](std::size_t i, const char *set) {
        return i < text.size() && text[i] != '\0' && std::strchr(set, text[i]) != nullptr;
    };
    constexpr const char *kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::size_t end = at + (is_in(at + 1, "-") ? 2 : 1);
    if (!is_in(at, "-") || (at > 0 && !is_in(at - 1, " (\n")) || !is_in(end, kLetters))
        return at;
    while (is_in(end, kLetters) || is_in(end, "-0123456789"))
        end++;
    return end;
}

} // namespace

std::string html_text(const std::string &text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        if (length == 0)
            out += kReplacement;
        else if (length == 1)
            out += html_character(byte_at(text, at));
        else
            out.append(text, at, length);
        at += length == 0 ? 1 : length;
    }
    return out;
}

std::string html_words(const std::string &text) {
    std::string bound;
    for (std::size_t at = 0; at < text.size(); at++)
        bound += is_within_word(text, at) ? "\xc2\xa0" : std::string(1, text[at]); // U+00A0
    std::string html;
    std::size_t plain = 0; // up to where it is written
    for (std::size_t at = 0; at < bound.size(); at++) {
        const std::size_t end = end_of_option(bound, at);
        if (end == at)
            continue;
        html += html_text(bound.substr(plain, at - plain)) + "<span class=\"option\">" +
                html_text(bound.substr(at, end - at)) + "</span>";
        plain = end;
        at = end - 1;
    }
    return html + html_text(bound.substr(plain));
}

// Those of Latin-1 as well, which are U+0080 to U+009F, and as bytes of their own 0x80 to 0x9f: some terminals heed them.
std::string terminal_text(const std::string &text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const unsigned char c = byte_at(text, at);
        const std::size_t length = utf8_length(text, at);
        const bool is_latin = c == 0xc2 && byte_at(text, at + 1) < 0xa0;
        if (length == 0 || c < 0x20 || c == 0x7f || is_latin)
            out += '?';
        else
            out.append(text, at, length);
        at += std::max<std::size_t>(1, length);
    }
    return out;
}

std::size_t terminal_columns(int fd) {
    winsize size = {};
    if (isatty(fd) != 1)
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::size_t report_columns() {
    return columns_of_reports;
}

void fit_reports_to(int fd) {
    const std::size_t columns = terminal_columns(fd);
    columns_of_reports = columns == 0 ? kColumns : std::clamp(columns, kNarrowest, kColumns);
}

std::string cut(const std::string &text, std::size_t bytes) {
    while (bytes > 0 && (byte_at(text, bytes) & 0xc0) == 0x80)
        bytes--;
    return text.substr(0, bytes);
}

std::string shell_line(const std::vector<std::string> &words) {
    std::string line;
    for (const std::string &word : words)
        line += (line.empty() ? "" : " ") + shell_word(word);
    return line;
}

bool begins_with(const std::string &text, const char *beginning) {
    return text.compare(0, std::strlen(beginning), beginning) == 0;
}

bool ends_with(const std::string &text, const char *end) {
    const std::size_t length = std::strlen(end);
    return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

std::string file_name(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

std::string fixed(double number, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, number);
    return text;
}

std::string three_digits(double number) {
    const double size = std::fabs(number);
    return fixed(number, size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

Unit unit_of_time(double seconds) {
    const double size = std::fabs(seconds);
    if (size >= 0.9995)
        return {"s", 1};
    return size >= 0.9995e-3 ? Unit{"ms", 1e-3} : Unit{"us", 1e-6};
}

std::string duration(double seconds) {
    if (seconds == 0)
        return "0 s";
    const Unit unit = unit_of_time(seconds);
    return three_digits(seconds / unit.seconds) + " " + unit.name;
}

std::string counted(double number, const std::string &thing, const std::string &things) {
    return fixed(number, 0) + " " +
           (std::llround(number) == 1 ? thing
            : things.empty()          ? thing + "s"
                                      : things);
}

namespace {

std::string wrap(const std::string &text, const std::string &indent, std::size_t columns) {
    std::string out, line;
    std::size_t from = 0;
    while (from < text.size()) {
        const std::size_t to = end_of_word(text, from);
        if (!line.empty() && line.size() + to - from > columns - 1) {
            out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
            line = indent;
            from += text[from] == ' ' ? 1 : 0;
        }
        line += text.substr(from, to - from);
        from = to;
    }
    return out + line + "\n";
}

} // namespace

std::string wrapped(const std::string &text, const std::string &indent) {
    return wrap(text, indent, columns_of_reports);
}

std::string message_for(int fd, const std::string &text) {
    const std::size_t columns = terminal_columns(fd);
    return columns == 0 ? text + "\n" : wrap(text, "  ", std::max(columns, kNarrowest));
}

std::string row_for(int fd, const std::string &row, std::size_t margin) {
    const std::size_t columns = terminal_columns(fd);
    return columns <= margin + kNarrowest / 2 ? row + "\n" : wrap(row, std::string(margin, ' '), columns);
}

} // namespace thrum
