// SPDX-License-Identifier: Apache-2.0
//
// --json: the report as one JSON object on one line, with the names of report.hpp's fields. docs/reference/stat-json.md tells what each
// is, and changes with this file. Times in seconds.
#include <cstdio>

#include "json.hpp"
#include "names.hpp"

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace thrum::stat {

namespace {

constexpr int kSeconds = 6, kShare = 4; // decimals

std::string strings(const std::vector<std::string> &list) {
    return json_array(list, json_string);
}

std::string string_or_null(const std::string &text) {
    return text.empty() ? "null" : json_string(text);
}

std::string count(const std::optional<std::uint64_t> &number) {
    return number ? std::to_string(*number) : "null";
}

// As text, because not every reader of JSON keeps more than 53 bits of a number.
std::string address_json(std::uint64_t address) {
    char text[32];
    std::snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(address));
    return text;
}

std::string machine_json(const Machine &machine) {
    return JsonObject()
        .add("processor", json_string(machine.processor))
        .add("processors", std::to_string(machine.processors))
        .add("kernel", json_string(machine.kernel))
        .add("libc", json_string(machine.libc))
        .text();
}

std::string finding_json(const Finding &finding) {
    return JsonObject()
        .add("rule", json_string(finding.rule))
        .add("cause", json_string(finding.cause))
        .add("fix", json_string(finding.fix))
        .add("confidence", json_string(name_of(finding.confidence)))
        .add("function", string_or_null(finding.function))
        .add("file", string_or_null(finding.file))
        .add("line", finding.line > 0 ? std::to_string(finding.line) : "null")
        .add("evidence", strings(finding.evidence))
        .text();
}

std::string interval_json(const Interval &interval) {
    return JsonObject()
        .add("median", json_number(interval.median, kSeconds))
        .add("low", json_number(interval.low, kSeconds))
        .add("high", json_number(interval.high, kSeconds))
        .add("confidence", json_number(interval.confidence, kShare))
        .add("count", std::to_string(interval.count))
        .text();
}

std::string load_json(const Load &load) {
    return JsonObject()
        .add("seconds", json_number(load.seconds, 3))
        .add("others", json_number(load.others, 3))
        .add("stolen", json_number(load.stolen, 3))
        .add("waited", json_number(load.waited, kShare))
        .add("load_before", json_number(load.load_before, 2))
        .add("load_after", json_number(load.load_after, 2))
        .text();
}

std::string point_json(const Point &point) {
    return JsonObject()
        .add("threads", point.threads == 0 ? "null" : std::to_string(point.threads))
        .add("runs", std::to_string(point.runs))
        .add("wall", interval_json(point.wall))
        .add("speedup", point.speedup.count > 0 ? interval_json(point.speedup) : "null")
        .add("user", json_number(point.user, kSeconds))
        .add("system", json_number(point.system, kSeconds))
        .add("cpu", json_number(point.cpu(), kSeconds))
        .add("parallelism", json_number(point.parallelism(), 3))
        .add("voluntary", json_number(point.voluntary, 1))
        .add("involuntary", json_number(point.involuntary, 1))
        .add("run_delay", json_number(point.run_delay, kSeconds))
        .add("faults_major", json_number(point.faults_major, 1))
        .add("most_threads", std::to_string(point.most_threads))
        .add("load", load_json(point.load))
        .text();
}

std::string scaling_json(const std::optional<Scaling> &scaling) {
    if (!scaling)
        return "null";
    return JsonObject()
        .add("contention", json_number(scaling->contention, 6))
        .add("coherency", json_number(scaling->coherency, 6))
        .add("residual", json_number(scaling->residual, 6))
        .add("best_threads", scaling->best_threads > 0 ? json_number(scaling->best_threads, 1) : "null")
        .text();
}

std::string doing_json(const Report &report) {
    JsonObject object;
    for (int i = 0; i < static_cast<int>(Doing::kDoings); i++)
        object.add(key_of(static_cast<Doing>(i)), json_number(report.doing[i], kSeconds));
    return object.text();
}

std::string frame_json(const Frame &frame) {
    return JsonObject()
        .add("function", string_or_null(frame.function))
        .add("file", string_or_null(frame.file))
        .add("line", frame.line > 0 ? std::to_string(frame.line) : "null")
        .add("module", string_or_null(frame.module))
        .add("offset", address_json(frame.offset))
        .add("is_user", json_boolean(frame.is_user))
        .text();
}

std::string lock_json(const Lock &lock) {
    return JsonObject()
        .add("address", address_json(lock.address))
        .add("kind", json_string(key_of(lock.kind)))
        .add("module", string_or_null(lock.module))
        .add("symbol", string_or_null(lock.symbol))
        .add("offset", address_json(lock.offset))
        .add("text", json_string(lock.text))
        .text();
}

std::string holder_json(const Holder &holder) {
    if (holder.looks == 0)
        return "null";
    return JsonObject()
        .add("looks", std::to_string(holder.looks))
        .add("asleep", json_number(holder.asleep, kShare))
        .add("doing", holder.stack.empty() ? "null" : json_string(key_of(holder.doing)))
        .add("stack", json_array(holder.stack, frame_json))
        .text();
}

std::string lock_use_json(const LockUse &use) {
    return JsonObject()
        .add("lock", lock_json(use.lock))
        .add("samples", std::to_string(use.samples))
        .add("share", json_number(use.share, kShare))
        .add("seconds", json_number(use.seconds, kSeconds))
        .add("threads", std::to_string(use.threads))
        .add("waiters_mean", json_number(use.waiters_mean, 2))
        .add("waiters_most", std::to_string(use.waiters_most))
        .add("waits", count(use.waits))
        .add("holder", holder_json(use.holder))
        .text();
}

std::string deadlock_json(const Deadlock &deadlock) {
    if (deadlock.threads.empty())
        return "null";
    const auto thread = [](const Stuck &stuck) {
        return JsonObject()
            .add("thread", std::to_string(stuck.thread))
            .add("is_join", json_boolean(stuck.is_join))
            .add("site", stuck.site == SIZE_MAX ? "null" : std::to_string(stuck.site))
            .add("holder", stuck.holder > 0 ? std::to_string(stuck.holder) : "null")
            .text();
    };
    static const char *const kKinds[] = {"ring", "owner_ended", "all"}; // as Deadlock::Kind
    return JsonObject()
        .add("kind", json_string(kKinds[deadlock.kind]))
        .add("seconds", json_number(deadlock.seconds, kSeconds))
        .add("threads", json_array(deadlock.threads, thread))
        .text();
}

std::string thread_json(const Thread &thread) {
    return JsonObject()
        .add("id", std::to_string(thread.id))
        .add("name", json_string(thread.name))
        .add("begin", json_number(thread.begin, kSeconds))
        .add("end", json_number(thread.end, kSeconds))
        .add("cpu", json_number(thread.cpu, kSeconds))
        .add("run_delay", json_number(thread.run_delay, kSeconds))
        .add("cpus", thread.cpus.empty() ? "null" : json_string(thread.cpus))
        .add("voluntary", std::to_string(thread.voluntary))
        .add("involuntary", std::to_string(thread.involuntary))
        .text();
}

std::string process_json(const Process &process) {
    return JsonObject()
        .add("id", std::to_string(process.id))
        .add("parent", process.parent > 0 ? std::to_string(process.parent) : "null")
        .add("name", json_string(process.name))
        .add("cpu", json_number(process.cpu, kSeconds))
        .add("begin", json_number(process.begin, kSeconds))
        .add("end", json_number(process.end, kSeconds))
        .add("threads", std::to_string(process.threads))
        .text();
}

std::string system_call_json(const std::pair<std::string, std::uint64_t> &call) {
    return JsonObject().add("name", json_string(call.first)).add("calls", std::to_string(call.second)).text();
}

std::string sites_json(const Report &report, const std::vector<Site> &sites) {
    return json_array(sites, [&report](const Site &site) {
        return JsonObject()
            .add("doing", json_string(key_of(site.doing)))
            .add("samples", std::to_string(site.samples))
            .add("share", json_number(site.share, kShare))
            .add("seconds", json_number(site.seconds, kSeconds))
            .add("calls", count(site.calls))
            .add("lock", lock_of(report, site) == nullptr ? "null" : std::to_string(site.lock))
            .add("stack", json_array(site.stack, frame_json))
            .text();
    });
}

std::string counters_json(const std::optional<HardwareCounts> &counters) {
    if (!counters)
        return "null";
    const auto number = [](double value) { return value > 0 ? json_number(value, 0) : "null"; };
    return JsonObject()
        .add("instructions", number(counters->instructions))
        .add("cycles", number(counters->cycles))
        .add("per_cycle", counters->per_cycle() > 0 ? json_number(counters->per_cycle(), 3) : "null")
        .add("cache_misses", number(counters->cache_misses))
        .add("l1_misses", number(counters->l1_misses))
        .text();
}

std::string switched_json(const std::optional<Switched> &switched) {
    if (!switched)
        return "null";
    return JsonObject()
        .add("on", json_number(switched->on, kSeconds))
        .add("preempted", json_number(switched->preempted, kSeconds))
        .add("blocked", json_number(switched->blocked, kSeconds))
        .add("involuntary", std::to_string(switched->involuntary))
        .add("voluntary", std::to_string(switched->voluntary))
        .text();
}

void add_verdict(JsonObject &object, const Report &report) {
    object.add("thrum", json_string(THRUM_VERSION))
        .add("command", strings(report.command))
        .add("machine", machine_json(report.machine))
        .add("cores", report.cores > 0 ? std::to_string(report.cores) : "null")
        .add("began", json_string(report.began))
        .add("outcome", json_string(key_of(report.outcome)))
        .add("verdict", json_string(report.verdict))
        .add("findings", json_array(report.findings, finding_json))
        .add("points", json_array(report.points, point_json))
        .add("scaling", scaling_json(report.scaling))
        .add("scaling_text", json_string(report.scaling_text));
}

// What the sampler saw, of the program or of a process that it started: under the same names.
void add_seen(JsonObject &object, const Report &report) {
    object.add("sampled_threads", std::to_string(report.sampled_threads))
        .add("sampled_wall", json_number(report.sampled_wall, kSeconds))
        .add("rate", json_number(report.rate, 2))
        .add("samples", std::to_string(report.samples))
        .add("doing", doing_json(report))
        .add("locks", json_array(report.locks, lock_use_json))
        .add("waits", sites_json(report, report.waits))
        .add("others", sites_json(report, report.others))
        .add("deadlock", deadlock_json(report.deadlock))
        .add("threads", json_array(report.threads, thread_json));
}

// The same names as of the whole, of what there is of it.
std::string child_json(const Report &child) {
    JsonObject object;
    object.add("id", std::to_string(child.process))
        .add("name", json_string(child.command.front()))
        .add("cpu", json_number(child.own_cpu, kSeconds))
        .add("verdict", json_string(child.verdict))
        .add("findings", json_array(child.findings, finding_json));
    add_seen(object, child);
    object.add("profile_source", string_or_null(child.profile_source))
        .add("burns", sites_json(child, child.burns));
    return object.text();
}

void add_sampled(JsonObject &object, const Report &report) {
    add_seen(object, report);
    object.add("threads_created", std::to_string(report.threads_created))
        .add("threads_joined", std::to_string(report.threads_joined))
        .add("threads_counted", json_boolean(report.threads_counted))
        .add("own_cpu", json_number(report.own_cpu, kSeconds))
        .add("children_cpu", json_number(report.children_cpu, kSeconds))
        .add("processes", json_array(report.processes, process_json))
        .add("children", json_array(report.children, child_json))
        .add("makers", sites_json(report, report.makers))
        .add("profile_source", string_or_null(report.profile_source))
        .add("burns", sites_json(report, report.burns))
        .add("burns_one", sites_json(report, report.burns_one))
        .add("counters", counters_json(report.counters))
        .add("counters_one", counters_json(report.counters_one));
}

void add_rest(JsonObject &object, const Report &report) {
    object.add("exact", json_boolean(report.exact))
        .add("exact_estimated", json_boolean(report.exact_estimated))
        .add("system_calls", json_array(report.system_calls, system_call_json))
        .add("switched", switched_json(report.switched))
        .add("blocked", sites_json(report, report.blocked))
        .add("switch_cost", json_number(report.switch_cost, 9))
        .add("signal", std::to_string(report.signal))
        .add("exit_code", std::to_string(report.exit_code))
        .add("interrupted", json_boolean(report.interrupted))
        .add("how_known", strings(report.how_known))
        .add("warnings", strings(report.warnings));
}

} // namespace

std::string json_of(const Report &report) {
    JsonObject object;
    add_verdict(object, report);
    add_sampled(object, report);
    add_rest(object, report);
    return object.text() + "\n";
}

} // namespace thrum::stat
