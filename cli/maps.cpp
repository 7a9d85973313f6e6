// SPDX-License-Identifier: Apache-2.0
#include "maps.hpp"

#include <algorithm>
#include <charconv>

namespace thrum {

namespace {

// Behind the next field and the blanks that end it, or the end.
const char *skip_field(const char *at, const char *end) {
    while (at != end && *at != ' ')
        at++;
    while (at != end && *at == ' ')
        at++;
    return at;
}

// Up to `mark`, which `at` is moved behind; false where something else stands there.
bool read_hexadecimal(const char *&at, const char *end, char mark, std::uint64_t &number) {
    const auto [behind, error] = std::from_chars(at, end, number, 16);
    if (error != std::errc() || behind == end || *behind != mark)
        return false;
    at = behind + 1;
    return true;
}

// A process with many threads has many thousand of them.
bool parse(const char *at, const char *end, Mapping &mapping) {
    constexpr std::ptrdiff_t kPermissions = 5; // with the blank
    if (!read_hexadecimal(at, end, '-', mapping.start) || !read_hexadecimal(at, end, ' ', mapping.end) ||
        end - at < kPermissions)
        return false;
    mapping.is_readable = at[0] == 'r';
    mapping.is_writable = at[1] == 'w';
    mapping.is_executable = at[2] == 'x';
    at += kPermissions;
    if (!read_hexadecimal(at, end, ' ', mapping.offset))
        return false;
    mapping.path.assign(skip_field(skip_field(at, end), end), end);
    return true;
}

} // namespace

std::vector<Mapping> mappings_of(const std::string &maps) {
    std::vector<Mapping> mappings;
    for (std::size_t at = 0; at < maps.size();) {
        const std::size_t end = std::min(maps.find('\n', at), maps.size());
        Mapping mapping;
        if (parse(maps.data() + at, maps.data() + end, mapping))
            mappings.push_back(std::move(mapping));
        at = end + 1;
    }
    return mappings;
}

const Mapping *mapping_at(const std::vector<Mapping> &mappings, std::uint64_t address) {
    const auto behind =
        std::upper_bound(mappings.begin(), mappings.end(), address,
                         [](std::uint64_t wanted, const Mapping &mapping) { return wanted < mapping.start; });
    return behind != mappings.begin() && std::prev(behind)->has(address) ? &*std::prev(behind) : nullptr;
}

} // namespace thrum
