// SPDX-License-Identifier: Apache-2.0
#include "timeline.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

namespace thrum {

namespace {

// --- one order for all events ------------------------------------------------------------------------

struct Step {
    std::uint64_t ticks;
    std::uint32_t track;
    const thrum_trace_event *event;
};

// Those of a ring stay in its order, though the counter's readings may be a little out of it. A name has no moment of
// its own.
std::vector<Step> in_order(const TraceSection &section) {
    std::vector<Step> steps;
    for (std::uint32_t track = 0; track < section.rings.size(); track++) {
        std::uint64_t latest = 0;
        for (const thrum_trace_event &event : section.rings[track].events) {
            if ((event.what & THRUM_TRACE_KIND_MASK) != THRUM_TRACE_NAME)
                latest = std::max(latest, event.ticks);
            steps.push_back({latest, track, &event});
        }
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step &a, const Step &b) { return a.ticks < b.ticks; });
    return steps;
}

// Ticks as nanoseconds, by proportion between the two moments when both clocks were read.
class Clock {
  public:
    explicit Clock(const thrum_trace_header &header) : begin_(header.begin) {
        const std::uint64_t ticks = header.end.ticks - header.begin.ticks;
        if (header.end.ticks > header.begin.ticks && header.end.ns > header.begin.ns)
            ns_per_tick_ = static_cast<double>(header.end.ns - header.begin.ns) / static_cast<double>(ticks);
    }
    std::uint64_t ns(std::uint64_t ticks) const {
        const std::uint64_t since = ticks > begin_.ticks ? ticks - begin_.ticks : 0;
        return begin_.ns + static_cast<std::uint64_t>(static_cast<double>(since) * ns_per_tick_);
    }

  private:
    thrum_trace_timestamp begin_;
    double ns_per_tick_ = 1;
};

// --- what they say -----------------------------------------------------------------------------------

const char *how_it_left(unsigned kind) {
    switch (kind) {
    case THRUM_TRACE_WAIT: return "waits";
    case THRUM_TRACE_YIELD: return "yields";
    case THRUM_TRACE_PREEMPT: return "is preempted";
    case THRUM_TRACE_CHILD: return "spawns";
    case THRUM_TRACE_MOVE: return "migrates";
    case THRUM_TRACE_HOST: return "schedules";
    default: return "ends";
    }
}

// What happens on a track.
struct Present {
    std::vector<Slice> running;        // a thread, and on its stack tasklets
    std::optional<Slice> idle;         // searching or parked
    std::optional<std::size_t> before; // the slice of the last that ran, once it has left
    std::size_t last = kNoLife;        // the life of the last event
    std::size_t spawner = kNoLife;     // the life that has just left for the thread that it spawned
};

struct Source {
    std::size_t track;
    std::uint64_t at;
    bool is_spawn;
};

class Maker {
  public:
    explicit Maker(const TraceSection &section) : section_(section), clock_(section.header) {
        for (const TraceRing &ring : section.rings)
            timeline_.tracks.push_back(
                {ring.head.worker, ring.head.relief != 0, ring.head.lost, ring.events.size()});
        present_.resize(section.rings.size());
    }

    Timeline make() {
        for (const Step &step : in_order(section_))
            take(step);
        close_all();
        return std::move(timeline_);
    }

  private:
    void take(const Step &step) {
        track_ = step.track;
        at_ = clock_.ns(step.ticks);
        unit_ = step.event->what & ~static_cast<std::uint64_t>(THRUM_TRACE_KIND_MASK);
        const auto kind = static_cast<unsigned>(step.event->what & THRUM_TRACE_KIND_MASK);
        if (kind == THRUM_TRACE_NAME)
            name(*step.event);
        else
            take(kind, step.event->argument);
    }
    void take(unsigned kind, std::uint64_t argument) {
        const std::size_t spawner = std::exchange(here().spawner, kNoLife);
        switch (kind) {
        case THRUM_TRACE_BEGIN: begin(Slice::kThread, argument, spawner); break;
        case THRUM_TRACE_TASKLET: begin(Slice::kTasklet, argument, kNoLife); break;
        case THRUM_TRACE_RESUME: resume(argument); break;
        case THRUM_TRACE_WAIT:
        case THRUM_TRACE_YIELD:
        case THRUM_TRACE_PREEMPT:
        case THRUM_TRACE_CHILD:
        case THRUM_TRACE_MOVE:
        case THRUM_TRACE_HOST:
        case THRUM_TRACE_END:
        case THRUM_TRACE_TASKLET_END: leave(kind); break;
        case THRUM_TRACE_SPAWN: spawn(argument); break;
        case THRUM_TRACE_WAKE: wake(); break;
        case THRUM_TRACE_STEAL: mark(Mark::kSteal, find(), argument); break;
        case THRUM_TRACE_MIGRATE: mark(Mark::kMigrate, find(), argument); break;
        case THRUM_TRACE_SEARCH: idle(Slice::kSearching); break;
        case THRUM_TRACE_PARK: idle(Slice::kParked); break;
        case THRUM_TRACE_UNPARK: idle(Slice::kSearching); break;
        case THRUM_TRACE_FOUND: end_idle(); break;
        default: break; // of a later version that is otherwise the same
        }
    }

    Present &here() { return present_[track_]; }

    // --- lives ---

