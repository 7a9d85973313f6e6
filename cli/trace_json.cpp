// SPDX-License-Identifier: Apache-2.0
#include "trace_json.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "symbols.hpp"
#include "timeline.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace thrum {

namespace {

constexpr std::size_t kMembers = 9;            // of an event, at most
constexpr std::uint32_t kOutsideNumber = 1025; // behind all workers: threads that are no workers, together

const char *mark_name(Mark::What what) {
    switch (what) {
    case Mark::kSpawn: return "spawn";
    case Mark::kWake: return "wake";
    case Mark::kSteal: return "steal";
    default: return "migrate";
    }
}

// The name of the program: the first file that is mapped.
std::string program_of(const std::string &maps) {
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);)
        if (const std::size_t at = line.find('/'); at != std::string::npos)
            return file_name(line);
    return "?";
}

// That no two lives have, nor two arrows, in all of the file.
struct Numbers {
    std::size_t life = 1, arrow = 1;
};

// Writes the events of one section.
class Writer {
  public:
    Writer(const TraceSection &section, std::uint64_t origin, Numbers &numbers, std::FILE *to)
        : section_(section), timeline_(make_timeline(section)), symbols_(section.maps), origin_(origin),
          first_life_(numbers.life), next_arrow_(numbers.arrow), to_(to) {
        numbers.life += timeline_.lives.size();
        numbers.arrow += timeline_.arrows.size();
    }

    // `separator`: what stands before the first event.
    void write(const char *separator) {
        separator_ = separator;
        write_tracks();
        for (const Slice &slice : timeline_.slices)
            write_slice(slice);
        for (const Mark &mark : timeline_.marks)
            write_mark(mark);
        for (const Arrow &arrow : timeline_.arrows)
            write_arrow(arrow);
    }
    void add_to(TraceSummary &summary) const {
        std::set<std::size_t> tasklets;
        for (const Slice &slice : timeline_.slices) {
            summary.runs += slice.what == Slice::kThread || slice.what == Slice::kTasklet;
            if (slice.what == Slice::kTasklet)
                tasklets.insert(slice.life);
        }
        summary.tasklets += tasklets.size();
        summary.threads += timeline_.lives.size() - tasklets.size();
        for (const Track &track : timeline_.tracks) {
            summary.workers += track.worker != THRUM_TRACE_EXTERNAL && !track.is_relief;
            summary.lost += track.lost;
        }
    }

  private:
    // --- pieces ---

