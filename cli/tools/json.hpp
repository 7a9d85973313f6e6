// SPDX-License-Identifier: Apache-2.0
//
// JSON, by nlohmann's library: members stand in the order in which they were added. Its header takes two seconds to compile,
// so that only the files which write JSON include this one.
//
// A number has as many decimals as it is worth. JSON has no word for infinity and NaN: they become null. Bytes that are not
// UTF-8 become U+FFFD.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace thrum {

using Json = nlohmann::ordered_json;

// Rounded to so many decimals; an integer if there are none.
Json json_number(double number, int decimals);
Json json_number(const std::optional<double> &number, int decimals);
// With nine significant digits; an integer if it is one.
Json json_number(double number);

// Null if it is empty.
Json json_text(const std::string &text);
// "0x12ab": a text, because some readers keep only 53 bits of a number.
Json json_address(std::uint64_t address);

template <typename List, typename ToJson>
Json json_array(const List &list, ToJson to_json) {
    Json array = Json::array();
    for (const auto &item : list)
        array.push_back(to_json(item));
    return array;
}

// An object with room for so many members: for those that are made by the thousand.
Json json_object(std::size_t members);

// On one line, with a space behind each comma and colon.
std::string json_line(const Json &json);
// Without spaces.
std::string json_compact(const Json &json);
// On many lines, indented.
std::string json_lines(const Json &json);

} // namespace thrum
