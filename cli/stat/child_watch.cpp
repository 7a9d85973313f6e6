// SPDX-License-Identifier: Apache-2.0
#include "stat/child_watch.hpp"

#include <algorithm>
#include <utility>

#include "stat/rules.hpp"
#include "tools/failure.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr double kPeriod = 0.1; // seconds between two choices
constexpr double kAge = 0.1; // of a process before it is looked at: until then it may execute another program
constexpr double kBusy = 0.1;     // of a CPU: worth the place of one that does nothing
constexpr double kIdle = 0.01;    // of a CPU: does nothing
constexpr double kPatience = 0.5; // seconds, until one that does nothing gives up its place

} // namespace

struct ChildWatch::Watched {
    Watched(double rate, double budget) : sampler(rate, budget) {}

    Process process;
    Sampler sampler;
    std::shared_ptr<CpuProfile> profile; // nullptr: none
    process::Stat before, after;
    double begin = 0, end = 0;          // on the program's clock
    double checked_at = 0, checked = 0; // CPU time then, for whether it does something
    bool is_open = true, is_idle = false;

    double cpu() const { return std::max(0.0, after.cpu() - before.cpu()); }
};

ChildWatch::ChildWatch(const ProcessTree &tree, CpuProfile *profile, double rate, double budget)
    : tree_(tree), profile_(profile), rate_(rate), budget_(budget) {}

ChildWatch::~ChildWatch() = default;

void ChildWatch::poll(double now) {
    if (is_over_)
        return;
    if (now >= next_) {
        choose(now);
        next_ = now + kPeriod;
    }
    for (const auto &watched : watched_)
        if (watched->is_open) {
            watched->end = now;
            watched->sampler.poll(now - watched->begin);
        }
}

void ChildWatch::interrupted() {
    is_over_ = true;
    for (const auto &watched : watched_)
        watched->sampler.interrupted();
}

std::size_t ChildWatch::open_count() const {
    return static_cast<std::size_t>(std::count_if(watched_.begin(), watched_.end(),
                                                  [](const auto &watched) { return watched->is_open; }));
}

// Its descriptors are closed; what was seen stays.
void ChildWatch::close(Watched &watched) {
    watched.is_open = false;
    watched.sampler.close();
}

void ChildWatch::update(Watched &watched, double now) {
    const auto stat = process::stat(watched.process.id);
    if (stat)
        watched.after = *stat;
    if (!stat || stat->has_ended()) {
        close(watched);
        return;
    }
    watched.process.name = stat->name;
    if (now - watched.checked_at < kPatience)
        return;
    watched.is_idle = stat->cpu() - watched.checked < kIdle * (now - watched.checked_at);
    watched.checked = stat->cpu();
    watched.checked_at = now;
}

// Those that have used the most CPU time lately come first. Where there is room any process is worth a look: it may wait for a
// lock all the time.
void ChildWatch::choose(double now) {
    std::vector<Candidate> candidates;
    std::map<pid_t, double> cpu;
    tree_.each_living([&](const Process &process) {
        cpu[process.id] = process.cpu;
        const auto known = cpu_.find(process.id);
        const double before = known == cpu_.end() ? 0 : known->second;
        const auto is_it = [&process](const auto &watched) {
            return watched->process.id == process.id && watched->process.begin == process.begin;
        };
        const auto refused = refused_.find(process.id);
        const bool is_refused = refused != refused_.end() && refused->second == process.begin;
        if (!is_refused && now - process.begin >= kAge &&
            std::none_of(watched_.begin(), watched_.end(), is_it))
            candidates.push_back({process, process.cpu - before});
    });
    cpu_ = std::move(cpu);
    for (const auto &watched : watched_)
        if (watched->is_open)
            update(*watched, now);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate &a, const Candidate &b) { return a.recent > b.recent; });
    for (const Candidate &candidate : candidates)
        if (make_room(candidate.recent))
            begin(candidate, now);
}

