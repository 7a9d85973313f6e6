// SPDX-License-Identifier: Apache-2.0
//
// Where the time of the sampled run went: what threads did, the waits and their locks, the CPU profile.
#include <algorithm>

#include "stat/facts.hpp"
#include "stat/html/html.hpp"
#include "stat/names.hpp"
#include "stat/stat_plot.hpp"
#include "tools/page.hpp"
#include "tools/text.hpp"

namespace thrum::stat::html {

namespace {

constexpr std::size_t kChain = 10; // functions of a stack in a table

// Strong colours first, from the left; waits that cost nothing at the end.
constexpr Doing kOrder[] = {Doing::kRunning,     Doing::kKernel,   Doing::kLockWait, Doing::kRunnable,
                            Doing::kInputOutput, Doing::kJoinWait, Doing::kIdleWait, Doing::kSleep};

std::string keys_of(const std::vector<Part> &parts) {
    double sum = 0;
    for (const Part &part : parts)
        sum += part.seconds;
    std::string items;
    for (const Part &part : parts)
        if (part.seconds > 0)
            items += key(part.style, part.name + " " + time_text(part.seconds) + " (" +
                                         percent(part.seconds / sum) + ")");
    return keys(items);
}

std::string parts(const std::string &title, const std::vector<Part> &parts) {
    const std::string bar = picture("parts", [&](double width) { return plot_parts(title, parts, width); });
    return bar.empty() ? "" : html_element("h3", title) + "\n" + bar + keys_of(parts);
}

std::string site_rows(const Report &report, const std::vector<Site> &sites) {
    std::string rows = "<tr><th>share</th><th>samples</th><th>time</th><th></th></tr>\n";
    for (std::size_t i = 0; i < std::min(sites.size(), kRows); i++) {
        const Site &site = sites[i];
        const Lock *lock = lock_of(report, site);
        rows += "<tr>" + html_element("td", percent(site.share)) +
                html_element("td", std::to_string(site.samples)) +
                html_element("td", time_text(site.seconds)) + "<td class=\"words\">" +
                html_element("code", chain_of(site.stack, kChain)) +
                (lock == nullptr ? "" : "<br><small>lock: " + html_text(lock->text) + "</small>") +
                (site.calls ? "<br><small>" + counted(static_cast<double>(*site.calls), "wait") +
                                  (report.exact_estimated ? ", the time by estimate" : "") + "</small>"
                            : "") +
                "</td></tr>\n";
    }
    return rows;
}

std::string lock_row(const LockUse &use) {
    std::string place = use.lock.symbol;
    if (!use.lock.module.empty())
        place += (place.empty() ? "" : " in ") + use.lock.module;
    return "<tr><td class=\"words\">" + html_text(use.lock.text) +
           (place.empty() ? "" : "<br><small>" + html_text(place) + "</small>") + "</td>" +
           html_element("td", key_of(use.lock.kind)) + html_element("td", percent(use.share)) +
           html_element("td", time_text(use.seconds)) +
           html_element("td", use.waits ? std::to_string(*use.waits) : "not counted") +
           html_element("td", use.waiters_most > 0 ? std::to_string(use.threads) : "not seen") +
           html_element("td", use.waiters_most > 0 ? number_text(use.waiters_mean, 1) + " / " +
                                                         std::to_string(use.waiters_most)
                                                   : "not seen") +
           "</tr>\n";
}

// The functions of the text report, under its names: those of a Python program are not the interpreter's.
std::vector<Burner> burners_of(const Report &report) {
    std::vector<Burner> burners = Facts(report).burners;
    std::stable_sort(burners.begin(), burners.end(), [](const Burner &a, const Burner &b) {
        return std::max(a.share_one, a.share) > std::max(b.share_one, b.share);
    });
    return burners;
}

// "msort_with_tmp (libc.so.6)", and in small letters by what it was called, and where in the program.
std::string burner_cell(const Burner &burner) {
    std::string from = burner.called.empty() || burner.called == burner.leaf ? "" : burner.called;
    const std::string own = burner.place.function.empty() ? burner.place.code : burner.place.function;
    if (!burner.is_own && !own.empty())
        from += (from.empty() ? "" : " <- ") + own;
    if (!from.empty())
        from = "<- " + from;
    if (!burner.place.file.empty())
        from += (from.empty() ? "" : " ") +
                ("(" + burner.place.file + ":" + std::to_string(burner.place.line) + ")");
    return "<td class=\"words\">" +
           html_element("code",
                        burner.leaf.empty() ? burner.module : burner.leaf + module_note(burner.module)) +
           (from.empty() ? "" : "<br><small>" + html_text(from) + "</small>") + "</td>";
}

std::string share_cells(double share) {
    return html_element("td", percent(share)) + "<td class=\"bar\">" + plot_share(share, "running") + "</td>";
}

} // namespace

std::string icicle(const std::string &what, const std::vector<Site> &sites) {
    const std::string tree = picture("wide", [&](double width) { return plot_icicle(what, sites, width); });
    if (tree.empty())
        return "";
    const bool cut = std::any_of(sites.begin(), sites.end(),
                                 [](const Site &site) { return site.stack.size() > kIcicleRows; });
    return tree + keys(key("own", "the program's own code") + key("library", "a library's")) +
           (cut ? note("Of the deepest stacks, only the innermost " + std::to_string(kIcicleRows) +
                       " functions are shown.")
                : "");
}

std::string where_time_went(const Report &report) {
    std::vector<Part> doing;
    for (const Doing one : kOrder)
        doing.push_back({key_of(one), name_of(one), report.doing[static_cast<int>(one)]});
    std::string text = parts("The time of all threads, in sum, as sampled", doing);
    if (!report.points.empty()) {
        const Point &last = report.points.back();
        std::vector<Part> used = {{"user", "in the program", last.user},
                                  {"kernel", "in the kernel", last.system}};
        if (!kernel_share(last))
            used = {{"user", "in the program and the kernel (too little to tell apart)", last.cpu()}};
        text += parts(std::string(report.is_bare ? "CPU time of the bare runs" : "CPU time of the run") +
                          (last.threads > 0 ? " with " + counted(last.threads, "thread") : ""),
                      used);
    }
    return text;
}

std::string timeline(const Report &report) {
    const std::string rows = picture("wide", [&](double width) { return plot_timeline(report, width); });
    if (rows.empty())
        return "";
    std::string items;
    for (const Doing one : kOrder)
        if (report.doing[static_cast<int>(one)] > 0)
            items += key(key_of(one), name_of(one));
    const std::size_t all = report.threads.size();
    return rows + keys(items) +
           (all > kTimelineRows
                ? note("The " + std::to_string(kTimelineRows) + " of " +
                       counted(static_cast<double>(all), "thread") + " that were seen longest.")
                : "");
}

std::string waits(const Report &report) {
    std::string text;
    if (!report.waits.empty())
        text += icicle("waiting for locks", report.waits) + html_table("", site_rows(report, report.waits)) +
                more(report.waits.size(), kRows);
    if (const std::string others = icicle("all other waits", report.others); !others.empty()) {
        if (report.waits.empty())
            text += note("No thread was seen waiting for a lock.");
        text += "<details><summary>Waits for threads to end, for work, and for input and output</summary>\n" +
                others + "</details>\n";
    }
    return text;
}

std::string locks(const Report &report) {
    if (report.locks.empty())
        return "";
    std::string rows = "<tr><th>lock</th><th>where</th><th>share</th><th>waited</th><th>waits</th>"
                       "<th>threads</th><th>at once</th></tr>\n";
    for (std::size_t i = 0; i < std::min(report.locks.size(), kRows); i++)
        rows += lock_row(report.locks[i]);
    return html_table("", rows) + more(report.locks.size(), kRows) +
           note("Waited: by all threads in sum. At once: threads that waited for it at the same time, mean / "
                "maximum, while one did.");
}

std::string profile(const Report &report) {
    const std::vector<Burner> burners = burners_of(report);
    if (burners.empty())
        return "";
    const bool both = !report.burns_one.empty() && !report.points.empty();
    const std::string most = threads_line(report.sampled_threads),
                      one = both ? threads_line(report.points.front().threads) : "";
    std::string rows = "<tr><th>function</th>" +
                       (both ? "<th colspan=\"2\">" + html_text(one) + "</th>" : "") + "<th colspan=\"2\">" +
                       html_text(most) + "</th></tr>\n";
    for (std::size_t i = 0; i < std::min(burners.size(), kRows); i++)
        rows += "<tr>" + burner_cell(burners[i]) + (both ? share_cells(burners[i].share_one) : "") +
                share_cells(burners[i].share) + "</tr>\n";
    const std::string few = both ? std::to_string(samples_of(report.burns_one)) + " and " : "";
    const std::string stacks = (both ? icicle("CPU time, " + one, report.burns_one) + "<br>\n" : "") +
                               icicle("CPU time, " + most, report.burns);
    return html_table("", rows) + more(burners.size(), kRows) +
           note(
               "Shares of CPU time, each function without its callees. Sampled by: " + report.profile_source +
               ", " + few + counted(static_cast<double>(samples_of(report.burns)), "sample") + ".") +
           "<details><summary>Stacks</summary>\n" + stacks + "</details>\n";
}

} // namespace thrum::stat::html
