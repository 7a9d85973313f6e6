// SPDX-License-Identifier: Apache-2.0
//
// `thrum ps PID`: what the workers and user-level threads of a process do, read from its memory while it runs.
// src/inspect, which thrum_dump uses too, knows how to read it; this adds names, backtraces and JSON.
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "backtrace.hpp"
#include "command.hpp"
#include "elf.hpp"
#include "inspect/inspect.h"
#include "inspect/report.h"
#include "process.hpp"
#include "repeat.hpp"
#include "symbols.hpp"
#include "tools/json.hpp"
#include "tools/output_file.hpp"
#include "tools/text.hpp"

namespace thrum {

namespace {

struct Options {
    std::string pid, output; // empty: standard output
    std::uint64_t most = 1000;
    double every = 0; // seconds between two looks; 0: one look
    bool backtrace = false, json = false, wide = false;
};

class Look {
  public:
    Look(pid_t pid, const Options &options);
    void print_text();
    void print_json();

  private:
    static bool read(void *look, std::uint64_t address, void *to, std::size_t size);
    static bool kernel_thread(void *look, std::int32_t tid, struct inspect_kernel_thread *told);
    const char *function(std::uint64_t address);
    const char *function(const struct inspect_thread &thread);
    std::uint64_t callee(const struct inspect_thread &thread);
    std::uint64_t stop(const struct inspect_thread &thread);
    Backtrace backtrace(const struct inspect_thread &thread);
    std::vector<std::string> frames(const struct inspect_thread &thread);
    void print_line(const std::string &line);
    void print_frames(const struct inspect_thread &thread);
    Json json(const struct inspect_thread &thread);
    Json json_resources() const;
    Json json_workers() const;
    Json json_threads(struct inspect_summary *summary);
    Json json_deadlocks(bool *is_whole) const;

