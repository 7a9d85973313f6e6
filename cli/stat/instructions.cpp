// SPDX-License-Identifier: Apache-2.0
#include "stat/instructions.hpp"

#include <unistd.h>

#include <cstring>

namespace thrum::stat {

namespace {

// Where four bytes of an instruction point that are counted from its end.
std::uint64_t from_end(std::uint64_t end, const unsigned char *bytes) {
    std::int32_t distance = 0;
    std::memcpy(&distance, bytes, sizeof distance);
    return end + static_cast<std::uint64_t>(std::int64_t{distance});
}

} // namespace

bool Code::read(std::uint64_t address, void *to, std::size_t bytes) {
    const Mapping *mapping = mapping_at(mappings_, address);
    if (mapping == nullptr || !mapping->is_executable || !mapping->is_of_file())
        return false;
    const auto [file, is_new] = files_.try_emplace(mapping->path);
    if (is_new)
        file->second = Descriptor(open_mapped(*mapping, process_));
    const auto at = static_cast<off_t>(address - mapping->start + mapping->offset);
    return file->second.is_open() && pread(file->second.get(), to, bytes, at) == static_cast<ssize_t>(bytes);
}

bool Code::is_behind_call(std::uint64_t address, std::uint64_t &target) {
    return set_ == Set::kX86_64 ? is_behind_x86_64_call(address, target)
                                : is_behind_aarch64_call(address, target);
}

std::uint64_t Code::word_of_entry(std::uint64_t entry) {
    return set_ == Set::kX86_64 ? word_of_x86_64_entry(entry) : word_of_aarch64_entry(entry);
}

std::uint64_t Code::word_of_call(std::uint64_t address) {
    return set_ == Set::kX86_64 ? word_of_x86_64_call(address) : word_of_aarch64_call(address);
}

std::uint64_t Code::target_of_jump(std::uint64_t address) {
    unsigned char bytes[5] = {};
    if (!read(address, bytes, sizeof bytes))
        return 0;
    if (set_ == Set::kX86_64) {
        if (bytes[0] == 0xe9)
            return from_end(address + 5, bytes + 1);
        return bytes[0] == 0xeb ? address + 2 + static_cast<std::uint64_t>(static_cast<signed char>(bytes[1]))
                                : 0;
    }
    std::uint32_t instruction = 0;
    std::memcpy(&instruction, bytes, sizeof instruction);
    const std::int64_t words = static_cast<std::int32_t>(instruction << 6) >> 6;
    return (instruction & 0xfc000000) == 0x14000000 ? address + static_cast<std::uint64_t>(words * 4) : 0;
}

// --- x86-64 -------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kLongest = 7; // of calls, but for prefixes

// How long "call r/m64" (FF /2) is; 0: these bytes are none.
std::size_t length_of_indirect_call(const unsigned char *at) {
    const unsigned mode = at[1] >> 6, memory = at[1] & 7;
    if (at[0] != 0xff || (at[1] >> 3 & 7) != 2)
        return 0;
    const bool has_index = mode != 3 && memory == 4;
    const bool has_no_base = mode == 0 && (memory == 5 || (has_index && (at[2] & 7) == 5));
    return 2 + (has_index ? 1 : 0) + (mode == 1 ? 1 : mode == 2 || has_no_base ? 4 : 0);
}

} // namespace

// "push %rbp; mov %rsp, %rbp", more registers, and "sub SIZE, %rsp".
std::optional<std::uint64_t> Code::size_of_frame(std::uint64_t function) {
    constexpr unsigned char kLanding[] = {0xf3, 0x0f, 0x1e, 0xfa}, kFrame[] = {0x55, 0x48, 0x89, 0xe5};
    unsigned char bytes[32];
    if (set_ != Set::kX86_64 || !read(function, bytes, sizeof bytes))
        return std::nullopt;
    std::size_t at = std::memcmp(bytes, kLanding, sizeof kLanding) == 0 ? sizeof kLanding : 0;
    if (std::memcmp(bytes + at, kFrame, sizeof kFrame) != 0)
        return std::nullopt;
    at += sizeof kFrame;
    std::uint64_t size = 0;
    const auto is_push = [](unsigned char byte) { return byte >= 0x50 && byte <= 0x57; };
    for (; is_push(bytes[at]) || (bytes[at] == 0x41 && is_push(bytes[at + 1])); size += 8)
        at += bytes[at] == 0x41 ? 2 : 1;
    if (bytes[at] != 0x48 || bytes[at + 2] != 0xec)
        return size;
    std::uint32_t more = bytes[at + 3];
    if (bytes[at + 1] == 0x81)
        std::memcpy(&more, bytes + at + 3, sizeof more);
    return size + more;
}

