// SPDX-License-Identifier: Apache-2.0
//
// --trace: the sampled run in the Trace Event Format (JSON), as trace_json.cpp writes those of libthrum: a track for each
// thread, with a slice for each stretch of time that it was found doing the same.
#include <algorithm>

#include "json.hpp"
#include "names.hpp"

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
        add_metadata("process_name", process_, "name", json_string(program_name(report_)));
        for (std::size_t i = 0; i < report_.threads.size(); i++) {
            const Thread &thread = report_.threads[i];
            add_metadata("thread_name", thread.id, "name", json_string(thread.name));
            add_metadata("thread_sort_index", thread.id, "sort_index", std::to_string(i));
            for (const Thread::Span &span : thread.spans)
                add_slice(thread, span);
        }
        return text_;
    }

  private:
    static std::string microseconds(double seconds) {
        return json_number(std::isfinite(seconds) ? 1e6 * std::max(0.0, seconds) : 0, 3);
    }
    JsonObject event(const char *phase, std::int32_t thread) const {
        return JsonObject()
            .add("ph", json_string(phase))
            .add("pid", std::to_string(process_))
            .add("tid", std::to_string(thread));
    }
    void add(const JsonObject &event) { text_ += (text_.empty() ? "\n" : ",\n") + event.text(); }

    void add_metadata(const char *what, std::int32_t thread, const char *key, const std::string &json) {
        add(event("M", thread)
                .add("name", json_string(what))
                .add("args", JsonObject().add(key, json).text()));
    }
    // Named by what the thread did, and where that is known by the innermost function: "lock wait: random".
    void add_slice(const Thread &thread, const Thread::Span &span) {
        const Site *site = site_of(report_, span);
        std::string name = name_of(span.doing);
        JsonObject arguments;
        if (site != nullptr && !site->stack.empty()) {
            name += ": " + frame_name(site->stack.front());
            arguments.add("stack", json_string(chain_of(site->stack, kFrames)));
            if (const Lock *lock = lock_of(report_, *site); lock != nullptr)
                arguments.add("lock", json_string(lock->text));
        }
        add(event("X", thread.id)
                .add("ts", microseconds(span.begin))
                .add("dur", microseconds(span.end - span.begin))
                .add("cat", json_string(key_of(span.doing)))
                .add("name", json_string(name))
                .add("args", arguments.text()));
    }

    const Report &report_;
    const std::int32_t process_;
    std::string text_;
};

} // namespace

std::string trace_of(const Report &report) {
    const std::string other = JsonObject()
                                  .add("version", json_string("thrum " THRUM_VERSION))
                                  .add("command", json_string(shell_line(report.command)))
                                  .add("verdict", json_string(report.verdict))
                                  .text();
    return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [" + Events(report).all() +
           "\n], \"otherData\": " + other + "}\n";
}

} // namespace thrum::stat
