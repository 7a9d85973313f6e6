// SPDX-License-Identifier: Apache-2.0
#include "names.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "comparison.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

std::string in_module(const Frame &frame) {
    if (begins_with(frame.module, "(")) // no file: an offset would be none
        return frame.module;
    char offset[32];
    std::snprintf(offset, sizeof offset, "0x%llx", static_cast<unsigned long long>(frame.offset));
    return frame.module.empty() ? offset : frame.module + "+" + offset;
}

} // namespace

const char *name_of(Doing doing) {
#define THRUM_STAT_NAME(doing, name, key) name,
    static const char *const names[] = {THRUM_STAT_DOINGS(THRUM_STAT_NAME)};
#undef THRUM_STAT_NAME
    return names[static_cast<std::size_t>(std::min(doing, Doing::kKernel))];
}

const char *name_of(Confidence confidence) {
    switch (confidence) {
    case Confidence::kHigh: return "high";
    case Confidence::kMedium: return "medium";
    default: return "low";
    }
}

const char *key_of(Doing doing) {
#define THRUM_STAT_KEY(doing, name, key) key,
    static const char *const keys[] = {THRUM_STAT_DOINGS(THRUM_STAT_KEY)};
#undef THRUM_STAT_KEY
    return keys[static_cast<std::size_t>(std::min(doing, Doing::kKernel))];
}

const char *key_of(LockKind kind) {
    switch (kind) {
    case LockKind::kLibrary: return "library";
    case LockKind::kGlobal: return "global";
    case LockKind::kHeap: return "heap";
    case LockKind::kStack: return "stack";
    case LockKind::kMapping: return "mapping";
    default: return "unknown";
    }
}

const char *key_of(Outcome outcome) {
    switch (outcome) {
    case Outcome::kSlower: return "slower";
    case Outcome::kNoFaster: return "no_faster";
    case Outcome::kTooShort: return "too_short";
    case Outcome::kNoDifference: return "no_difference";
    case Outcome::kScalesSome: return "scales_some";
    case Outcome::kScales: return "scales";
    case Outcome::kOneRun: return "one_run";
    case Outcome::kStuck: return "stuck";
    default: return "inconclusive";
    }
}

std::string frame_name(const Frame &frame) {
    return frame.function.empty() ? in_module(frame) : frame.function;
}

std::string module_note(const std::string &module) {
    if (module.empty())
        return "";
    return module[0] == '(' ? " " + module : " (" + module + ")";
}

std::string frame_place(const Frame &frame) {
    if (frame.function.empty())
        return in_module(frame);
    if (!frame.file.empty())
        return frame.function + " (" + frame.file + (frame.line > 0 ? ":" + std::to_string(frame.line) : "") +
               ")";
    return frame.function + module_note(frame.module);
}

std::string chain_of(const std::vector<Frame> &stack, std::size_t most) {
    const auto own =
        std::find_if(stack.begin(), stack.end(), [](const Frame &frame) { return frame.is_user; });
    const auto placed = static_cast<std::size_t>(own - stack.begin());
    std::string text;
    for (std::size_t i = 0; i < std::min(most, stack.size()); i++)
        text += (i == 0 ? "" : " <- ") + (i == placed ? frame_place(stack[i]) : frame_name(stack[i]));
    return stack.size() > most ? text + " <- ..." : text;
}

const Lock *lock_of(const Report &report, const Site &site) {
    return site.lock < report.locks.size() ? &report.locks[site.lock].lock : nullptr;
}

const Site *site_of(const Report &report, const Thread::Span &span) {
    const std::vector<Site> &sites = span.doing == Doing::kRunning ? report.burns : report.waits;
    const bool has_one = span.doing == Doing::kRunning || span.doing == Doing::kLockWait;
    return has_one && span.site < sites.size() ? &sites[span.site] : nullptr;
}

std::string number_text(double number, int decimals) {
    return std::isfinite(number) ? fixed(number, decimals) : "?";
}

std::string time_text(double seconds) {
    if (!std::isfinite(seconds))
        return "?";
    return seconds > 0 ? duration(seconds) : "0 s";
}

std::string factor_text(double ratio) {
    return std::isfinite(ratio) ? times(ratio) : "?";
}

std::string program_name(const Report &report) {
    if (report.command.empty())
        return "?";
    return file_name(report.command.front());
}

} // namespace thrum::stat
