// SPDX-License-Identifier: Apache-2.0
#include "elf.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "native.hpp"

namespace thrum::elf {

namespace {

// Bounds that no sound file comes near.
constexpr std::size_t kMaxProgramHeaders = 1024;
constexpr std::size_t kMaxDynamicEntries = 4096;
constexpr std::size_t kMaxStringLength = 4096;
constexpr std::uint32_t kMaxHashChain = 1u << 16;

bool read_file(int fd, std::uint64_t offset, void *to, std::size_t bytes) {
    auto *at = static_cast<char *>(to);
    while (bytes > 0) {
        const ssize_t got = pread(fd, at, bytes, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

// The program headers that `read` finds behind an ELF header at `start`.
std::optional<std::vector<Elf64_Phdr>> read_headers(const Image::Reader &read, std::uint64_t start) {
    Elf64_Ehdr header;
    if (!read(start, &header, sizeof header))
        return std::nullopt;
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return std::nullopt;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != native_machine())
        return std::nullopt;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxProgramHeaders)
        return std::nullopt;
    std::vector<Elf64_Phdr> headers(header.e_phnum);
    if (!read(start + header.e_phoff, headers.data(), headers.size() * sizeof(Elf64_Phdr)))
        return std::nullopt;
    return headers;
}

const Elf64_Phdr *find_header(const std::vector<Elf64_Phdr> &headers, std::uint32_t type) {
    const auto found = std::find_if(headers.begin(), headers.end(),
                                    [type](const Elf64_Phdr &h) { return h.p_type == type; });
    return found == headers.end() ? nullptr : &*found;
}

// Reads a file by virtual address: through the PT_LOAD header that covers it.
Image::Reader reader_of_file(int fd, std::vector<Elf64_Phdr> headers) {
    return [fd, headers = std::move(headers)](std::uint64_t address, void *to, std::size_t bytes) {
        for (const Elf64_Phdr &h : headers) {
            if (h.p_type != PT_LOAD || address < h.p_vaddr)
                continue;
            const std::uint64_t within = address - h.p_vaddr;
            if (within < h.p_filesz && bytes <= h.p_filesz - within)
                return read_file(fd, h.p_offset + within, to, bytes);
        }
        return false;
    };
}

std::uint32_t gnu_hash(const std::string &name) {
    std::uint32_t hash = 5381;
    for (const char c : name)
        hash = hash * 33 + static_cast<unsigned char>(c);
    return hash;
}

struct GnuHashHeader {
    std::uint32_t buckets;
    std::uint32_t first_symbol; // symbols before it are not in the table
    std::uint32_t bloom_words;  // of 64 bits each
    std::uint32_t bloom_shift;
};

} // namespace

std::uint16_t native_machine() {
    return native::kMachine;
}

std::string machine_name(std::uint16_t machine) {
    switch (machine) {
    case EM_386: return "x86";
    case EM_X86_64: return "x86-64";
    case EM_ARM: return "arm";
    case EM_AARCH64: return "aarch64";
    case EM_RISCV: return "riscv";
    case EM_PPC64: return "ppc64";
    case EM_S390: return "s390";
    default: return "machine type " + std::to_string(machine);
    }
}

bool Identity::is_native() const {
    return is_64_bit && is_little_endian && machine == native_machine();
}

std::optional<Identity> identify(int fd) {
    unsigned char head[20]; // e_ident, e_type, e_machine: laid out alike in both classes
    if (!read_file(fd, 0, head, sizeof head))
        return std::nullopt;
    if (std::memcmp(head, ELFMAG, SELFMAG) != 0)
        return std::nullopt;
    const bool little = head[EI_DATA] == ELFDATA2LSB;
    const unsigned low = head[little ? 18 : 19], high = head[little ? 19 : 18];
    return Identity{head[EI_CLASS] == ELFCLASS64, little, static_cast<std::uint16_t>(low | high << 8)};
}

Image::Image(Reader read, std::vector<Elf64_Phdr> headers, std::uint64_t bias)
    : read_(std::move(read)), headers_(std::move(headers)), bias_(bias) {
    load_dynamic();
}

std::optional<Image> Image::from_file(int fd) {
    const Reader by_offset = [fd](std::uint64_t offset, void *to, std::size_t bytes) {
        return read_file(fd, offset, to, bytes);
    };
    auto headers = read_headers(by_offset, 0);
    if (!headers)
        return std::nullopt;
    return Image(reader_of_file(fd, *headers), *headers, 0);
}

std::optional<Image> Image::from_process(pid_t pid, std::uint64_t start) {
    Reader by_address = [pid](std::uint64_t address, void *to, std::size_t bytes) {
        return read_process(pid, address, to, bytes);
    };
    auto headers = read_headers(by_address, start);
    if (!headers)
        return std::nullopt;
    // Offset 0 of the file lies p_offset bytes before the first segment's linked address.
    const Elf64_Phdr *first = find_header(*headers, PT_LOAD);
    if (first == nullptr)
        return std::nullopt;
    return Image(std::move(by_address), *headers, start - (first->p_vaddr - first->p_offset));
}

void Image::load_dynamic() {
    const Elf64_Phdr *header = find_header(headers_, PT_DYNAMIC);
    if (header == nullptr)
        return;
    const std::size_t most = std::min<std::size_t>(header->p_memsz / sizeof(Elf64_Dyn), kMaxDynamicEntries);
    for (std::size_t i = 0; i < most; i++) {
        Elf64_Dyn entry;
        if (!read_(bias_ + header->p_vaddr + i * sizeof entry, &entry, sizeof entry))
            return;
        if (entry.d_tag == DT_NULL)
            return;
        dynamic_.push_back(entry);
    }
}

std::optional<std::uint64_t> Image::dynamic_value(std::int64_t tag) const {
    for (const Elf64_Dyn &entry : dynamic_)
        if (entry.d_tag == tag)
            return entry.d_un.d_val;
    return std::nullopt;
}

// The loader relocates the dynamic section's addresses in place (glibc on both of our machines), but a
// process may be caught before that: an address below the bias is still one as linked.
std::optional<std::uint64_t> Image::dynamic_address(std::int64_t tag) const {
    const auto value = dynamic_value(tag);
    if (!value)
        return std::nullopt;
    return *value < bias_ ? *value + bias_ : *value;
}

std::string Image::string_at(std::uint64_t address) const {
    std::string text;
    for (char c; text.size() < kMaxStringLength && read_(address + text.size(), &c, 1) && c != '\0';)
        text.push_back(c);
    return text;
}

std::string Image::dynamic_string(std::uint64_t offset) const {
    const auto table = dynamic_address(DT_STRTAB);
    return table ? string_at(*table + offset) : std::string();
}

std::string Image::interpreter() const {
    const Elf64_Phdr *header = find_header(headers_, PT_INTERP);
    return header == nullptr ? std::string() : string_at(bias_ + header->p_vaddr);
}

std::string Image::soname() const {
    const auto offset = dynamic_value(DT_SONAME);
    return offset ? dynamic_string(*offset) : std::string();
}

std::vector<std::string> Image::needed() const {
    std::vector<std::string> names;
    for (const Elf64_Dyn &entry : dynamic_)
        if (entry.d_tag == DT_NEEDED)
            names.push_back(dynamic_string(entry.d_un.d_val));
    return names;
}

// A bucket holds the index of its first symbol; from there on the chain has each symbol's hash with
// the lowest bit replaced by "this is the bucket's last".
std::optional<Image::Symbol> Image::find_symbol(const std::string &name) const {
    const auto table = dynamic_address(DT_GNU_HASH), symbols = dynamic_address(DT_SYMTAB);
    GnuHashHeader head;
    if (!table || !symbols || !read_(*table, &head, sizeof head) || head.buckets == 0)
        return std::nullopt;
    const std::uint64_t buckets = *table + sizeof head + std::uint64_t{head.bloom_words} * 8;
    const std::uint64_t chain = buckets + std::uint64_t{head.buckets} * 4;
    const std::uint32_t wanted = gnu_hash(name);

    std::uint32_t index;
    if (!read_(buckets + std::uint64_t{wanted % head.buckets} * 4, &index, sizeof index))
        return std::nullopt;
    if (index < head.first_symbol)
        return std::nullopt; // an empty bucket
    for (std::uint32_t step = 0; step < kMaxHashChain; step++, index++) {
        std::uint32_t hash;
        if (!read_(chain + std::uint64_t{index - head.first_symbol} * 4, &hash, sizeof hash))
            return std::nullopt;
        Elf64_Sym symbol;
        if ((hash | 1) == (wanted | 1) &&
            read_(*symbols + std::uint64_t{index} * sizeof symbol, &symbol, sizeof symbol) &&
            symbol.st_shndx != SHN_UNDEF && dynamic_string(symbol.st_name) == name)
            return Symbol{bias_ + symbol.st_value, symbol.st_size};
        if (hash & 1)
            return std::nullopt;
    }
    return std::nullopt;
}

std::vector<std::string> Image::wanted_symbols(const std::string &prefix) const {
    std::vector<std::string> names;
    const auto table = dynamic_address(DT_GNU_HASH), symbols = dynamic_address(DT_SYMTAB);
    GnuHashHeader head;
    if (!table || !symbols || !read_(*table, &head, sizeof head))
        return names;
    for (std::uint32_t index = 1; index < head.first_symbol && index < kMaxHashChain; index++) {
        Elf64_Sym symbol;
        if (!read_(*symbols + std::uint64_t{index} * sizeof symbol, &symbol, sizeof symbol))
            break;
        const std::string name = symbol.st_shndx == SHN_UNDEF ? dynamic_string(symbol.st_name) : "";
        if (name.compare(0, prefix.size(), prefix) == 0)
            names.push_back(name);
    }
    return names;
}

bool read_process(pid_t pid, std::uint64_t address, void *to, std::size_t bytes) {
    const iovec local{to, bytes};
    const iovec remote{reinterpret_cast<void *>(address), bytes}; // NOLINT: an address of the other's
    const ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (got >= 0 && static_cast<std::size_t>(got) != bytes)
        errno = EFAULT;
    return got >= 0 && static_cast<std::size_t>(got) == bytes;
}

} // namespace thrum::elf
