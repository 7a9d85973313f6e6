// SPDX-License-Identifier: Apache-2.0
//
// How the cost of libthrum's operations grows: with the number of threads, with the number of workers, of which there may
// be more than CPUs, and with how short tasks are; and what the scheduler's parts cost, from which simulation.py computes
// what more CPUs would do. Every number is measured in a process of its own, in turns: programs/growth/ults and costs,
// peers/NAME. docs/studies/growth.md has the results.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "rounds.hpp"

namespace {

using Values = std::map<std::string, double>;

// One process.
struct Trial {
    std::vector<std::string> command;
    bool is_ours;
    std::string why = ""; // it has no numbers
};

struct Size {
    double rounds, length, threads, workers, longest;
    bool with_peers;
    explicit Size(const bench::Options &options)
        : rounds(options.numbers[0]), length(options.numbers[1]), threads(options.numbers[2]),
          workers(options.numbers[3]), longest(options.numbers[4]), with_peers(options.flags[0]) {}
};

std::vector<double> up_to(double most, const std::vector<double> &all) {
    std::vector<double> few;
    std::copy_if(all.begin(), all.end(), std::back_inserter(few),
                 [most](double value) { return value <= most; });
    return few;
}

// --- measuring --------------------------------------------------------------------------------------------

// What a program said: lines of a name and a number; "ns WALL CPU" and "grain SERIAL WALL CPU TASKS" of peers.
void read_line(const std::string &line, double workers, Values *values) {
    double a = 0, b = 0, c = 0, d = 0;
    char name[64];
    if (std::sscanf(line.c_str(), "grain %lf %lf %lf %lf", &a, &b, &c, &d) == 4) {
        (*values)["ideal"] = a;
        (*values)["wall"] = b;
        (*values)["cpu"] = c;
        (*values)["tasks"] = d;
        (*values)["efficiency"] = workers > 1 ? a / (b * workers) : a / c;
    } else if (std::sscanf(line.c_str(), "ns %lf %lf", &a, &b) == 2) {
        (*values)["ns_wall"] = a;
        (*values)["ns_cpu"] = b;
    } else if (std::sscanf(line.c_str(), "%63s %lf", name, &a) == 2) {
        (*values)[name] = a;
    }
}

using Of = std::function<bench::Estimate(const char *name)>; // what a trial says under that name

class Trials {
  public:
    Trials(const bench::Options &options, const Size &size) : options_(options), size_(size) {}
    // Its place. In the command the second word after the program is the number of workers.
    std::size_t add(const std::vector<std::string> &command, bool is_ours = true) {
        trials_.push_back({command, is_ours});
        return trials_.size() - 1;
    }
    void run() {
        bench::Turns turns{size_.rounds, {}};
        for (const Trial &trial : trials_)
            turns.variants.push_back(trial.command[1]);
        rounds_.emplace(turns, [this](std::size_t which, std::size_t) { return run_one(&trials_[which]); });
    }
    const std::string &why(std::size_t which) const { return trials_[which].why; }
    bench::Estimate of(std::size_t which, const char *name) const {
        return rounds_->of(which, [&](const Values &values) {
            const auto found = values.find(name);
            if (found == values.end())
                throw bench::Failure(trials_[which].command[0] + " " + trials_[which].command[1] +
                                     " does not say " + name);
            return found->second;
        });
    }

    Of numbers_of(std::size_t which) const {
        return [this, which](const char *name) { return of(which, name); };
    }

  private:
    std::optional<Values> run_one(Trial *trial) const {
        bench::Environment environment;
        if (trial->is_ours)
            environment.preload(options_.library);
        const bench::Ended ended = trial->is_ours ? bench::run_well(trial->command, environment)
                                                  : bench::run(trial->command, environment, true);
        const double workers =
            trial->command.size() > 2 ? std::strtod(trial->command[2].c_str(), nullptr) : 0;
        if (ended.status != 0)
            trial->why = "it failed";
        Values values;
        std::istringstream lines(ended.output);
        for (std::string line; trial->why.empty() && std::getline(lines, line);)
            if (line.compare(0, 5, "none ") == 0)
                trial->why = line.substr(5);
            else
                read_line(line, workers, &values);
        return trial->why.empty() ? std::optional(values) : std::nullopt;
    }