    pid_t pid_;
    Options options_;
    struct inspect_source source_;
    Backtracer backtracer_;
    Symbols symbols_;
    std::map<std::uint64_t, std::string> functions_;
    std::string begun_; // of the line that print_line() ends
    std::string shown_; // what report.name() gave back last
    Stopped stopped_;   // what the kernel thread of the last thread was at, if that had one
};

bool Look::read(void *look, std::uint64_t address, void *to, std::size_t size) {
    return elf::read_process(static_cast<Look *>(look)->pid_, address, to, size);
}

bool Look::kernel_thread(void *look, std::int32_t tid, struct inspect_kernel_thread *told) {
    const auto status = process::read_all("/proc/" + std::to_string(static_cast<Look *>(look)->pid_) +
                                          "/task/" + std::to_string(tid) + "/status");
    return status && inspect_parse_status(status->c_str(), told);
}

// Its clock; 0 if it is in another namespace of times than this process, where that is another one.
std::uint64_t now_in(pid_t pid) {
    std::error_code error, other;
    const auto mine = std::filesystem::read_symlink("/proc/self/ns/time", error);
    const auto its = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/ns/time", other);
    if (!error && (other || mine != its))
        return 0;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Look::Look(pid_t pid, const Options &options)
    : pid_(pid), options_(options), source_{read, this, 0, kernel_thread, now_in(pid)}, backtracer_(pid),
      symbols_(process::maps(pid)) {
    const auto image = process::find_in_libthrum(pid, INSPECT_IMAGE);
    if (!image)
        throw Failure(kFailed, "process " + std::to_string(pid) + " does not use libthrum");
    source_.image = *image;
    if (const char *wrong = inspect_check(&source_))
        throw Failure(kFailed, "process " + std::to_string(pid) + ": " + wrong);
}

// Many threads begin in few functions.
const char *Look::function(std::uint64_t address) {
    const auto [at, is_new] = functions_.try_emplace(address);
    if (is_new)
        at->second = short_name(symbols_.at(address));
    return at->second.empty() ? nullptr : at->second.c_str();
}

// Of a thread of <thrum/thrum.hpp> that was made to run a pointer to a function: where that points; a std::function: a function
// of it that has the type of what it holds in its name (libstdc++). The pointer is the
// thread's argument (detail/launch.hpp), or stands in the memory that the argument points to: first in what a thread or
// a branch has, and behind the state of a future in what async() has.
std::uint64_t Look::callee(const struct inspect_thread &thread) {
    constexpr std::uint64_t kWords = 32;
    if (symbols_.at(thread.function).function.find("run_from_pointer<") != std::string::npos)
        return thread.argument;
    for (std::uint64_t i = 0, word; i < kWords; i++) {
        if (!read(this, thread.argument + i * sizeof word, &word, sizeof word))
            break;
        const Symbol &symbol = symbols_.at(word);
        if (word != 0 && !symbol.function.empty() && symbol.offset == 0)
            return word;
    }
    return 0;
}

// Where the name is no more than the type of what holds the function, the function.
const char *Look::function(const struct inspect_thread &thread) {
    const char *type = function(thread.function);
    if (type == nullptr || !is_holder_of_function(type))
        return type;
    const std::uint64_t address = callee(thread);
    const char *name = address != 0 ? function(address) : nullptr;
    return name != nullptr ? name : type;
}

// Of a thread that has a kernel thread under it: where its stack has come to.
std::uint64_t Look::stop(const struct inspect_thread &thread) {
    stopped_ = backtracer_.of_thread(thread.tid);
    return stopped_.stack_pointer;
}

Backtrace Look::backtrace(const struct inspect_thread &thread) {
    std::uint64_t registers[INSPECT_REGISTERS], known;
    if (thread.tid != 0)
        return stopped_.backtrace;
    if (!inspect_registers(&source_, &thread, registers, &known))
        return {};
    return backtracer_.from_registers(registers, known, registers[INSPECT_REGISTERS - 1]);
}

std::vector<std::string> Look::frames(const struct inspect_thread &thread) {
    std::vector<std::string> lines;
    for (const std::uint64_t address : backtrace(thread))
        lines.push_back(describe(symbols_.at(address), address));
    return lines;
}

// --- text -------------------------------------------------------------------------------------------------

// Rows of tables are cut by src/inspect; of what is longer than that, no part may be missing.
void Look::print_line(const std::string &line) {
    constexpr std::size_t kMargin = 6;
    std::cout << row_for(options_.wide ? -1 : STDOUT_FILENO, begun_ + line, kMargin);
    begun_.clear();
}

void Look::print_frames(const struct inspect_thread &thread) {
    for (const std::string &frame : frames(thread))
        print_line("    " + terminal_text(frame));
}

void Look::print_text() {
    struct inspect_report report = {};
    report.context = this;
    report.most = options_.most;
    const std::size_t columns = options_.wide ? 0 : terminal_columns(STDOUT_FILENO);
    report.columns = columns > 0 ? columns - 1 : 0; // some terminals wrap when the last one is written to
    report.line = [](void *look, const char *line, std::size_t length) {
        static_cast<Look *>(look)->print_line(std::string(line, length - 1)); // without the '\n'
    };
    report.name = [](void *look, const struct inspect_thread *thread) -> const char * {
        auto &to = *static_cast<Look *>(look);
        const char *name = to.function(*thread);
        if (name == nullptr)
            return nullptr;
        to.shown_ = terminal_text(name);
        return to.shown_.c_str();
    };
    if (options_.backtrace) {
        report.stack_pointer = [](void *look, const struct inspect_thread *thread) {
            return static_cast<Look *>(look)->stop(*thread);
        };
        report.after = [](void *look, const struct inspect_thread *thread) {
            static_cast<Look *>(look)->print_frames(*thread);
        };
    }
    begun_ = "process " + std::to_string(pid_) + " (" + terminal_text(process::name(pid_)) + "), ";
    if (!inspect_print(&source_, &report))
        throw Failure(kFailed, "process " + std::to_string(pid_) + " has ended its runtime since");
}

// --- JSON -------------------------------------------------------------------------------------------------

// Null if there is nothing at it.
Json pointer_json(std::uint64_t address) {
    return address != 0 ? json_address(address) : Json();
}

Json Look::json(const struct inspect_thread &thread) {
    const char *name = thread.function != 0 ? function(thread) : nullptr;
    const std::uint64_t pointer = thread.tid != 0 && options_.backtrace ? stop(thread) : thread.stack_pointer;
    const bool on_stack = pointer > thread.stack_low && pointer < thread.stack_top;
    Json object = {{"thread", pointer_json(thread.handle)},
                   {"id", thread.id != 0 ? Json(thread.id) : Json()},
                   {"name", thread.name},
                   {"kind", thread.is_main      ? "main"
                            : thread.is_tasklet ? "tasklet"
                                                : "thread"},
                   {"state", inspect_state_word(thread.state)},
                   {"worker", thread.worker != INSPECT_NOWHERE ? Json(thread.worker) : Json()},
                   {"own_tid", thread.own_tid != 0 ? Json(thread.own_tid) : Json()},
                   {"pool", pointer_json(thread.pool)},
                   {"priority", thread.priority},
                   {"stack_used", on_stack ? Json(thread.stack_top - pointer) : Json()},
                   {"stack_size", thread.stack_top - thread.stack_low},
                   {"function", name != nullptr ? Json(name) : pointer_json(thread.function)}};
    if (thread.state == INSPECT_WAITS) {
        object["waits_for"] = inspect_awaits(thread.awaits);
        object["object"] = pointer_json(thread.object);
        object["owner"] = pointer_json(thread.owner);
        object["deadline"] = thread.has_deadline;
    }
    if (options_.backtrace)
        object["backtrace"] = frames(thread);
    return object;
}

Json Look::json_resources() const {
    struct inspect_resources told;
    if (!inspect_get_resources(&source_, &told))
        return Json();
    return {{"mode", told.mode},
            {"signal", told.signal != 0 ? Json(told.signal) : Json()},
            {"preempted", told.preempted},
            {"own_blocks", told.own_blocks},
            {"own_blocks_spare", told.own_spare},
            {"spare", told.spare},
            {"donors", told.donors},
            {"blocking_threads", told.blocking_threads},
            {"blocking_calls", told.blocking_calls}};
}

Json Look::json_workers() const {
    std::set<std::uint32_t> silent;
    const auto note = [](void *to, const struct inspect_worker *worker) {
        static_cast<std::set<std::uint32_t> *>(to)->insert(worker->number);
        return true;
    };
    inspect_silent_workers(&source_, note, &silent);

    Json list = Json::array();
    const auto add = [](void *to, const struct inspect_worker *worker) {
        const bool runs = worker->state == INSPECT_AT_WORK;
        const Json since_tick =
            worker->since_tick != 0 ? Json(static_cast<double>(worker->since_tick) / 1e9) : Json();
        static_cast<Json *>(to)->push_back({{"worker", worker->number},
                                            {"tid", worker->tid},
                                            {"state", inspect_worker_state_word(worker->state)},
                                            {"thread", runs ? pointer_json(worker->current) : Json()},
                                            {"switches", worker->switches},
                                            {"steals", worker->steals},
                                            {"parks", worker->parks},
                                            {"migrations", worker->migrations},
                                            {"queued", worker->queued},
                                            {"ticks", inspect_ticks_word(worker->ticks)},
                                            {"since_tick", since_tick}});
        return true;
    };
    inspect_workers(&source_, add, &list);
    for (Json &worker : list)
        worker["no_tick"] = silent.count(worker["worker"].get<std::uint32_t>()) != 0;
    return list;
}

Json Look::json_threads(struct inspect_summary *summary) {
    struct Context {
        Look *look;
        Json list;
    } context = {this, Json::array()};
    const auto add = [](void *at, const struct inspect_thread *thread) {
        auto &to = *static_cast<Context *>(at);
        if (to.list.size() < to.look->options_.most)
            to.list.push_back(to.look->json(*thread));
        return true;
    };
    inspect_threads(&source_, summary, add, &context);
    return context.list;
}

Json Look::json_deadlocks(bool *is_whole) const {
    struct Context {
        struct inspect_search search;
        Json list;
    } context = {inspect_search_begin(&source_), Json::array()};
    const auto add = [](void *at, const struct inspect_thread *thread) {
        auto &to = *static_cast<Context *>(at);
        std::uint64_t members[INSPECT_CYCLE_MAX];
        bool has_deadline;
        const std::size_t length =
            inspect_cycle(&to.search, thread, members, INSPECT_CYCLE_MAX, &has_deadline);
        Json handles = Json::array();
        for (std::size_t i = 0; i < length; i++)
            handles.push_back(pointer_json(members[i]));
        if (length != 0)
            to.list.push_back(handles);
        return to.search.steps != 0;
    };
    inspect_threads(&source_, nullptr, add, &context);
    *is_whole = context.search.is_whole;
    return context.list;
}

void Look::print_json() {
    struct inspect_summary summary;
    const Json threads = json_threads(&summary); // fills the summary
    Json counts = Json::object();
    for (int i = 0; i < INSPECT_STATES; i++)
        counts[inspect_state_word(static_cast<enum inspect_state>(i))] = summary.threads[i];
    bool all_found;
    const Json deadlocks = json_deadlocks(&all_found);
    const Json all = {{"pid", pid_},
                      {"program", process::name(pid_)},
                      {"libthrum", summary.version},
                      {"counts", counts},
                      {"whole", summary.is_whole},
                      {"all_wait", inspect_all_wait(&summary)},
                      {"resources", json_resources()},
                      {"workers", json_workers()},
                      {"threads", threads},
                      {"deadlocks", deadlocks},
                      {"deadlocks_whole", all_found}};
    std::cout << json_line(all) << '\n';
}

void show(const Options &options) {
    if (options.pid.empty())
        throw Failure(kUsage, "missing process number: thrum ps PID");
    Options wanted = options;
    if (wanted.most == 0)
        wanted.most = UINT64_MAX;
    wanted.wide = wanted.wide || (!options.output.empty() && options.output != OutputFile::kStandard);
    const pid_t pid = process::parse(options.pid);
    repeat(options.every, options.output, [pid, &wanted] { // the libraries that it has may change
        Look look(pid, wanted);
        if (wanted.json)
            look.print_json();
        else
            look.print_text();
    });
}

} // namespace

void add_ps(CommandLine &line) {
    auto options = std::make_shared<Options>();
    Command command = line.add({"ps", "Show the user-level threads of a process that uses libthrum",
                                "thrum ps [OPTIONS] PID",
                                "Needs permission to trace the process: as its user or as root (see "
                                "ptrace_scope in\nthrum-counters(1))."});
    command.word("PID", "The process to inspect", options->pid);
    command.flag("-b,--backtrace", "Add backtraces; stops running threads briefly", options->backtrace);
    command.value("-n,--most", "N", "Show at most N threads (default: 1000; 0: all)",
                  [options](const std::string &text) {
                      options->most = whole_number("-n", text, 0, std::numeric_limits<unsigned long>::max());
                  });
    command.flag("-w,--wide", "Show all columns, however wide the terminal is", options->wide);
    command.flag("--json", "Print one JSON object", options->json);
    add_file(command, "-o,--output", "Write to FILE, whole rows; -: stdout", options->output);
    command.value("--watch", "SECONDS", "Repeat at this interval, until Ctrl-C",
                  [options](const std::string &text) { options->every = parse_seconds("--watch", text); });
    command.then([options] { show(*options); });
}

} // namespace thrum
