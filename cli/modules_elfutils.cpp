// SPDX-License-Identifier: Apache-2.0
#include "modules.hpp"

#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <optional>
#include <set>

#include "maps.hpp"

namespace thrum {

namespace {

char *debug_path = nullptr; // elfutils' own

std::uint64_t page_of(std::uint64_t address) {
    static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return address / size * size;
}

// Where the module's first page is, going by one of its segments: they lie as far apart as they are linked, which need
// not be as far as they lie in the file.
std::optional<std::uint64_t> base_of(Elf *elf, const Mapping &mapping) {
    std::size_t headers = 0;
    std::optional<std::uint64_t> first, base;
    if (elf == nullptr || elf_getphdrnum(elf, &headers) != 0)
        return std::nullopt;
    for (std::size_t i = 0; i < headers; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD)
            continue;
        if (!first)
            first = page_of(header.p_vaddr);
        if ((header.p_flags & PF_X) != 0 && page_of(header.p_offset) == mapping.offset && !base)
            base = mapping.start - (page_of(header.p_vaddr) - *first);
    }
    return base;
}

void report(Dwfl *dwfl, const Mapping &mapping, std::optional<pid_t> process,
            std::set<std::uint64_t> &reported) {
    const int fd = process ? open_mapped(mapping, *process)
                           : open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
    const std::optional<std::uint64_t> base = base_of(elf, mapping);
    elf_end(elf);
    // A module may have code in several mappings.
    if (base && reported.insert(*base).second &&
        dwfl_report_elf(dwfl, mapping.path.c_str(), mapping.path.c_str(), fd, *base, false) != nullptr)
        return; // the descriptor is the module's
    close(fd);
}

} // namespace

const Dwfl_Callbacks kModuleFiles = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr,
                                     &debug_path};

DwflSession session_of(const std::string &maps, std::optional<pid_t> process) {
    DwflSession session(dwfl_begin(&kModuleFiles));
    if (session == nullptr)
        return session;
    elf_version(EV_CURRENT);
    std::set<std::uint64_t> reported;
    dwfl_report_begin(session.get());
    for (const Mapping &mapping : mappings_of(maps))
        if (mapping.is_executable && mapping.is_of_file())
            report(session.get(), mapping, process, reported);
    dwfl_report_end(session.get(), nullptr, nullptr);
    return session;
}

} // namespace thrum