    const bench::Options &options_;
    const Size &size_;
    std::vector<Trial> trials_;
    std::optional<bench::Rounds<Values>> rounds_;
};

// --- over the number of threads ---------------------------------------------------------------------------

constexpr double kBytesEach = 4500; // a page of stack and a descriptor, roughly

double available_bytes() {
    std::ifstream file("/proc/meminfo");
    std::string word;
    for (double kilobytes; file >> word;)
        if (word == "MemAvailable:" && file >> kilobytes)
            return kilobytes * 1024;
    return 0;
}

const std::vector<double> kCounts = {1, 10, 100, 1000, 10000, 100000, 1000000};

struct OfThreads {
    const char *row, *name;
    bool have_stacks; // all at a time
    double least;
};

const std::vector<OfThreads> kSwitching = {{"batched", "spawn + join", false, 1},
                                           {"queued", "spawn queued + join", false, 1},
                                           {"yield", "yield", true, 1}};
const std::vector<OfThreads> kWaiting = {{"blocked", "blocked in a condition", true, 100},
                                         {"asleep", "asleep", true, 100}};

// A part of the report: adds its trials, and later its table.
class Part {
  public:
    virtual ~Part() = default;
    virtual void add(Trials *trials) = 0;
    virtual void show(const Trials &trials, bench::Report *report) const = 0;
};

class OverThreads : public Part {
  public:
    OverThreads(const Size &size, const std::vector<OfThreads> &rows) : size_(size), rows_(rows) {}
    void add(Trials *trials) override {
        for (const OfThreads &row : rows_)
            for (const double count : up_to(size_.threads, kCounts)) {
                if (count < row.least)
                    continue;
                if (row.have_stacks && count * kBytesEach > available_bytes() / 2) {
                    left_out_.push_back(bench::word_of(count) + " threads, " + row.name);
                    continue;
                }
                cells_.push_back({&row, count,
                                  trials->add({bench::beside("programs/growth/ults"), row.row, "1",
                                               bench::word_of(count), bench::word_of(size_.length)})});
            }
    }
    void show(const Trials &trials, bench::Report *report) const override {
        bench::Table table = head();
        for (const Cell &cell : cells_) {
            const std::string &why = trials.why(cell.trial);
            if (why.empty())
                table.rows.push_back(row_of(*cell.row, cell.count, trials.numbers_of(cell.trial)));
            else
                report->note("Left out: " + bench::word_of(cell.count) + " threads, " + cell.row->name +
                             ": " + why + ".");
        }
        report->add(table);
        for (const std::string &what : left_out_)
            report->note("Left out, there is not twice the memory for it: " + what + ".");
    }

  protected:
    struct Cell {
        const OfThreads *row;
        double count;
        std::size_t trial;
    };
    virtual bench::Table head() const = 0;
    virtual std::vector<bench::Cell> row_of(const OfThreads &row, double count, const Of &of) const = 0;

  private:
    const Size &size_;
    const std::vector<OfThreads> &rows_;
    std::vector<Cell> cells_;
    std::vector<std::string> left_out_;
};

class Switching : public OverThreads {
  public:
    explicit Switching(const Size &size) : OverThreads(size, kSwitching) {}

  private:
    bench::Table head() const override {
        return {"threads",
                "So many threads at a time, one worker, ns an operation",
                {{"operation", "operation", "", 0},
                 {"threads", "threads", "", 0},
                 {"cpu", "CPU", "ns", 1},
                 {"wall", "wall", "ns", 1},
                 {"served", "had a turn", "%", 1}},
                {}};
    }
    std::vector<bench::Cell> row_of(const OfThreads &row, double count, const Of &of) const override {
        const bool yields = std::strcmp(row.row, "yield") == 0;
        return {row.name, count, of("ns_cpu"), of("ns_wall"),
                yields ? bench::Cell(of("served").median * 100) : bench::Cell("")};
    }
};

class Waiting : public OverThreads {
  public:
    explicit Waiting(const Size &size) : OverThreads(size, kWaiting) {}

