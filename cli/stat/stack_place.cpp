// SPDX-License-Identifier: Apache-2.0
#include "stat/stack_place.hpp"

#include "stat/names.hpp"
#include "stat/rules.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

Place place_of(const std::vector<Frame> &stack) {
    const Frame *found = nullptr;
    for (const Frame &frame : stack)
        if (frame.is_user &&
            (found == nullptr || (ends_with(frame.file, ".py") && !ends_with(found->file, ".py"))))
            found = &frame;
    if (found == nullptr)
        return {};
    if (!found->function.empty())
        return {source_name(found->function), found->file, found->line, "", ""};
    Frame body = *found;
    if (body.begin != 0)
        body.offset = body.begin;
    return {"", found->file, found->line, frame_name(*found), frame_name(body)};
}

const Frame *called_frame(const std::vector<Frame> &stack, bool (*passes_on)(const Frame &)) {
    const Frame *found = nullptr;
    for (const Frame &frame : stack) {
        if (frame.is_user)
            break;
        if (!frame.function.empty() && (passes_on == nullptr || !passes_on(frame)))
            found = &frame;
    }
    return found;
}

} // namespace thrum::stat
