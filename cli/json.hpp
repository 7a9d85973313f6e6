// SPDX-License-Identifier: Apache-2.0
//
// JSON put together from pieces that are JSON already; its strings are text.hpp's json_string. Used by compare_json.cpp,
// stat/report_json.cpp and stat/report_trace.cpp.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "text.hpp"

namespace thrum {

// "{...}" of members that are already JSON.
class JsonObject {
  public:
    JsonObject &add(const std::string &name, const std::string &json) {
        text_ += (text_.empty() ? "" : ", ") + json_string(name) + ": " + json;
        return *this;
    }
    std::string text() const { return "{" + text_ + "}"; }

  private:
    std::string text_;
};

template <typename List, typename ToJson>
std::string json_array(const List &list, ToJson to_json) {
    std::string text;
    for (const auto &item : list)
        text += (text.empty() ? "" : ", ") + to_json(item);
    return "[" + text + "]";
}

inline std::string json_boolean(bool value) {
    return value ? "true" : "false";
}

// JSON has no word for what is infinite or not a number.
inline std::string json_number(double number, int decimals) {
    return std::isfinite(number) ? fixed(number, decimals) : "null";
}

inline std::string json_number(const std::optional<double> &number, int decimals) {
    return number ? json_number(*number, decimals) : "null";
}

} // namespace thrum
