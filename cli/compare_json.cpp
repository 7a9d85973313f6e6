// SPDX-License-Identifier: Apache-2.0
//
// A comparison as one JSON object (comparison.hpp): every run, and what the table says. Times in seconds.
#include "comparison.hpp"
#include "json.hpp"

namespace thrum {

namespace {

std::string counters_json(const std::optional<Counters> &counters) {
    if (!counters)
        return "null";
    return JsonObject()
        .add("created", std::to_string(counters->created))
        .add("reused", std::to_string(counters->reused))
        .add("retired", std::to_string(counters->retired))
        .add("passed", std::to_string(counters->passed))
        .add("culled", std::to_string(counters->culled))
        .text();
}

std::string known(double number, int decimals) {
    return number > 0 ? fixed(number, decimals) : "null";
}

std::string run_json(const Run &run) {
    return JsonObject()
        .add("wall", fixed(run.wall, 9))
        .add("user", fixed(run.user, 6))
        .add("system", fixed(run.system, 6))
        .add("voluntary_switches", std::to_string(run.voluntary))
        .add("involuntary_switches", std::to_string(run.involuntary))
        .add("page_faults", std::to_string(run.faults))
        .add("peak_memory", known(run.peak_memory, 0))
        .add("mean_memory", known(run.mean_memory, 0))
        .add("peak_tasks", known(run.peak_tasks, 0))
        .add("mean_tasks", known(run.mean_tasks, 2))
        .add("status", std::to_string(run.status))
        .add("threads", counters_json(run.counters))
        .text();
}

std::string pair_json(const Comparison &comparison, const Pair &pair) {
    return JsonObject()
        .add("first", json_string(comparison.name_of(pair.first)))
        .add(comparison.name_of(kWithout), run_json(pair.runs[kWithout]))
        .add(comparison.name_of(kWith), run_json(pair.runs[kWith]))
        .text();
}

std::string middle_json(const Middle &middle, int decimals) {
    return JsonObject()
        .add("median", fixed(middle.median, decimals))
        .add("quartiles", "[" + fixed(middle.low, decimals) + ", " + fixed(middle.high, decimals) + "]")
        .text();
}

std::string ratio_json(const Interval &ratio) {
    if (ratio.count == 0)
        return "null";
    return JsonObject()
        .add("median", fixed(ratio.median, 6))
        .add("low", fixed(ratio.low, 6))
        .add("high", fixed(ratio.high, 6))
        .add("confidence", fixed(ratio.confidence, 4))
        .add("pairs", std::to_string(ratio.count))
        .text();
}

std::string row_json(const Comparison &comparison, const Row &row, int decimals) {
    return JsonObject()
        .add(comparison.name_of(kWithout), middle_json(row.arms[kWithout], decimals))
        .add(comparison.name_of(kWith), middle_json(row.arms[kWith], decimals))
        .add("ratio", ratio_json(row.ratio))
        .text();
}

std::string summary_json(const Comparison &comparison, const Summary &summary) {
    const auto row = [&comparison](const Row &of, int decimals) {
        return row_json(comparison, of, decimals);
    };
    return JsonObject()
        .add("wall", row(summary.wall, 9))
        .add("cpu", row(summary.cpu, 6))
        .add("system", row(summary.kernel, 6))
        .add("kernel_share", row(summary.kernel_share, 4))
        .add("switches", row(summary.switches, 1))
        .add("voluntary_switches", row(summary.voluntary, 1))
        .add("involuntary_switches", row(summary.involuntary, 1))
        .add("peak_memory", row(summary.peak_memory, 0))
        .add("mean_memory", row(summary.mean_memory, 0))
        .add("peak_tasks", row(summary.peak_tasks, 1))
        .add("mean_tasks", row(summary.mean_tasks, 2))
        .add("threads", json_number(summary.threads, 1))
        .add("threads_created", json_number(summary.created, 1))
        .add("threads_reused", json_number(summary.reused, 1))
        .text();
}

std::string machine_json(const Machine &machine, const Load &load) {
    return JsonObject()
        .add("processor", json_string(machine.processor))
        .add("processors", std::to_string(machine.processors))
        .add("kernel", json_string(machine.kernel))
        .add("libc", json_string(machine.libc))
        .add("seconds", fixed(load.seconds, 3))
        .add("used_by_others", json_number(load.others, 3))
        .add("stolen", fixed(load.stolen, 3))
        .add("pressure", json_number(load.waited, 4))
        .add("load_before", fixed(load.load_before, 2))
        .add("load_after", fixed(load.load_after, 2))
        .text();
}

std::string verdict_json(const Verdict &verdict) {
    return JsonObject()
        .add("kind", json_string(kVerdictNames[verdict.kind]))
        .add("text", json_string(verdict.line))
        .add("memory", verdict.memory.empty() ? "null" : json_string(verdict.memory))
        .add("tasks", verdict.tasks.empty() ? "null" : json_string(verdict.tasks))
        .add("notes", json_array(verdict.notes, json_string))
        .text();
}

} // namespace

std::string as_json(const Comparison &comparison, const Summary &summary, const Verdict &verdict) {
    const bool early = comparison.pairs.empty();
    return JsonObject()
               .add("thrum", json_string(THRUM_VERSION))
               .add("command", json_array(comparison.words, json_string))
               .add("other", comparison.is_of_two() ? json_array(comparison.other, json_string) : "null")
               .add("environment", json_array(comparison.variables, json_string))
               .add("wanted", comparison.wanted == 0 ? "null" : std::to_string(comparison.wanted))
               .add("complete", std::to_string(comparison.pairs.size()))
               .add("warmups", std::to_string(comparison.warmups))
               .add("interrupted", json_boolean(comparison.interrupt != 0))
               .add("failure", comparison.failure.empty() ? "null" : json_string(comparison.failure))
               .add("verdict", verdict_json(verdict))
               .add("summary", early ? "null" : summary_json(comparison, summary))
               .add("machine", machine_json(comparison.machine, comparison.load))
               .add("pairs",
                    json_array(comparison.pairs,
                               [&comparison](const Pair &pair) { return pair_json(comparison, pair); }))
               .text() +
           "\n";
}

} // namespace thrum
