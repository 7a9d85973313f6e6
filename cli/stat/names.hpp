// SPDX-License-Identifier: Apache-2.0
//
// What the reports call things: a word for each value of report.hpp's enumerations, and a line for a place or a stack.
// Used by the report_*.cpp and stat_plot.cpp.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"

namespace thrum::stat {

// For programs: in --json, and as classes in the page's style sheet: "lock_wait", "library", "no_faster".
const char *key_of(Doing doing);
const char *key_of(LockKind kind);
const char *key_of(Outcome outcome);

// "draw"; where no function is known, "libfoo.so+0x12".
std::string frame_name(const Frame &frame);
// " (libc.so.6)"; " (unknown)" of a module that is none.
std::string module_note(const std::string &module);
// "draw (birthday.c:21)", "random (libc.so.6)".
std::string frame_place(const Frame &frame);
// "random <- draw (birthday.c:21) <- has_dup <- worker": innermost first, and the place of the first frame that is the
// program's own. No more than `most` frames.
std::string chain_of(const std::vector<Frame> &stack, std::size_t most);

// Of a list like Report::waits: its lock, where it has one.
const Lock *lock_of(const Report &report, const Site &site);
// Of a thread's span: where it waited or ran; nothing where that is not known.
const Site *site_of(const Report &report, const Thread::Span &span);

// Numbers as text; "?" for what is none, which a division may have left.
std::string number_text(double number, int decimals);
std::string time_text(double seconds); // "1.23 s"; "0 s" for nothing
std::string factor_text(double ratio); // "2.3x"

// The command's program without its folder.
std::string program_name(const Report &report);

} // namespace thrum::stat
