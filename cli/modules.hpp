// SPDX-License-Identifier: Apache-2.0
//
// A session of elfutils' libdwfl for a process that may have ended: from the text of its maps file, and the files that
// stand there. Used by symbols_elfutils.cpp and backtrace_elfutils.cpp, in builds that have elfutils.
#pragma once

#include <elfutils/libdwfl.h>

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

namespace thrum {

struct EndDwfl {
    void operator()(Dwfl *dwfl) const { dwfl_end(dwfl); }
};
using DwflSession = std::unique_ptr<Dwfl, EndDwfl>;

// Each program and library from its first byte to the last one of its data, which maps may show without a name. What
// cannot be read, is no ELF file, or has no code in the process is left out. Null where there is no memory. `process`: only
// the very files that it has mapped, 0 where it has ended; nothing: those that stand there by now.
DwflSession session_of(const std::string &maps, std::optional<pid_t> process = std::nullopt);

// Debugging information where the distribution has it.
extern const Dwfl_Callbacks kModuleFiles;

} // namespace thrum