    std::uint32_t number(std::size_t track) const {
        const std::uint32_t worker = timeline_.tracks[track].worker;
        return worker == THRUM_TRACE_EXTERNAL ? kOutsideNumber : worker + 1;
    }
    Json event(const char *phase, std::size_t track) const {
        Json event = json_object(kMembers);
        event["ph"] = phase;
        event["pid"] = section_.header.pid;
        event["tid"] = number(track);
        return event;
    }
    Json event(const char *phase, std::size_t track, std::uint64_t at) const {
        Json event = this->event(phase, track);
        event["ts"] = microseconds(at > origin_ ? at - origin_ : 0);
        return event;
    }
    // With a nanosecond's precision.
    static double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }
    void write(const Json &event) {
        std::fprintf(to_, "%s\n", std::exchange(separator_, ","));
        const std::string text = json_compact(event);
        std::fwrite(text.data(), 1, text.size(), to_);
    }

    // Looked up once for each function.
    struct Function {
        std::string name, place;
    };
    const Function &function(std::uint64_t address) {
        const auto [found, is_new] = functions_.try_emplace(address);
        if (is_new) {
            const Symbol &symbol = symbols_.at(address);
            const std::string place = describe(symbol, address);
            found->second = {symbol.function.empty() ? place : short_name(symbol), place};
        }
        return found->second;
    }
    std::string name_of(std::size_t life) {
        const Life &one = timeline_.lives[life];
        if (!one.name.empty())
            return one.name;
        if (one.function != 0)
            return function(one.function).name;
        return one.is_primary ? "main" : "?";
    }
    std::size_t number_of(std::size_t life) const { return first_life_ + life; }

    // --- events ---

    void write_metadata(const char *what, std::size_t track, const Json &arguments) {
        Json metadata = event("M", track);
        metadata["name"] = what;
        metadata["args"] = arguments;
        write(metadata);
    }
    void write_tracks() {
        write_metadata("process_name", 0, {{"name", program_of(section_.maps)}});
        for (std::size_t track = 0; track < timeline_.tracks.size(); track++) {
            const Track &one = timeline_.tracks[track];
            const bool outside = one.worker == THRUM_TRACE_EXTERNAL;
            if ((outside || one.is_relief) && one.events == 0)
                continue;
            const std::string name = outside         ? "other kernel threads"
                                     : one.is_relief ? "relief"
                                                     : "worker " + std::to_string(one.worker);
            write_metadata("thread_name", track, {{"name", name}});
            write_metadata("thread_sort_index", track, {{"sort_index", number(track)}});
        }
    }
    void write_slice(const Slice &slice) {
        Json event = this->event("X", slice.track, slice.begin);
        event["dur"] = microseconds(slice.end - slice.begin);
        switch (slice.what) {
        case Slice::kSearching: describe_as(event, "idle", "searching"); break;
        case Slice::kParked: describe_as(event, "idle", "parked"); break;
        case Slice::kWakes: describe_as(event, "call", "wake", unit_of(slice.life)); break;
        case Slice::kSpawns: describe_as(event, "call", "spawn", unit_of(slice.life)); break;
        case Slice::kTasklet: describe_as(event, "tasklet", name_of(slice.life), run_of(slice)); break;
        default: describe_as(event, "thread", name_of(slice.life), run_of(slice)); break;
        }
        write(event);
    }
    static void describe_as(Json &event, const char *category, const std::string &name,
                            Json &&arguments = nullptr) {
        event["cat"] = category;
        event["name"] = name;
        if (!arguments.is_null())
            event["args"] = std::move(arguments);
    }
    Json run_of(const Slice &slice) {
        const Life &life = timeline_.lives[slice.life];
        Json arguments = json_object(kMembers);
        arguments["thread"] = number_of(slice.life);
        if (slice.begins)
            arguments["begins"] = true;
        if (slice.begins && life.function != 0)
            arguments["function"] = function(life.function).place;
        if (slice.begins && life.maker != kNoLife)
            arguments["spawned by"] = number_of(life.maker);
        arguments["then"] = slice.then;
        return arguments;
    }
    Json unit_of(std::size_t life) const {
        Json unit = json_object(2);
        if (life != kNoLife)
            unit["thread"] = number_of(life);
        return unit;
    }
    void write_mark(const Mark &mark) {
        Json event = this->event("i", mark.track, mark.at), arguments = unit_of(mark.life);
        if (mark.what == Mark::kSteal)
            arguments["from worker"] = mark.argument;
        if (mark.what == Mark::kMigrate && mark.argument < ~1ULL)
            arguments["to worker"] = mark.argument;
        else if (mark.what == Mark::kMigrate)
            arguments["to"] = mark.argument == ~0ULL ? "any worker" : "a pool";
        event["s"] = "t";
        describe_as(event, "event", mark_name(mark.what), std::move(arguments));
        write(event);
    }
    // Bound to the slices that the two moments lie in ("bp": the one that encloses the second, not the next).
    void write_arrow(const Arrow &arrow) {
        Json begin = event("s", arrow.from_track, arrow.from), end = event("f", arrow.to_track, arrow.to);
        for (Json *half : {&begin, &end}) {
            describe_as(*half, "flow", arrow.is_spawn ? "spawn" : "wake");
            (*half)["id"] = next_arrow_;
        }
        next_arrow_++;
        end["bp"] = "e";
        write(begin);
        write(end);
    }

    const TraceSection &section_;
    const Timeline timeline_;
    const Symbols symbols_;
    const std::uint64_t origin_;
    const std::size_t first_life_;
    std::size_t next_arrow_;
    std::FILE *to_;
    const char *separator_ = "";
    std::unordered_map<std::uint64_t, Function> functions_;
};

std::uint64_t earliest(const std::vector<TraceSection> &sections) {
    std::uint64_t origin = ~0ULL;
    for (const TraceSection &section : sections)
        origin = std::min(origin, section.header.begin.ns);
    return origin;
}

} // namespace

TraceSummary write_trace_json(const std::vector<TraceSection> &sections, std::FILE *to) {
    TraceSummary summary;
    const std::uint64_t origin = earliest(sections);
    Numbers numbers;
    std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", to);
    const char *separator = "";
    for (const TraceSection &section : sections) {
        Writer writer(section, origin, numbers, to);
        writer.write(std::exchange(separator, ","));
        writer.add_to(summary);
    }
    const Json other = {{"version", "thrum " THRUM_VERSION}, {"lost events", summary.lost}};
    std::fprintf(to, "\n],\"otherData\":%s}\n", json_compact(other).c_str());
    return summary;
}

} // namespace thrum
