// SPDX-License-Identifier: Apache-2.0
#include "stat/origins.hpp"

#include <algorithm>

#include "tools/text.hpp"

namespace thrum::stat {

namespace {

// Their creator: the function of the program that waits for or burns CPU time in pthread_create().
Place place_of_making(const Report &report) {
    for (const std::vector<Site> *sites : {&report.makers, &report.burns, &report.others, &report.waits})
        for (const Site &site : *sites)
            for (const Frame &frame : site.stack) {
                const std::string name = plain_name(frame.function);
                if (name.compare(0, 14, "pthread_create") == 0 || name == "clone" || name == "clone3" ||
                    name == "clone_internal" || name == "thrd_create")
                    if (const Place place = place_of(site.stack); place.is_known())
                        return place;
            }
    return {};
}

// Where most of them begin: the program's outermost function in threads other than the first.
Place place_of_beginning(const Report &report) {
    for (const Site &site : report.burns) { // by share
        const auto outermost = std::find_if(site.stack.rbegin(), site.stack.rend(),
                                            [](const Frame &frame) { return frame.is_user; });
        if (outermost == site.stack.rend() ||
            std::any_of(site.stack.begin(), site.stack.end(),
                        [](const Frame &frame) { return frame.function == "main"; }))
            continue;
        return place_of({*outermost});
    }
    return {};
}

// Where they are waited for, which is not far from where they are made.
Place place_of_joining(const Report &report) {
    for (const Site &site : report.others)
        if (site.doing == Doing::kJoinWait)
            return place_of(site.stack);
    return {};
}

} // namespace

Origins origins_of(const Report &report) {
    return {place_of_making(report), place_of_joining(report), place_of_beginning(report)};
}

Place place_of_region(const Report &report) {
    for (const std::vector<Site> *sites : {&report.burns, &report.others, &report.waits})
        for (const Site &site : *sites) {
            const auto region = std::find_if(site.stack.begin(), site.stack.end(), [](const Frame &frame) {
                const std::string name = plain_name(frame.function);
                return begins_with(name, "GOMP_parallel") || begins_with(name, "kmpc_fork_call");
            });
            if (const Place place = place_of({region, site.stack.end()}); place.is_known())
                return place;
        }
    return {};
}

} // namespace thrum::stat
