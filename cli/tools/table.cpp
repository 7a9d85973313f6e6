// SPDX-License-Identifier: Apache-2.0
#include "tools/table.hpp"

#include <algorithm>

namespace thrum {

namespace {

constexpr const char *kBetween = "  ";

std::string spaces(const std::string &text, std::size_t width) {
    const std::size_t taken = width_of(text);
    return taken < width ? std::string(width - taken, ' ') : "";
}

} // namespace

std::size_t width_of(const std::string &text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; // not the later bytes of a character
    }));
}

std::string to_left(const std::string &text, std::size_t width) {
    return text + (width_of(text) < width ? spaces(text, width) : " ");
}

std::string to_right(const std::string &text, std::size_t width) {
    return spaces(text, width) + text;
}

std::string in_columns(const std::vector<std::vector<std::string>> &rows) {
    std::vector<std::size_t> widths;
    for (const std::vector<std::string> &row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); i++)
            widths[i] = std::max(widths[i], width_of(row[i]));
    }
    std::string text;
    for (const std::vector<std::string> &row : rows) {
        for (std::size_t i = 0; i < row.size(); i++)
            text += i == 0 ? row[i] + spaces(row[i], widths[i]) : kBetween + to_right(row[i], widths[i]);
        text += '\n';
    }
    return text;
}

} // namespace thrum
