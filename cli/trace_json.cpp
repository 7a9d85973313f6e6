// SPDX-License-Identifier: Apache-2.0
#include "trace_json.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "symbols.hpp"
#include "text.hpp"
#include "timeline.hpp"

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
    // Begins an event.
    void start(const char *phase, std::size_t track) {
        std::fprintf(to_, "%s\n{\"ph\":\"%s\",\"pid\":%llu,\"tid\":%u", separator_, phase,
                     static_cast<unsigned long long>(section_.header.pid), number(track));
        separator_ = ",";
    }
    // Microseconds with a nanosecond's precision.
    void time(const char *key, std::uint64_t ns) {
        std::fprintf(to_, ",\"%s\":%llu.%03llu", key, static_cast<unsigned long long>(ns / 1000),
                     static_cast<unsigned long long>(ns % 1000));
    }
    void at(std::uint64_t ns) { time("ts", ns > origin_ ? ns - origin_ : 0); }
    void text(const std::string &json) { std::fwrite(json.data(), 1, json.size(), to_); }

    // Looked up, and made JSON of, once for each function.
    struct Function {
        std::string name, place;
    };
    const Function &function(std::uint64_t address) {
        const auto [found, is_new] = functions_.try_emplace(address);
        if (is_new) {
            const Symbol &symbol = symbols_.at(address);
            const std::string place = describe(symbol, address);
            found->second = {json_string(symbol.function.empty() ? place : short_name(symbol)),
                             json_string(place)};
        }
        return found->second;
    }
    std::string name_of(std::size_t life) {
        const Life &one = timeline_.lives[life];
        if (!one.name.empty())
            return json_string(one.name);
        if (one.function != 0)
            return function(one.function).name;
        return one.is_primary ? "\"main\"" : "\"?\"";
    }
    std::string number_of(std::size_t life) const { return std::to_string(first_life_ + life); }

    // --- events ---

    void write_metadata(const char *what, std::size_t track, const std::string &argument) {
        start("M", track);
        std::fprintf(to_, ",\"name\":\"%s\",\"args\":{%s}}", what, argument.c_str());
    }
    void write_tracks() {
        write_metadata("process_name", 0, "\"name\":" + json_string(program_of(section_.maps)));
        for (std::size_t track = 0; track < timeline_.tracks.size(); track++) {
            const Track &one = timeline_.tracks[track];
            const bool outside = one.worker == THRUM_TRACE_EXTERNAL;
            if ((outside || one.is_relief) && one.events == 0)
                continue;
            const std::string name = outside         ? "other kernel threads"
                                     : one.is_relief ? "relief"
                                                     : "worker " + std::to_string(one.worker);
            write_metadata("thread_name", track, "\"name\":" + json_string(name));
            write_metadata("thread_sort_index", track, "\"sort_index\":" + std::to_string(number(track)));
        }
    }
    void write_slice(const Slice &slice) {
        start("X", slice.track);
        at(slice.begin);
        time("dur", slice.end - slice.begin);
        switch (slice.what) {
        case Slice::kSearching: text(",\"cat\":\"idle\",\"name\":\"searching\"}"); break;
        case Slice::kParked: text(",\"cat\":\"idle\",\"name\":\"parked\"}"); break;
        case Slice::kWakes: write_call("wake", slice.life); break;
        case Slice::kSpawns: write_call("spawn", slice.life); break;
        default: write_run(slice); break;
        }
    }
    void write_run(const Slice &slice) {
        const Life &life = timeline_.lives[slice.life];
        text(slice.what == Slice::kTasklet ? ",\"cat\":\"tasklet\",\"name\":"
                                           : ",\"cat\":\"thread\",\"name\":");
        text(name_of(slice.life));
        text(",\"args\":{\"thread\":" + number_of(slice.life));
        if (slice.begins)
            text(",\"begins\":true");
        if (slice.begins && life.function != 0)
            text(",\"function\":" + function(life.function).place);
        if (slice.begins && life.maker != kNoLife)
            text(",\"spawned by\":" + number_of(life.maker));
        text(",\"then\":\"" + std::string(slice.then) + "\"}}");
    }
    void write_call(const char *what, std::size_t life) {
        text(",\"cat\":\"call\",\"name\":\"" + std::string(what) + "\"");
        write_unit(life);
    }
    void write_unit(std::size_t life, const std::string &more = "") {
        std::string unit = life == kNoLife ? "" : "\"thread\":" + number_of(life);
        text(",\"args\":{" + unit + (unit.empty() || more.empty() ? "" : ",") + more + "}}");
    }
    void write_mark(const Mark &mark) {
        start("i", mark.track);
        at(mark.at);
        text(",\"s\":\"t\",\"cat\":\"event\",\"name\":\"" + std::string(mark_name(mark.what)) + "\"");
        std::string more;
        if (mark.what == Mark::kSteal)
            more = "\"from worker\":" + std::to_string(mark.argument);
        if (mark.what == Mark::kMigrate)
            more = mark.argument == ~0ULL   ? "\"to\":\"any worker\""
                   : mark.argument == ~1ULL ? "\"to\":\"a pool\""
                                            : "\"to worker\":" + std::to_string(mark.argument);
        write_unit(mark.life, more);
    }
    // Bound to the slices that the two moments lie in ("bp": the one that encloses the second, not the next).
    void write_arrow(const Arrow &arrow) {
        const std::string rest = std::string(",\"cat\":\"flow\",\"name\":\"") +
                                 (arrow.is_spawn ? "spawn" : "wake") +
                                 "\",\"id\":" + std::to_string(next_arrow_++);
        start("s", arrow.from_track);
        at(arrow.from);
        text(rest + "}");
        start("f", arrow.to_track);
        at(arrow.to);
        text(rest + ",\"bp\":\"e\"}");
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
    std::fprintf(to, "\n],\"otherData\":{\"version\":\"thrum " THRUM_VERSION "\",\"lost events\":%llu}}\n",
                 static_cast<unsigned long long>(summary.lost));
    return summary;
}

} // namespace thrum
