// SPDX-License-Identifier: Apache-2.0
//
// The events of a trace put in order: which thread ran where and when, what workers did meanwhile, and which thread
// made which one runnable. trace_json.cpp writes it down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace_file.hpp"

namespace thrum {

constexpr std::size_t kNoLife = static_cast<std::size_t>(-1);

// A thread or a tasklet, from its making to its end; of several that had one descriptor, one.
struct Life {
    std::uint64_t function = 0; // 0: what called thrum_init, or not known
    std::string name;           // as thrum_set_name gave it
    std::size_t maker = kNoLife;
    bool is_primary = false; // what called thrum_init
    bool begun = false;
};

// What a track shows between two moments (ns, CLOCK_MONOTONIC).
struct Slice {
    enum What { kThread, kTasklet, kSearching, kParked, kWakes, kSpawns } what;
    std::size_t track;
    std::size_t life; // of the last two: the life that is woken, or created; kNoLife: not known
    std::uint64_t begin, end;
    bool begins; // the life does
    // How it left: "waits", "yields", "is preempted", "spawns", "migrates", "schedules", "ends", "runs on".
    const char *then;
};

// What happens at a moment.
struct Mark {
    enum What { kSpawn, kWake, kSteal, kMigrate } what;
    std::size_t track;
    std::size_t life;
    std::uint64_t at;
    std::uint64_t argument; // kSteal: from which worker; kMigrate: where to
};

// From the creator of a thread, or its waker, to where it runs.
struct Arrow {
    std::size_t from_track, to_track;
    std::uint64_t from, to;
    bool is_spawn;
};

struct Track {
    std::uint32_t worker; // or THRUM_TRACE_EXTERNAL
    bool is_relief;
    std::uint64_t lost;
    std::size_t events;
};

struct Timeline {
    std::vector<Track> tracks;
    std::vector<Life> lives;
    std::vector<Slice> slices;
    std::vector<Mark> marks; // those that no arrow shows
    std::vector<Arrow> arrows;
};

Timeline make_timeline(const TraceSection &section);

} // namespace thrum
