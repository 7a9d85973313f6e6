// SPDX-License-Identifier: Apache-2.0
//
// The text of /proc/PID/maps, taken apart. Used by all that have to do with addresses of another process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace thrum {

// "START-END PERMISSIONS OFFSET DEVICE INODE PATH", where PATH may be missing, "[heap]", or end in " (deleted)".
struct Mapping {
    std::uint64_t start = 0, end = 0, offset = 0;
    std::uint64_t device = 0, inode = 0; // as stat(2) has them; 0: not told
    bool is_readable = false, is_writable = false, is_executable = false;
    std::string path;

    bool is_of_file() const { return !path.empty() && path[0] == '/'; }
    bool has(std::uint64_t address) const { return address >= start && address < end; }
};

// In the order of addresses, as the kernel writes them; lines that are none are left out.
std::vector<Mapping> mappings_of(const std::string &maps);

// The one that has the address, of some that are in order; nullptr: none.
const Mapping *mapping_at(const std::vector<Mapping> &mappings, std::uint64_t address);

// Opens the file that is mapped, and no other one: by now another may stand in its place, and a process in a container
// has files of its own behind the same names. `process`: whose mapping it is, 0 where it has ended. A descriptor, or -1.
int open_mapped(const Mapping &mapping, pid_t process);

} // namespace thrum