  private:
    bench::Table head() const override {
        return {"waiting",
                "So many threads that wait, one worker: until they do, and when all are woken",
                {{"what", "threads that are", "", 0},
                 {"threads", "threads", "", 0},
                 {"bytes", "resident, each", "bytes", 0},
                 {"begin_cpu", "spawn and wait, CPU each", "ns", 0},
                 {"wake_cpu", "wake, end and join, CPU each", "ns", 0}},
                {}};
    }
    std::vector<bench::Cell> row_of(const OfThreads &row, double count, const Of &of) const override {
        return {row.name, count, of("bytes"), of("begin_cpu"), of("wake_cpu")};
    }
};

// --- over the number of workers ---------------------------------------------------------------------------

const std::vector<double> kWorkers = {1, 2, 4, 8, 16, 32, 64};
const std::vector<std::pair<const char *, const char *>> kOverWorkers = {
    {"batched", "spawn + join, 1000 at a time"},
    {"fib", "fib(30), a spawn"},
    {"skynet", "skynet, a leaf"},
    {"yield4", "yield, four threads"},
    {"roundtrip", "mutex + condition, there and back"}};

class OverWorkers : public Part {
  public:
    explicit OverWorkers(const Size &size) : size_(size) {}
    void add(Trials *trials) override {
        for (const auto &[row, name] : kOverWorkers)
            for (const double workers : up_to(size_.workers, kWorkers))
                cells_.push_back({name, workers,
                                  trials->add({bench::beside("peers/thrum"), row, bench::word_of(workers),
                                               bench::word_of(size_.length)})});
    }
    void show(const Trials &trials, bench::Report *report) const override {
        bench::Table table{
            "workers",
            "So many workers, of which no more run at a time than there are CPUs, ns an operation",
            {{"operation", "operation", "", 0},
             {"workers", "workers", "", 0},
             {"cpu", "CPU", "ns", 1},
             {"wall", "wall", "ns", 1}},
            {}};
        for (const Cell &cell : cells_)
            table.rows.push_back(
                {cell.name, cell.workers, trials.of(cell.trial, "ns_cpu"), trials.of(cell.trial, "ns_wall")});
        report->add(table);
    }

  private:
    struct Cell {
        const char *name;
        double workers;
        std::size_t trial;
    };
    const Size &size_;
    std::vector<Cell> cells_;
};

// --- over the length of tasks -----------------------------------------------------------------------------

const std::vector<double> kLengths = {100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6}; // ns
const std::vector<double> kFewWorkers = {1, 2};

struct Way {
    const char *row, *name;
    bool ours_only;
};
const std::vector<Way> kWays = {{"grain-one", "one creator", false},
                                {"grain-split", "halves", false},
                                {"grain-many", "thrum_spawn_many", true}};

struct Runtime {
    const char *program, *name, *needs;
};
const std::vector<Runtime> kRuntimes = {
    {"thrum", "libthrum", ""}, {"libgomp", "libgomp", "gcc's OpenMP"}, {"tbb", "oneTBB", "libtbb-dev"}};

class OverLengths : public Part {
  public:
    explicit OverLengths(const Size &size) : size_(size) {}
    void add(Trials *trials) override {
        for (const Runtime &runtime : kRuntimes) {
            const bool ours = &runtime == &kRuntimes[0];
            const std::string program = bench::beside(std::string("peers/") + runtime.program);
            if (!ours && !size_.with_peers)
                continue;
            if (access(program.c_str(), X_OK) != 0) {
                notes_.push_back(std::string(runtime.name) + ": left out, it is not built; it needs " +
                                 runtime.needs + ", and the target bench-peers.");
                continue;
            }
            for (const Way &way : kWays)
                if (ours || !way.ours_only)
                    add_way(runtime, way, program, ours, trials);
        }
    }
    void show(const Trials &trials, bench::Report *report) const override {
        bench::Table table{"grains",
                           "Tasks of so many ns: ideal / measured, of all workers' time",
                           {{"runtime", "runtime", "", 0},
                            {"way", "made by", "", 0},
                            {"length", "a task", "ns", 0},
                            {"workers", "workers", "", 0},
                            {"tasks", "tasks", "", 0},
                            {"ideal", "alone, CPU each", "ns", 1},
                            {"cpu", "CPU each", "ns", 1},
                            {"wall", "wall each", "ns", 1},
                            {"efficiency", "efficiency", "1", 3}},
                           {}};
        for (const Cell &cell : cells_) {
            const Of of = trials.numbers_of(cell.trial);
            if (trials.why(cell.trial).empty())
                table.rows.push_back({cell.runtime->name, cell.way->name, cell.length, cell.workers,
                                      of("tasks").median, of("ideal").median, of("cpu").median, of("wall"),
                                      of("efficiency")});
        }
        report->add(table);
        for (const std::string &note : notes_)
            report->note(note);
    }

  private:
    struct Cell {
        const Runtime *runtime;
        const Way *way;
        double length, workers;
        std::size_t trial;
    };
    void add_way(const Runtime &runtime, const Way &way, const std::string &program, bool ours,
                 Trials *trials) {
        for (const double length : up_to(size_.longest, kLengths))
            for (const double workers : kFewWorkers)
                cells_.push_back({&runtime, &way, length, workers,
                                  trials->add({program, way.row + bench::word_of(length),
                                               bench::word_of(workers), bench::word_of(size_.length)},
                                              ours)});
    }

