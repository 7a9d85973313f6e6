// SPDX-License-Identifier: Apache-2.0
//
// Text for others to read: strings of unknown origin made safe for HTML and a shell, and numbers with as
// many digits as they are worth. Used by all that prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace thrum {

// Bytes that are not UTF-8 become U+FFFD.
std::string html_text(const std::string &text);
// A sentence or the cell of a table: a line does not break between a number and its unit, or an option
// and its number, nor within an option.
std::string html_words(const std::string &text);

// As a part of a line on a terminal: control characters, which that would take for commands or a new line, and bytes that are
// not UTF-8 are '?'.
std::string terminal_text(const std::string &text);

// The width of the terminal that a stream is; 0: it is none. Where that does not tell, 80.
std::size_t terminal_columns(int fd);

// So many bytes at most, and no part of a character in UTF-8.
std::string cut(const std::string &text, std::size_t bytes);

// The words as one would type them, on one line.
std::string shell_line(const std::vector<std::string> &words);

bool begins_with(const std::string &text, const char *beginning);
bool ends_with(const std::string &text, const char *end);
template <typename List>
bool begins_with_any(const std::string &text, const List &beginnings) {
    for (const char *beginning : beginnings)
        if (begins_with(text, beginning))
            return true;
    return false;
}

// The last component of a path.
std::string file_name(const std::string &path);

// printf's %.<decimals>f.
std::string fixed(double number, int decimals);
// Three digits that count: 0.123, 1.23, 12.3, 123, 1234.
std::string three_digits(double number);

// What a time is shown in: one unit for all the numbers of a row.
struct Unit {
    const char *name;
    double seconds;
};
Unit unit_of_time(double seconds);
// "1.23 s", "850 us".
std::string duration(double seconds);

// "1 thread", "2 threads"; "2 processes" where that is given.
std::string counted(double number, const std::string &thing, const std::string &things = "");

// The width of reports: 80 columns, or that of the narrower terminal that they are printed to. At the least 40.
std::size_t report_columns();
// Called by a command before it makes a report for this stream. Anything but a terminal gets 80 columns.
void fit_reports_to(int fd);

// In lines of report_columns(), broken between words, but not between a number and its unit or its option;
// `indent` begins all lines but
// the first.
std::string wrapped(const std::string &text, const std::string &indent);
// The same for a stream that is a terminal, in all of its columns; for any other, one line, which programs read.
std::string message_for(int fd, const std::string &text);
// A row whose last cell may be long and begins at `margin`.
std::string row_for(int fd, const std::string &row, std::size_t margin);

} // namespace thrum
