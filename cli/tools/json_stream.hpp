// SPDX-License-Identifier: Apache-2.0
//
// JSON that is written as it comes, without spaces: for events by the million, each of which tools/json.hpp would first make of
// values on the heap. Names of members are literals that need no escapes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace thrum {

class JsonStream {
  public:
    // An object: by itself, or as a member of the one that is open.
    void open();
    void open(std::string_view name);
    void close();

    // Members of the object that is open.
    void text(std::string_view name, std::string_view text);
    void number(std::string_view name, std::uint64_t number);
    void flag(std::string_view name, bool flag);
    // Nanoseconds, as a number of microseconds with three decimals at most.
    void microseconds(std::string_view name, std::uint64_t ns);

    const std::string &written() const { return text_; }
    void clear() { text_.clear(); }

  private:
    void begin(std::string_view name);
    void digits(std::uint64_t number);

    std::string text_;
};

} // namespace thrum
