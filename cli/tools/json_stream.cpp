// SPDX-License-Identifier: Apache-2.0
#include "tools/json_stream.hpp"

#include <algorithm>
#include <charconv>

#include "tools/json.hpp"

namespace thrum {

namespace {

bool is_plain(char c) {
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

} // namespace

void JsonStream::open() {
    text_ += '{';
}

void JsonStream::open(std::string_view name) {
    begin(name);
    open();
}

void JsonStream::close() {
    text_ += '}';
}

void JsonStream::text(std::string_view name, std::string_view text) {
    begin(name);
    if (std::all_of(text.begin(), text.end(), is_plain)) {
        text_ += '"';
        text_ += text;
        text_ += '"';
    } else {
        text_ += json_compact(std::string(text));
    }
}

void JsonStream::number(std::string_view name, std::uint64_t number) {
    begin(name);
    digits(number);
}

void JsonStream::flag(std::string_view name, bool flag) {
    begin(name);
    text_ += flag ? "true" : "false";
}

void JsonStream::microseconds(std::string_view name, std::uint64_t ns) {
    begin(name);
    digits(ns / 1000);
    const auto rest = static_cast<unsigned>(ns % 1000);
    const char decimals[] = {static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                             static_cast<char>('0' + rest % 10)};
    text_ += '.';
    text_.append(decimals, rest % 10 != 0 ? 3 : rest % 100 != 0 ? 2 : 1);
}

void JsonStream::begin(std::string_view name) {
    if (text_.back() != '{')
        text_ += ',';
    text_ += '"';
    text_ += name;
    text_ += "\":";
}

void JsonStream::digits(std::uint64_t number) {
    char text[20];
    text_.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

} // namespace thrum
