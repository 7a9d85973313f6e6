// SPDX-License-Identifier: Apache-2.0
//
// --trace: the sampled run in the Trace Event Format (JSON), as trace_json.cpp writes those of libthrum: a track for each
// thread, with a slice for each stretch of time that it was found doing the same.
#include <algorithm>
#include <cmath>

#include "names.hpp"
#include "tools/json.hpp"
#include "tools/text.hpp"

#ifndef THRUM_VERSION
#error "THRUM_VERSION is defined by the build"
#endif

namespace thrum::stat {

namespace {

constexpr std::size_t kFrames = 12; // of a slice's stack

class Events {
  public:
    explicit Events(const Report &report) : report_(report), process_(report.process) {}

    std::string all() {
        add_metadata("process_name", process_, {{"name", program_name(report_)}});
        for (std::size_t i = 0; i < report_.threads.size(); i++) {
            const Thread &thread = report_.threads[i];
            add_metadata("thread_name", thread.id, {{"name", thread.name}});
            add_metadata("thread_sort_index", thread.id, {{"sort_index", i}});
            for (const Thread::Span &span : thread.spans)
                add_slice(thread, span);
        }
        return text_;
    }

  private:
    static Json microseconds(double seconds) {
        return json_number(std::isfinite(seconds) ? 1e6 * std::max(0.0, seconds) : 0, 3);
    }
    Json event(const char *phase, std::int32_t thread) const {
        return {{"ph", phase}, {"pid", process_}, {"tid", thread}};
    }
    void add(const Json &event) { text_ += (text_.empty() ? "\n" : ",\n") + json_line(event); }

    void add_metadata(const char *what, std::int32_t thread, const Json &arguments) {
        Json metadata = event("M", thread);
        metadata["name"] = what;
        metadata["args"] = arguments;
        add(metadata);
    }
    // Named by what the thread did, and where that is known by the innermost function: "lock wait: random".
    void add_slice(const Thread &thread, const Thread::Span &span) {
        const Site *site = site_of(report_, span);
        std::string name = name_of(span.doing);
        Json arguments = Json::object();
        if (site != nullptr && !site->stack.empty()) {
            name += ": " + frame_name(site->stack.front());
            arguments["stack"] = chain_of(site->stack, kFrames);
            if (const Lock *lock = lock_of(report_, *site); lock != nullptr)
                arguments["lock"] = lock->text;
        }
        Json slice = event("X", thread.id);
        slice["ts"] = microseconds(span.begin);
        slice["dur"] = microseconds(span.end - span.begin);
        slice["cat"] = key_of(span.doing);
        slice["name"] = name;
        slice["args"] = arguments;
        add(slice);
    }

    const Report &report_;
    const std::int32_t process_;
    std::string text_;
};

} // namespace

std::string trace_of(const Report &report) {
    const Json other = {{"version", "thrum " THRUM_VERSION},
                        {"command", shell_line(report.command)},
                        {"verdict", report.verdict}};
    return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [" + Events(report).all() +
           "\n], \"otherData\": " + json_line(other) + "}\n";
}

} // namespace thrum::stat
