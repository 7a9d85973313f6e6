// SPDX-License-Identifier: Apache-2.0
#include "maps.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

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

// "fe:00 247026 ": numbers of the device, and of the file on it.
bool read_file_number(const char *&at, const char *end, Mapping &mapping) {
    std::uint64_t major_number = 0, minor_number = 0;
    if (!read_hexadecimal(at, end, ':', major_number) || !read_hexadecimal(at, end, ' ', minor_number))
        return false;
    mapping.device = makedev(static_cast<unsigned>(major_number), static_cast<unsigned>(minor_number));
    const auto [behind, error] = std::from_chars(at, end, mapping.inode);
    at = behind;
    return error == std::errc();
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
    const char *const device = at;
    mapping.path.assign(skip_field(skip_field(at, end), end), end);
    at = device;
    if (!read_file_number(at, end, mapping))
        mapping.device = mapping.inode = 0;
    return true;
}

// File systems without a device of their own (their major number is 0) may show another one to stat(2) than in the maps,
// as overlayfs and btrfs do, and overlayfs a longer number of the file.
bool is_file_of(int fd, const Mapping &mapping) {
    struct stat file {};
    if (fstat(fd, &file) != 0)
        return false;
    if (mapping.inode == 0 || (file.st_ino == mapping.inode && file.st_dev == mapping.device))
        return true;
    constexpr std::uint64_t kLow = UINT32_MAX;
    return (major(file.st_dev) == 0 || major(mapping.device) == 0) &&
           (file.st_ino & kLow) == (mapping.inode & kLow);
}

int open_if_mapped(const std::string &path, const Mapping &mapping) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || is_file_of(fd, mapping))
        return fd;
    close(fd);
    return -1;
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

int open_mapped(const Mapping &mapping, pid_t process) {
    int fd = open_if_mapped(mapping.path, mapping);
    if (process == 0)
        return fd;
    char range[64];
    std::snprintf(range, sizeof range, "/map_files/%llx-%llx", static_cast<unsigned long long>(mapping.start),
                  static_cast<unsigned long long>(mapping.end)); // with CAP_CHECKPOINT_RESTORE
    const std::string folder = "/proc/" + std::to_string(process);
    for (const std::string &path : {folder + "/root" + mapping.path, folder + "/exe", folder + range})
        fd = fd < 0 ? open_if_mapped(path, mapping) : fd;
    return fd;
}

} // namespace thrum
