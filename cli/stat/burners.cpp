// SPDX-License-Identifier: Apache-2.0
#include "stat/burners.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "stat/names.hpp"
#include "stat/rules.hpp"
#include "stat/waits.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

// As a reader finds it: libc's internal names have underscores in front of the known ones.
std::string shown_name(const Frame &frame) {
    return is_of_libc(frame) ? plain_name(frame.function) : source_name(frame.function);
}

} // namespace

std::vector<Burner> find_burners(const Report &report) {
    // By place, leaf and module, and by what the program asked OpenMP for.
    std::map<std::tuple<std::string, std::string, std::string, const OpenmpConstruct *>, Burner> map;
    for (const std::vector<Site> *burns : {&report.burns, &report.burns_one})
        for (const Site &site : *burns) { // by share: the first has the line
            if (site.stack.empty())
                continue;
            const Frame &leaf = site.stack.front();
            const Place place = place_of(site.stack);
            // What the interpreter does for a Python function is that function's doing.
            const bool interprets = is_python(leaf) && ends_with(place.file, ".py");
            const std::string name = interprets ? place.function : shown_name(leaf);
            const OpenmpConstruct *construct = openmp_construct(site.stack);
            const auto [at, is_new] = map.try_emplace({place.function, name, leaf.module, construct});
            Burner &burner = at->second;
            if (is_new) {
                burner.place = place;
                burner.leaf = name;
                burner.module = leaf.module;
                burner.is_own = leaf.is_user || interprets;
                burner.openmp = construct;
                if (const Frame *called = interprets ? nullptr : called_frame(site.stack))
                    burner.called = shown_name(*called);
            }
            (burns == &report.burns ? burner.share : burner.share_one) += site.share;
        }
    std::vector<Burner> list;
    for (auto &[key, burner] : map)
        list.push_back(std::move(burner));
    std::stable_sort(list.begin(), list.end(),
                     [](const Burner &a, const Burner &b) { return a.share > b.share; });
    return list;
}

} // namespace thrum::stat
