// SPDX-License-Identifier: Apache-2.0
//
// Text in columns. A character takes one column, whatever its length in UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace thrum {

// The columns of a terminal that it takes.
std::size_t width_of(const std::string &text);

// To the left in so many columns, with at least one space behind it; to the right.
std::string to_left(const std::string &text, std::size_t width);
std::string to_right(const std::string &text, std::size_t width);

// Rows of as many cells each, in columns as wide as their widest cells: the first to the left, the others to the right.
std::string in_columns(const std::vector<std::vector<std::string>> &rows);

} // namespace thrum