    std::size_t find() const {
        const auto found = lives_.find(unit_);
        return found == lives_.end() ? kNoLife : found->second;
    }
    std::size_t new_life(std::uint64_t function) {
        timeline_.lives.push_back({function, "", kNoLife, false, false});
        lives_[unit_] = timeline_.lives.size() - 1;
        return lives_[unit_];
    }
    // The thread that runs here, or on whose behalf something happens.
    std::size_t present_life() { return here().running.empty() ? kNoLife : here().running.back().life; }

    // --- running ---

    void open(Slice::What what, std::size_t life, bool begins) {
        here().running.push_back({what, track_, life, at_, at_, begins, "runs on"});
        here().last = life;
        arrive(life);
    }
    void begin(Slice::What what, std::uint64_t function, std::size_t spawner) {
        std::size_t life = find();
        if (life == kNoLife || timeline_.lives[life].begun)
            life = new_life(function);
        Life &begun = timeline_.lives[life];
        begun.begun = true;
        begun.is_primary = function == 0;
        if (spawner != kNoLife)
            begun.maker = spawner;
        open(what, life, true);
    }
    // Its beginning may be lost.
    void resume(std::uint64_t function) {
        std::size_t life = find();
        if (life == kNoLife)
            life = new_life(function);
        timeline_.lives[life].begun = true;
        open(Slice::kThread, life, false);
    }
    void leave(unsigned kind) {
        if (here().running.empty()) // it came before what is kept
            here().last = find();
        else
            close_running(how_it_left(kind));
        if (kind == THRUM_TRACE_CHILD)
            here().spawner = here().last;
        if (kind == THRUM_TRACE_END || kind == THRUM_TRACE_TASKLET_END)
            lives_.erase(unit_);
    }
    void close_running(const char *then) {
        Slice slice = here().running.back();
        here().running.pop_back();
        slice.end = at_;
        slice.then = then;
        here().last = slice.life;
        here().before = timeline_.slices.size();
        timeline_.slices.push_back(slice);
    }
    void name(const thrum_trace_event &event) {
        char text[2 * sizeof event.ticks + 1] = {};
        std::memcpy(text, &event.ticks, sizeof event.ticks);
        std::memcpy(text + sizeof event.ticks, &event.argument, sizeof event.argument);
        if (here().last != kNoLife)
            timeline_.lives[here().last].name = text;
    }

    // --- making others run ---

    // The arrow begins in a slice: in that of the present thread, or of one that has just left, as one that has ended
    // and whose joiner resumes.
    void depart(std::size_t life, bool is_spawn) {
        if (!here().running.empty()) {
            pending_[life] = {track_, at_, is_spawn};
        } else if (timeline_.tracks[track_].worker == THRUM_TRACE_EXTERNAL) {
            timeline_.slices.push_back(
                {is_spawn ? Slice::kSpawns : Slice::kWakes, track_, life, at_, at_ + 1, false, ""});
            pending_[life] = {track_, at_, is_spawn};
        } else if (here().before) {
            const Slice &before = timeline_.slices[*here().before];
            pending_[life] = {track_, std::max(before.begin, before.end - 1), is_spawn};
        } else {
            mark(is_spawn ? Mark::kSpawn : Mark::kWake, life, 0);
        }
    }
    void arrive(std::size_t life) {
        const auto found = pending_.find(life);
        if (found == pending_.end())
            return;
        const Source &source = found->second;
        timeline_.arrows.push_back(
            {source.track, track_, source.at, std::max(at_, source.at + 1), source.is_spawn});
        pending_.erase(found);
    }
    // A thread that was taken from a queue and put back before it began comes here a second time.
    void spawn(std::uint64_t function) {
        std::size_t life = find();
        if (life != kNoLife && !timeline_.lives[life].begun)
            return;
        life = new_life(function);
        timeline_.lives[life].maker = present_life();
        depart(life, true);
    }
    // An unknown life waits on a kernel thread of its own.
    void wake() {
        const std::size_t life = find();
        if (life != kNoLife)
            depart(life, false);
        else
            mark(Mark::kWake, kNoLife, 0);
    }
    void mark(Mark::What what, std::size_t life, std::uint64_t argument) {
        timeline_.marks.push_back({what, track_, life, at_, argument});
    }

    // --- workers ---

    void idle(Slice::What what) {
        end_idle();
        here().idle = Slice{what, track_, kNoLife, at_, at_, false, ""};
    }
    void end_idle() {
        if (!here().idle)
            return;
        here().idle->end = at_;
        timeline_.slices.push_back(*here().idle);
        here().idle.reset();
    }

    // Slices that are open at the end of the trace end there.
    void close_all() {
        at_ = std::max(at_, clock_.ns(section_.header.end.ticks));
        for (track_ = 0; track_ < present_.size(); track_++) {
            while (!here().running.empty())
                close_running("runs on");
            end_idle();
        }
    }

    const TraceSection &section_;
    const Clock clock_;
    Timeline timeline_;
    std::vector<Present> present_;
    std::unordered_map<std::uint64_t, std::size_t> lives_; // by descriptor
    std::unordered_map<std::size_t, Source> pending_;      // by life: made runnable, and has not run yet
    std::size_t track_ = 0;
    std::uint64_t at_ = 0, unit_ = 0;
};

} // namespace

Timeline make_timeline(const TraceSection &section) {
    return Maker(section).make();
}

} // namespace thrum
