// SPDX-License-Identifier: Apache-2.0
//
// A comparison as one JSON object (comparison.hpp): every run, and what the table says. Times in seconds.
#include "comparison.hpp"
#include "tools/json.hpp"

namespace thrum {

namespace {

Json counters_json(const std::optional<Counters> &counters) {
    if (!counters)
        return nullptr;
    return {{"created", counters->created},
            {"reused", counters->reused},
            {"retired", counters->retired},
            {"passed", counters->passed},
            {"culled", counters->culled}};
}

Json known(double number, int decimals) {
    return number > 0 ? json_number(number, decimals) : Json();
}

Json run_json(const Run &run) {
    return {{"wall", json_number(run.wall, 9)},
            {"user", json_number(run.user, 6)},
            {"system", json_number(run.system, 6)},
            {"voluntary_switches", run.voluntary},
            {"involuntary_switches", run.involuntary},
            {"page_faults", run.faults},
            {"peak_memory", known(run.peak_memory, 0)},
            {"mean_memory", known(run.mean_memory, 0)},
            {"peak_tasks", known(run.peak_tasks, 0)},
            {"mean_tasks", known(run.mean_tasks, 2)},
            {"status", run.status},
            {"threads", counters_json(run.counters)}};
}

Json pair_json(const Comparison &comparison, const Pair &pair) {
    return {{"first", comparison.name_of(pair.first)},
            {comparison.name_of(kWithout), run_json(pair.runs[kWithout])},
            {comparison.name_of(kWith), run_json(pair.runs[kWith])}};
}

Json middle_json(const Middle &middle, int decimals) {
    return {
        {"median", json_number(middle.median, decimals)},
        {"quartiles", Json::array({json_number(middle.low, decimals), json_number(middle.high, decimals)})}};
}

Json ratio_json(const Interval &ratio) {
    if (ratio.count == 0)
        return nullptr;
    return {{"median", json_number(ratio.median, 6)},
            {"low", json_number(ratio.low, 6)},
            {"high", json_number(ratio.high, 6)},
            {"confidence", json_number(ratio.confidence, 4)},
            {"pairs", ratio.count}};
}

Json row_json(const Comparison &comparison, const Row &row, int decimals) {
    return {{comparison.name_of(kWithout), middle_json(row.arms[kWithout], decimals)},
            {comparison.name_of(kWith), middle_json(row.arms[kWith], decimals)},
            {"ratio", ratio_json(row.ratio)}};
}

Json summary_json(const Comparison &comparison, const Summary &summary) {
    const auto row = [&comparison](const Row &of, int decimals) {
        return row_json(comparison, of, decimals);
    };
    return {{"wall", row(summary.wall, 9)},
            {"cpu", row(summary.cpu, 6)},
            {"system", row(summary.kernel, 6)},
            {"kernel_share", row(summary.kernel_share, 4)},
            {"switches", row(summary.switches, 1)},
            {"voluntary_switches", row(summary.voluntary, 1)},
            {"involuntary_switches", row(summary.involuntary, 1)},
            {"peak_memory", row(summary.peak_memory, 0)},
            {"mean_memory", row(summary.mean_memory, 0)},
            {"peak_tasks", row(summary.peak_tasks, 1)},
            {"mean_tasks", row(summary.mean_tasks, 2)},
            {"threads", json_number(summary.threads, 1)},
            {"threads_created", json_number(summary.created, 1)},
            {"threads_reused", json_number(summary.reused, 1)}};
}

Json machine_json(const Machine &machine, const Load &load) {
    return {{"processor", machine.processor},
            {"processors", machine.processors},
            {"kernel", machine.kernel},
            {"libc", machine.libc},
            {"seconds", json_number(load.seconds, 3)},
            {"used_by_others", json_number(load.others, 3)},
            {"stolen", json_number(load.stolen, 3)},
            {"pressure", json_number(load.waited, 4)},
            {"load_before", json_number(load.load_before, 2)},
            {"load_after", json_number(load.load_after, 2)}};
}

Json verdict_json(const Verdict &verdict) {
    return {{"kind", kVerdictNames[verdict.kind]},
            {"text", verdict.line},
            {"memory", json_text(verdict.memory)},
            {"tasks", json_text(verdict.tasks)},
            {"notes", verdict.notes}};
}

} // namespace

std::string as_json(const Comparison &comparison, const Summary &summary, const Verdict &verdict) {
    const bool early = comparison.pairs.empty();
    const auto pair = [&comparison](const Pair &of) { return pair_json(comparison, of); };
    const Json all = {{"thrum", THRUM_VERSION},
                      {"command", comparison.words},
                      {"other", comparison.is_of_two() ? Json(comparison.other) : Json()},
                      {"environment", comparison.variables},
                      {"wanted", comparison.wanted == 0 ? Json() : Json(comparison.wanted)},
                      {"complete", comparison.pairs.size()},
                      {"warmups", comparison.warmups},
                      {"interrupted", comparison.interrupt != 0},
                      {"failure", json_text(comparison.failure)},
                      {"verdict", verdict_json(verdict)},
                      {"summary", early ? Json() : summary_json(comparison, summary)},
                      {"machine", machine_json(comparison.machine, comparison.load)},
                      {"pairs", json_array(comparison.pairs, pair)}};
    return json_line(all) + "\n";
}

} // namespace thrum
