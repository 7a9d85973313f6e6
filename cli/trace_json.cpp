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
#include "tools/json_stream.hpp"
#include "tools/text.hpp"

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace thrum {

namespace {

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
    // An event is begun here, gets its members, and is written by end().
    void begin(const char *phase, std::size_t track) {
        json_.clear();
        json_.open();
        json_.text("ph", phase);
        json_.number("pid", static_cast<std::uint64_t>(section_.header.pid));
        json_.number("tid", number(track));
    }
    void begin(const char *phase, std::size_t track, std::uint64_t at) {
        begin(phase, track);
        json_.microseconds("ts", at > origin_ ? at - origin_ : 0);
    }
    void describe(const char *category, const std::string &name) {
        json_.text("cat", category);
        json_.text("name", name);
    }
    void end() {
        json_.close();
        std::fprintf(to_, "%s\n", std::exchange(separator_, ","));
        std::fwrite(json_.written().data(), 1, json_.written().size(), to_);
    }

    // Looked up once for each function.
    struct Function {
        std::string name, place;
    };
    const Function &function(std::uint64_t address) {
        const auto [found, is_new] = functions_.try_emplace(address);
        if (is_new) {
            const Symbol &symbol = symbols_.at(address);
            const std::string place = thrum::describe(symbol, address);
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

    template <typename Member>
    void write_metadata(const char *what, std::size_t track, Member member) {
        begin("M", track);
        json_.text("name", what);
        json_.open("args");
        member();
        json_.close();
        end();
    }
    void write_name(const char *what, std::size_t track, const std::string &name) {
        write_metadata(what, track, [&] { json_.text("name", name); });
    }
    void write_tracks() {
        write_name("process_name", 0, program_of(section_.maps));
        for (std::size_t track = 0; track < timeline_.tracks.size(); track++) {
            const Track &one = timeline_.tracks[track];
            const bool outside = one.worker == THRUM_TRACE_EXTERNAL;
            if ((outside || one.is_relief) && one.events == 0)
                continue;
            const std::string name = outside         ? "other kernel threads"
                                     : one.is_relief ? "relief"
                                                     : "worker " + std::to_string(one.worker);
            write_name("thread_name", track, name);
            write_metadata("thread_sort_index", track, [&] { json_.number("sort_index", number(track)); });
        }
    }
    void write_slice(const Slice &slice) {
        begin("X", slice.track, slice.begin);
        json_.microseconds("dur", slice.end - slice.begin);
        switch (slice.what) {
        case Slice::kSearching: describe("idle", "searching"); break;
        case Slice::kParked: describe("idle", "parked"); break;
        case Slice::kWakes: write_call("wake", slice.life); break;
        case Slice::kSpawns: write_call("spawn", slice.life); break;
        case Slice::kTasklet: write_run("tasklet", slice); break;
        default: write_run("thread", slice); break;
        }
        end();
    }
    void write_call(const char *name, std::size_t life) {
        describe("call", name);
        json_.open("args");
        write_thread(life);
        json_.close();
    }
    void write_run(const char *category, const Slice &slice) {
        const Life &life = timeline_.lives[slice.life];
        describe(category, name_of(slice.life));
        json_.open("args");
        write_thread(slice.life);
        if (slice.begins)
            json_.flag("begins", true);
        if (slice.begins && life.function != 0)
            json_.text("function", function(life.function).place);
        if (slice.begins && life.maker != kNoLife)
            json_.number("spawned by", number_of(life.maker));
        json_.text("then", slice.then);
        json_.close();
    }
    void write_thread(std::size_t life) {
        if (life != kNoLife)
            json_.number("thread", number_of(life));
    }
    void write_mark(const Mark &mark) {
        begin("i", mark.track, mark.at);
        json_.text("s", "t");
        describe("event", mark_name(mark.what));
        json_.open("args");
        write_thread(mark.life);
        if (mark.what == Mark::kSteal)
            json_.number("from worker", mark.argument);
        if (mark.what == Mark::kMigrate && mark.argument < ~1ULL)
            json_.number("to worker", mark.argument);
        else if (mark.what == Mark::kMigrate)
            json_.text("to", mark.argument == ~0ULL ? "any worker" : "a pool");
        json_.close();
        end();
    }
    // Bound to the slices that the two moments lie in ("bp": the one that encloses the second, not the next).
    void write_arrow(const Arrow &arrow) {
        const char *name = arrow.is_spawn ? "spawn" : "wake";
        begin("s", arrow.from_track, arrow.from);
        describe("flow", name);
        json_.number("id", next_arrow_);
        end();
        begin("f", arrow.to_track, arrow.to);
        describe("flow", name);
        json_.number("id", next_arrow_++);
        json_.text("bp", "e");
        end();
    }

    const TraceSection &section_;
    const Timeline timeline_;
    const Symbols symbols_;
    const std::uint64_t origin_;
    const std::size_t first_life_;
    std::size_t next_arrow_;
    std::FILE *to_;
    JsonStream json_; // of the event that is being written
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