// False: all places are taken by those that do something, or this one does nothing itself.
bool ChildWatch::make_room(double recent) {
    if (open_count() < kAtOnce)
        return true;
    if (recent < kBusy * kPeriod)
        return false;
    const auto idle = std::find_if(watched_.begin(), watched_.end(),
                                   [](const auto &watched) { return watched->is_open && watched->is_idle; });
    if (idle == watched_.end())
        return false;
    close(**idle);
    return true;
}

// Of those that are over, and so can grow no more.
void ChildWatch::drop_least() {
    auto least = watched_.end();
    for (auto at = watched_.begin(); at != watched_.end(); ++at)
        if (!(*at)->is_open && (least == watched_.end() || (*at)->cpu() < (*least)->cpu()))
            least = at;
    if (least != watched_.end())
        watched_.erase(least);
}

void ChildWatch::begin(const Candidate &candidate, double now) {
    const auto stat = process::stat(candidate.process.id);
    if (!stat || stat->has_ended())
        return;
    auto watched = std::make_unique<Watched>(rate_, budget_ / static_cast<double>(kAtOnce));
    watched->process = candidate.process;
    watched->sampler.are_children_followed = true;
    try {
        watched->sampler.attach(candidate.process.id);
    } catch (const Failure &failure) {
        refused_[candidate.process.id] = candidate.process.begin;
        if (warnings.empty() && process::stat(candidate.process.id)) // otherwise it has ended
            warnings.emplace_back(failure.what());
        return;
    }
    if (profile_ != nullptr)
        watched->profile = profile_->of_child(candidate.process.id);
    watched->before = watched->after = *stat;
    watched->checked = stat->cpu();
    watched->begin = watched->end = watched->checked_at = now; // the sampler's clock begins here
    if (watched_.size() >= kKept)
        drop_least();
    watched_.push_back(std::move(watched));
}

// --- what comes of it ----------------------------------------------------------------------------------

Report ChildWatch::report_of(const Watched &watched, const Report &whole, const Load &load) {
    Report report;
    const double wall = watched.end - watched.begin;
    report.command = {watched.process.name};
    report.machine = whole.machine;
    report.host_processors = whole.host_processors;
    report.cores = whole.cores;
    report.switch_cost = whole.switch_cost;
    report.is_attached = true;
    report.is_bare = false;
    add_samples(report, watched.sampler, wall);
    report.sampled_threads = std::max(1U, watched.sampler.most_threads);
    Point point;
    point.runs = 1;
    point.wall = {wall, wall, wall, 0, 1};
    point.user = std::max(0.0, watched.after.user - watched.before.user);
    point.system = std::max(0.0, watched.after.system - watched.before.system);
    point.most_threads = report.sampled_threads;
    for (const ProcThread &thread : watched.sampler.threads) {
        point.voluntary += static_cast<double>(thread.voluntary);
        point.involuntary += static_cast<double>(thread.involuntary);
        point.run_delay += static_cast<double>(thread.delay_ns) * 1e-9;
    }
    point.load = load;
    report.points = {point};
    report.own_cpu = point.cpu();
    if (watched.profile) {
        report.profile_source = watched.profile->source;
        add_profile(report.burns, *watched.profile);
        for (const std::string &warning : watched.profile->warnings)
            report.warnings.push_back(warning);
    }
    conclude(report, "");
    return report;
}

std::vector<Report> ChildWatch::reports(const Report &whole, const Load &load) {
    std::stable_sort(watched_.begin(), watched_.end(),
                     [](const auto &a, const auto &b) { return a->cpu() > b->cpu(); });
    std::vector<Report> list;
    for (const auto &watched : watched_)
        if (!watched->sampler.samples.empty())
            list.push_back(report_of(*watched, whole, load));
    if (!list.empty())
        how_known.push_back("Of the processes that the program started " + std::to_string(list.size()) +
                            (list.size() == 1 ? " was" : " were") +
                            " sampled as its own threads are: at most " + std::to_string(kAtOnce) +
                            " at a time, those first that used the most CPU time.");
    return list;
}

} // namespace thrum::stat