bool Code::is_behind_x86_64_call(std::uint64_t address, std::uint64_t &target) {
    unsigned char bytes[kLongest + 2] = {};
    if (!read(address - kLongest, bytes, kLongest))
        return false;
    target = 0;
    if (bytes[kLongest - 5] == 0xe8) {
        target = from_end(address, bytes + kLongest - 4);
        const Mapping *at = mapping_at(mappings_, target);
        if (at != nullptr && at->is_executable)
            return true;
        target = 0;
    }
    for (std::size_t length = 2; length <= kLongest; length++)
        if (length_of_indirect_call(bytes + kLongest - length) == length)
            return true;
    return false;
}

// "jmp *WORD(%rip)", where need be behind "endbr64" and with the prefix "bnd".
std::uint64_t Code::word_of_x86_64_entry(std::uint64_t entry) {
    constexpr unsigned char kLanding[] = {0xf3, 0x0f, 0x1e, 0xfa}, kPrefix = 0xf2, kJump[] = {0xff, 0x25};
    unsigned char bytes[16];
    if (!read(entry, bytes, sizeof bytes))
        return 0;
    std::size_t at = std::memcmp(bytes, kLanding, sizeof kLanding) == 0 ? sizeof kLanding : 0;
    at += bytes[at] == kPrefix ? 1 : 0;
    return std::memcmp(bytes + at, kJump, sizeof kJump) == 0 ? from_end(entry + at + 6, bytes + at + 2) : 0;
}

// "call ENTRY", or "call *WORD(%rip)".
std::uint64_t Code::word_of_x86_64_call(std::uint64_t address) {
    unsigned char bytes[6];
    if (!read(address - sizeof bytes, bytes, sizeof bytes))
        return 0;
    const std::uint64_t target = from_end(address, bytes + 2);
    if (bytes[0] == 0xff && bytes[1] == 0x15)
        return target;
    return bytes[1] == 0xe8 ? word_of_x86_64_entry(target) : 0;
}

// --- aarch64 ------------------------------------------------------------------------------------------

bool Code::is_behind_aarch64_call(std::uint64_t address, std::uint64_t &target) {
    std::uint32_t instruction = 0;
    if (!read(address - sizeof instruction, &instruction, sizeof instruction))
        return false;
    target = 0;
    if ((instruction & 0xfffffc1f) == 0xd63f0000) // BLR
        return true;
    if ((instruction & 0xfc000000) != 0x94000000) // BL
        return false;
    const std::int64_t words = static_cast<std::int32_t>(instruction << 6) >> 6;
    target = address - sizeof instruction + static_cast<std::uint64_t>(words * 4);
    return true;
}

// "adrp x16, PAGE; ldr x17, [x16, OFFSET]", where need be behind "bti c".
std::uint64_t Code::word_of_aarch64_entry(std::uint64_t entry) {
    constexpr std::uint32_t kLanding = 0xd503245f;
    std::uint32_t words[3];
    if (!read(entry, words, sizeof words))
        return 0;
    const std::uint32_t *at = words;
    if (*at == kLanding) {
        at++;
        entry += sizeof *at;
    }
    if ((at[0] & 0x9f00001f) != 0x90000010 || (at[1] & 0xffc003ff) != 0xf9400211)
        return 0;
    const std::uint32_t pages = (at[0] >> 5 & 0x7ffff) << 2 | (at[0] >> 29 & 3);
    const std::int64_t distance = static_cast<std::int32_t>(pages << 11) >> 11;
    return (entry & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(distance * 0x1000) +
           (at[1] >> 10 & 0xfff) * sizeof(std::uint64_t);
}

std::uint64_t Code::word_of_aarch64_call(std::uint64_t address) {
    std::uint64_t target = 0;
    return is_behind_aarch64_call(address, target) && target != 0 ? word_of_aarch64_entry(target) : 0;
}

} // namespace thrum::stat