    const Size &size_;
    std::vector<Cell> cells_;
    std::vector<std::string> notes_;
};

// --- what the scheduler's parts cost ----------------------------------------------------------------------

// docs/studies/growth.md and simulation.py say what each does there.
const std::vector<std::array<const char *, 3>> kCosts = {{
    {"spawn_ns", "an undisturbed spawn, with the child's run and end", "ns"},
    {"join_ns", "a join of one that has ended", "ns"},
    {"join_far_ns", "the same of one that has ended on another worker, among many", "ns"},
    {"switch_ns", "going from one thread to another", "ns"},
    {"deque_ns", "a push and a pop", "ns"},
    {"fence_ns", "what a pop costs more once a thief has come", "ns"},
    {"look_ns", "to look at one worker that has nothing", "ns"},
    {"relax_ns", "the breath that a searcher takes after a round", "ns"},
    {"line_ns", "a cache line from one CPU to another", "ns"},
    {"steal_ns", "a theft in itself", "ns"},
    {"membarrier_ns", "the first theft's membarrier, for the thief", "ns"},
    {"interrupt_ns", "the same, for each interrupted thread", "ns"},
    {"handoff_ns", "from a push until it runs on another that searches", "ns"},
    {"turn_ns", "from a thread's end until its worker runs one that it has stolen", "ns"},
    {"meet_ns", "from a thread's end until its joiner resumes, which has waited elsewhere", "ns"},
    {"wake_ns", "from a push until it runs on another that is parked", "ns"},
    {"wake_call_ns", "what it takes the pusher to wake that one", "ns"},
    {"fair_every", "picks until a worker looks at the clock (FAIR_EVERY)", "1"},
    {"deque_calm", "pops without a theft until the fence goes (DEQUE_CALM)", "1"},
}};

class Costs : public Part {
  public:
    explicit Costs(const Size &size) : size_(size) {}
    void add(Trials *trials) override {
        trial_ = trials->add({bench::beside("programs/growth/costs"), bench::word_of(size_.length)});
    }
    void show(const Trials &trials, bench::Report *report) const override {
        bench::Table table{"costs",
                           "What the parts of the scheduler cost",
                           {{"cost", "", "", 0},
                            {"value", "value", "see unit", 1},
                            {"unit", "", "unit", 0},
                            {"what", "what it is", "", 0}},
                           {}};
        if (!trials.why(trial_).empty()) {
            report->note("What the parts of the scheduler cost: left out, " + trials.why(trial_) + ".");
            return;
        }
        for (const auto &[name, what, unit] : kCosts)
            table.rows.push_back({name, trials.of(trial_, name), unit, what});
        report->add(table);
    }

  private:
    const Size &size_;
    std::size_t trial_ = 0;
};

void body(const bench::Options &options) {
    const Size size(options);
    Trials trials(options, size);
    Switching switching(size);
    Waiting waiting(size);
    OverWorkers workers(size);
    OverLengths lengths(size);
    Costs costs(size);
    const std::vector<Part *> parts = {&switching, &waiting, &workers, &lengths, &costs};
    for (Part *part : parts)
        part->add(&trials);
    bench::Report report(options);
    trials.run();
    for (const Part *part : parts)
        part->show(trials, &report);
    report.note("Efficiency: what a task takes by itself, called without a runtime, of the workers' time: "
                "wall time × "
                "workers, with one worker CPU time, which other work on the machine changes less.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return bench::main_of(
        argc, argv,
        {"growth",
         "How the cost of libthrum's operations grows with threads, workers and short tasks; with --peers "
         "beside libgomp and oneTBB.",
         {{"--rounds", "Measurements of each row", 1, 3, 6, 1, 1000},
          {"--length", "How long each is, 1: some 50 to 200 ms", 0.02, 1, 1, 0.01, 100},
          {"--threads", "Threads at a time, up to so many", 100, 100000, 1000000, 1, 1000000},
          {"--workers", "Workers, up to so many", 2, 64, 64, 1, 64},
          {"--longest", "Tasks, up to so many ns", 500, 1000000, 1000000, 100, 1000000}},
         {},
         true,
         {{"--peers", "Tasks also with libgomp and oneTBB, if they are built (bench-peers)"}},
         "libthrum.so"},
        body);
}
