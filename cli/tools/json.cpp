// SPDX-License-Identifier: Apache-2.0
#include "tools/json.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace thrum {

namespace {

// What a reader makes of a number that is printed like this.
Json number_of(const char *format, int digits, double number) {
    char text[400]; // the largest number has 309 digits before the point
    if (!std::isfinite(number))
        return nullptr;
    std::snprintf(text, sizeof text, format, digits, number);
    char *end;
    if (const long long whole = std::strtoll(text, &end, 10); *end == '\0' && std::fabs(number) < 0x1p63)
        return whole;
    return std::strtod(text, nullptr);
}

std::string dumped(const Json &json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

} // namespace

Json json_number(double number, int decimals) {
    return number_of("%.*f", decimals, number);
}

Json json_number(const std::optional<double> &number, int decimals) {
    return number ? json_number(*number, decimals) : Json();
}

Json json_number(double number) {
    return number_of("%.*g", 9, number);
}

Json json_text(const std::string &text) {
    return text.empty() ? Json() : Json(text);
}

Json json_address(std::uint64_t address) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
}

Json json_object(std::size_t members) {
    Json::object_t object;
    object.reserve(members);
    return object;
}

// Of the lines without indentation: a text has no line break in it, which is written "\n".
std::string json_line(const Json &json) {
    std::string line;
    for (const char c : dumped(json, 0))
        if (c != '\n')
            line += c;
        else if (line.back() == ',')
            line += ' ';
    return line;
}

std::string json_compact(const Json &json) {
    return dumped(json, -1);
}

std::string json_lines(const Json &json) {
    return dumped(json, 1);
}

} // namespace thrum
