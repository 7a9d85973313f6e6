// SPDX-License-Identifier: Apache-2.0
//
// --json: the report as one JSON object on one line, with the names of report.hpp's fields. docs/reference/stat-json.md tells what each
// is, and changes with this file. Times in seconds.
#include "names.hpp"
#include "tools/json.hpp"

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace thrum::stat {

namespace {

constexpr int kSeconds = 6, kShare = 4; // decimals

Json count(const std::optional<std::uint64_t> &number) {
    return number ? Json(*number) : Json();
}

Json machine_json(const Machine &machine) {
    return {{"processor", machine.processor},
            {"processors", machine.processors},
            {"kernel", machine.kernel},
            {"libc", machine.libc}};
}

Json finding_json(const Finding &finding) {
    return {{"rule", finding.rule},
            {"cause", finding.cause},
            {"fix", finding.fix},
            {"confidence", name_of(finding.confidence)},
            {"function", json_text(finding.function)},
            {"file", json_text(finding.file)},
            {"line", finding.line > 0 ? Json(finding.line) : Json()},
            {"evidence", finding.evidence}};
}

Json interval_json(const Interval &interval) {
    return {{"median", json_number(interval.median, kSeconds)},
            {"low", json_number(interval.low, kSeconds)},
            {"high", json_number(interval.high, kSeconds)},
            {"confidence", json_number(interval.confidence, kShare)},
            {"count", interval.count}};
}

Json load_json(const Load &load) {
    return {
        {"seconds", json_number(load.seconds, 3)},         {"others", json_number(load.others, 3)},
        {"stolen", json_number(load.stolen, 3)},           {"waited", json_number(load.waited, kShare)},
        {"load_before", json_number(load.load_before, 2)}, {"load_after", json_number(load.load_after, 2)}};
}

Json point_json(const Point &point) {
    return {{"threads", point.threads == 0 ? Json() : Json(point.threads)},
            {"runs", point.runs},
            {"wall", interval_json(point.wall)},
            {"speedup", point.speedup.count > 0 ? interval_json(point.speedup) : Json()},
            {"user", json_number(point.user, kSeconds)},
            {"system", json_number(point.system, kSeconds)},
            {"cpu", json_number(point.cpu(), kSeconds)},
            {"parallelism", json_number(point.parallelism(), 3)},
            {"voluntary", json_number(point.voluntary, 1)},
            {"involuntary", json_number(point.involuntary, 1)},
            {"run_delay", json_number(point.run_delay, kSeconds)},
            {"faults_major", json_number(point.faults_major, 1)},
            {"most_threads", point.most_threads},
            {"load", load_json(point.load)}};
}

Json scaling_json(const std::optional<Scaling> &scaling) {
    if (!scaling)
        return nullptr;
    return {{"contention", json_number(scaling->contention, 6)},
            {"coherency", json_number(scaling->coherency, 6)},
            {"residual", json_number(scaling->residual, 6)},
            {"best_threads", scaling->best_threads > 0 ? json_number(scaling->best_threads, 1) : Json()}};
}

Json doing_json(const Report &report) {
    Json object;
    for (int i = 0; i < static_cast<int>(Doing::kDoings); i++)
        object[key_of(static_cast<Doing>(i))] = json_number(report.doing[i], kSeconds);
    return object;
}

Json frame_json(const Frame &frame) {
    return {{"function", json_text(frame.function)},
            {"file", json_text(frame.file)},
            {"line", frame.line > 0 ? Json(frame.line) : Json()},
            {"module", json_text(frame.module)},
            {"offset", json_address(frame.offset)},
            {"is_user", frame.is_user}};
}

Json lock_json(const Lock &lock) {
    return {{"address", json_address(lock.address)},
            {"kind", key_of(lock.kind)},
            {"module", json_text(lock.module)},
            {"symbol", json_text(lock.symbol)},
            {"offset", json_address(lock.offset)},
            {"text", lock.text},
            {"allocation", json_array(lock.allocation, frame_json)}};
}

Json holder_json(const Holder &holder) {
    if (holder.looks == 0)
        return nullptr;
    return {{"looks", holder.looks},
            {"asleep", json_number(holder.asleep, kShare)},
            {"without_cpu", json_number(holder.without_cpu, kShare)},
            {"outranked", json_number(holder.outranked, kShare)},
            {"thread", holder.thread > 0 ? Json(holder.thread) : Json()},
            {"doing", holder.stack.empty() ? Json() : Json(key_of(holder.doing))},
            {"stack", json_array(holder.stack, frame_json)}};
}

Json lock_use_json(const LockUse &use) {
    return {{"lock", lock_json(use.lock)},
            {"samples", use.samples},
            {"share", json_number(use.share, kShare)},
            {"seconds", json_number(use.seconds, kSeconds)},
            {"threads", use.threads},
            {"waiters_mean", json_number(use.waiters_mean, 2)},
            {"waiters_most", use.waiters_most},
            {"waits", count(use.waits)},
            {"holder", holder_json(use.holder)}};
}

Json deadlock_json(const Deadlock &deadlock) {
    if (deadlock.threads.empty())
        return nullptr;
    const auto thread = [](const Stuck &stuck) -> Json {
        return {{"thread", stuck.thread},
                {"is_join", stuck.is_join},
                {"site", stuck.site == SIZE_MAX ? Json() : Json(stuck.site)},
                {"holder", stuck.holder > 0 ? Json(stuck.holder) : Json()}};
    };
    static const char *const kKinds[] = {"ring", "owner_ended", "all"}; // as Deadlock::Kind
    return {{"kind", kKinds[deadlock.kind]},
            {"seconds", json_number(deadlock.seconds, kSeconds)},
            {"threads", json_array(deadlock.threads, thread)}};
}

Json thread_json(const Thread &thread) {
    return {{"id", thread.id},
            {"name", thread.name},
            {"begin", json_number(thread.begin, kSeconds)},
            {"end", json_number(thread.end, kSeconds)},
            {"cpu", json_number(thread.cpu, kSeconds)},
            {"run_delay", json_number(thread.run_delay, kSeconds)},
            {"slept_long", json_number(thread.slept_long, kSeconds)},
            {"cpus", json_text(thread.cpus)},
            {"policy", json_text(policy_of(thread.scheduling))},
            {"nice", thread.scheduling.is_known() ? Json(int{thread.scheduling.nice}) : Json()},
            {"real_time", thread.scheduling.is_known() ? Json(int{thread.scheduling.real_time}) : Json()},
            {"voluntary", thread.voluntary},
            {"involuntary", thread.involuntary}};
}

Json process_json(const Process &process) {
    return {{"id", process.id},
            {"parent", process.parent > 0 ? Json(process.parent) : Json()},
            {"name", process.name},
            {"cpu", json_number(process.cpu, kSeconds)},
            {"begin", json_number(process.begin, kSeconds)},
            {"end", json_number(process.end, kSeconds)},
            {"threads", process.threads}};
}

Json system_call_json(const std::pair<std::string, std::uint64_t> &call) {
    return {{"name", call.first}, {"calls", call.second}};
}

Json sites_json(const Report &report, const std::vector<Site> &sites) {
    return json_array(sites, [&report](const Site &site) -> Json {
        return {{"doing", key_of(site.doing)},
                {"samples", site.samples},
                {"share", json_number(site.share, kShare)},
                {"seconds", json_number(site.seconds, kSeconds)},
                {"calls", count(site.calls)},
                {"lock", lock_of(report, site) == nullptr ? Json() : Json(site.lock)},
                {"stack", json_array(site.stack, frame_json)}};
    });
}

Json counters_json(const std::optional<HardwareCounts> &counters) {
    if (!counters)
        return nullptr;
    const auto number = [](double value) { return value > 0 ? json_number(value, 0) : Json(); };
    return {{"instructions", number(counters->instructions)},
            {"cycles", number(counters->cycles)},
            {"per_cycle", counters->per_cycle() > 0 ? json_number(counters->per_cycle(), 3) : Json()},
            {"cache_misses", number(counters->cache_misses)},
            {"l1_misses", number(counters->l1_misses)}};
}

Json switched_json(const std::optional<Switched> &switched) {
    if (!switched)
        return nullptr;
    return {{"on", json_number(switched->on, kSeconds)},
            {"preempted", json_number(switched->preempted, kSeconds)},
            {"blocked", json_number(switched->blocked, kSeconds)},
            {"involuntary", switched->involuntary},
            {"voluntary", switched->voluntary}};
}

void add_verdict(Json &object, const Report &report) {
    object["thrum"] = THRUM_VERSION;
    object["command"] = report.command;
    object["machine"] = machine_json(report.machine);
    object["cores"] = report.cores > 0 ? Json(report.cores) : Json();
    object["quota"] = report.quota > 0 ? json_number(report.quota, 2) : Json();
    object["throttled"] = json_number(report.throttled, kSeconds);
    object["began"] = report.began;
    object["outcome"] = key_of(report.outcome);
    object["verdict"] = report.verdict;
    object["findings"] = json_array(report.findings, finding_json);
    object["points"] = json_array(report.points, point_json);
    object["scaling"] = scaling_json(report.scaling);
    object["scaling_text"] = report.scaling_text;
}

// What the sampler saw, of the program or of a process that it started: under the same names.
void add_seen(Json &object, const Report &report) {
    object["sampled_threads"] = report.sampled_threads;
    object["sampled_wall"] = json_number(report.sampled_wall, kSeconds);
    object["rate"] = json_number(report.rate, 2);
    object["samples"] = report.samples;
    object["doing"] = doing_json(report);
    object["locks"] = json_array(report.locks, lock_use_json);
    object["waits"] = sites_json(report, report.waits);
    object["others"] = sites_json(report, report.others);
    object["deadlock"] = deadlock_json(report.deadlock);
    object["threads"] = json_array(report.threads, thread_json);
}

Json kernel_wait_json(const KernelWait &wait) {
    Json object;
    object["call"] = json_text(wait.call);
    object["channel"] = json_text(wait.channel);
    object["file"] = json_text(wait.file);
    object["is_device"] = wait.is_device;
    object["samples"] = wait.samples;
    object["threads"] = wait.threads;
    object["at_once"] = json_number(wait.at_once, 2);
    object["stack"] = json_array(wait.stack, frame_json);
    return object;
}

Json sharing_json(const Sharing &shared) {
    Json object;
    object["is_one"] = shared.is_one;
    object["parts"] = json_array(shared.parts, lock_json);
    object["samples"] = shared.samples;
    object["share"] = json_number(shared.share, kShare);
    object["threads"] = shared.threads;
    object["adds"] = json_number(shared.adds, kShare);
    object["swaps"] = json_number(shared.swaps, kShare);
    object["stores"] = json_number(shared.stores, kShare);
    object["stack"] = json_array(shared.stack, frame_json);
    object["places"] = json_array(
        shared.places, [](const std::vector<Frame> &stack) { return json_array(stack, frame_json); });
    return object;
}

// The same names as of the whole, of what there is of it.
Json child_json(const Report &child) {
    Json object;
    object["id"] = child.process;
    object["name"] = child.command.front();
    object["cpu"] = json_number(child.own_cpu, kSeconds);
    object["verdict"] = child.verdict;
    object["findings"] = json_array(child.findings, finding_json);
    add_seen(object, child);
    object["profile_source"] = json_text(child.profile_source);
    object["burns"] = sites_json(child, child.burns);
    return object;
}

void add_sampled(Json &object, const Report &report) {
    add_seen(object, report);
    object["threads_created"] = report.threads_created;
    object["threads_joined"] = report.threads_joined;
    object["threads_counted"] = report.threads_counted;
    object["own_cpu"] = json_number(report.own_cpu, kSeconds);
    object["children_cpu"] = json_number(report.children_cpu, kSeconds);
    object["processes"] = json_array(report.processes, process_json);
    object["children"] = json_array(report.children, child_json);
    object["makers"] = sites_json(report, report.makers);
    object["profile_source"] = json_text(report.profile_source);
    object["burns"] = sites_json(report, report.burns);
    object["burns_one"] = sites_json(report, report.burns_one);
    object["kernel_waits"] = json_array(report.kernel_waits, kernel_wait_json);
    object["page_tables"] = json_number(report.page_tables, 0);
    object["memory"] = json_number(report.memory, 0);
    object["shared"] = json_array(report.shared, sharing_json);
    object["accesses_known"] = json_number(report.accesses_known, kShare);
    object["counters"] = counters_json(report.counters);
    object["counters_one"] = counters_json(report.counters_one);
}

void add_rest(Json &object, const Report &report) {
    object["exact"] = report.exact;
    object["exact_estimated"] = report.exact_estimated;
    object["system_calls"] = json_array(report.system_calls, system_call_json);
    object["switched"] = switched_json(report.switched);
    object["blocked"] = sites_json(report, report.blocked);
    object["switch_cost"] = json_number(report.switch_cost, 9);
    object["signal"] = report.signal;
    object["exit_code"] = report.exit_code;
    object["interrupted"] = report.interrupted;
    object["timed_out"] = report.timed_out;
    object["how_known"] = report.how_known;
    object["warnings"] = report.warnings;
}

} // namespace

std::string json_of(const Report &report) {
    Json object;
    add_verdict(object, report);
    add_sampled(object, report);
    add_rest(object, report);
    return json_line(object) + "\n";
}

} // namespace thrum::stat
