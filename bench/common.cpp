// SPDX-License-Identifier: Apache-2.0
//
// See common.hpp. Linked into every benchmark.
#include "common.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>

#include "distance.hpp"
#include "thrum/cache.h"

extern char **environ;

namespace bench {

namespace {

double seconds_of(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string first_line(const char *path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string whole_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string formatted(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

} // namespace

// --- options -----------------------------------------------------------------------------------------------

namespace {

// CLI11's words for what people mistype most, made one clear line.
std::string describe(const CLI::App &app, const CLI::ParseError &error) {
    const std::vector<std::string> extra = app.remaining(true);
    if (dynamic_cast<const CLI::ExtrasError *>(&error) != nullptr && !extra.empty())
        return (extra.front()[0] == '-' ? "unknown option '" : "unexpected argument '") + extra.front() + "'";
    const std::string text = error.what();
    if (const std::size_t at = text.find(": 1 required "); at != std::string::npos)
        return text.substr(0, at) + " needs a value";
    if (const std::size_t at = text.find(" was given a disallowed flag override"); at != std::string::npos)
        return "--" + text.substr(0, at) + " takes no value";
    return text;
}

std::string plain(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

double number_of(const Number &number, const std::string &text) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= number.least && value <= number.most))
        throw Failure(std::string(number.option) + " takes a number from " + plain(number.least) + " to " +
                          plain(number.most) + ", not '" + text + "'",
                      Failure::kUsage);
    return value;
}

std::string absolute(const std::string &path) {
    char full[PATH_MAX];
    if (realpath(path.c_str(), full) == nullptr)
        throw Failure(path + ": " + std::strerror(errno) + "; build it first, or say --library PATH");
    if (std::strpbrk(full, " :") != nullptr)
        throw Failure(std::string(full) + ": the loader takes no path with a space or a colon in LD_PRELOAD");
    return full;
}

std::string sizes_of(const Number &number) {
    return std::string(number.help) + " (" + plain(number.usual) + "; quick " + plain(number.quick) +
           ", full " + plain(number.full) + ")";
}

Options read_options(int argc, char **argv, const Description &description) {
    CLI::App app(description.about, description.name);
    Options options;
    bool full = false;
    std::vector<std::string> given(description.numbers.size());
    options.name = description.name;
    app.add_flag("--json", options.json, "Print JSON instead of tables")->disable_flag_override();
    app.add_option("--save", options.save, "Write JSON into a file, besides what is printed")
        ->option_text("FILE");
    CLI::Option *little =
        app.add_flag("--quick", options.quick, "A taste, to see that it works; not for publishing");
    little->disable_flag_override();
    app.add_flag("--full", full, "Longer than usual")->excludes(little)->disable_flag_override();
    if (description.measures_library) {
        options.library = beside(std::string("../lib/") + description.library);
        app.add_option("--library", options.library,
                       std::string("The ") + description.library + " to measure (of the same build)")
            ->option_text("PATH");
    }
    std::vector<CLI::Option *> flags;
    for (const Flag &flag : description.flags)
        flags.push_back(app.add_flag(flag.option, flag.help)->disable_flag_override());
    for (std::size_t i = 0; i < given.size(); i++)
        app.add_option(description.numbers[i].option, given[i], sizes_of(description.numbers[i]))
            ->option_text("N")
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    options.texts.reserve(description.texts.size());
    for (const Text &text : description.texts) {
        options.texts.push_back(text.value);
        app.add_option(text.option, options.texts.back(), text.help)->option_text(text.placeholder);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp &) {
        std::cout << app.help();
        std::exit(0);
    } catch (const CLI::ParseError &error) {
        throw Failure(describe(app, error) + "; see " + description.name + " --help", Failure::kUsage);
    }
    for (std::size_t i = 0; i < given.size(); i++) {
        const Number &number = description.numbers[i];
        const double usual = options.quick ? number.quick : full ? number.full : number.usual;
        options.numbers.push_back(given[i].empty() ? usual : number_of(number, given[i]));
        options.settings.emplace_back(number.option + 2, options.numbers.back());
    }
    for (const CLI::Option *flag : flags)
        options.flags.push_back(flag->count() > 0);
    if (description.measures_library)
        options.library = absolute(options.library);
    if (!options.save.empty() && !std::ofstream(options.save)) // now, and not when all has been measured
        throw Failure(options.save + ": " + std::strerror(errno));
    return options;
}

} // namespace

int main_of(int argc, char **argv, const Description &description, const Body &body, const Work &work) {
    try {
        if (work != nullptr && argc > 1 && std::strcmp(argv[1], "--work") == 0)
            work(std::vector<std::string>(argv + 2, argv + argc));
        else
            body(read_options(argc, argv, description));
        std::cout.flush();
        if (!std::cout)
            throw Failure("cannot write to standard output");
        return 0;
    } catch (const Failure &failure) {
        std::fprintf(stderr, "%s: %s\n", description.name, failure.what());
        return failure.code();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: %s\n", description.name, error.what());
        return 1;
    }
}

// --- processes ---------------------------------------------------------------------------------------------

Environment::Environment() {
    for (char **variable = environ; *variable != nullptr; variable++)
        if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0 && std::strncmp(*variable, "THRUM_", 6) != 0)
            variables_.emplace_back(*variable);
}

Environment &Environment::set(const std::string &name, const std::string &value) {
    variables_.push_back(name + "=" + value);
    return *this;
}

std::vector<char *> pointers(const std::vector<std::string> &words) {
    std::vector<char *> list;
    for (const std::string &word : words)
        list.push_back(const_cast<char *>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

namespace {

std::string read_to_end(int descriptor) {
    std::string text;
    char part[4096];
    ssize_t length;
    while ((length = read(descriptor, part, sizeof part)) > 0 || (length < 0 && errno == EINTR))
        text.append(part, length > 0 ? static_cast<std::size_t>(length) : 0);
    return text;
}

double microseconds(const timeval &time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
}

// posix_spawn's list of what the child does with its standard output; freed with the object.
class OutputTo {
  public:
    explicit OutputTo(int pipe_end) {
        posix_spawn_file_actions_init(&actions_);
        if (pipe_end >= 0)
            posix_spawn_file_actions_adddup2(&actions_, pipe_end, STDOUT_FILENO);
        else
            posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    }
    ~OutputTo() { posix_spawn_file_actions_destroy(&actions_); }
    OutputTo(const OutputTo &) = delete;
    OutputTo &operator=(const OutputTo &) = delete;
    const posix_spawn_file_actions_t *actions() const { return &actions_; }

  private:
    posix_spawn_file_actions_t actions_;
};

} // namespace

Ended run(const std::vector<std::string> &command, const Environment &environment, bool read_output) {
    int ends[2] = {-1, -1};
    if (read_output && pipe2(ends, O_CLOEXEC) != 0)
        throw Failure(std::string("cannot create a pipe: ") + std::strerror(errno));
    const OutputTo output(ends[1]);
    const std::vector<char *> words = pointers(command), variables = pointers(environment.variables());
    Ended ended{};
    pid_t child = 0;
    rusage usage{};

    const double start = seconds_of(CLOCK_MONOTONIC);
    const int error =
        posix_spawn(&child, words[0], output.actions(), nullptr, words.data(), variables.data());
    if (read_output)
        close(ends[1]);
    if (error == 0 && read_output)
        ended.output = read_to_end(ends[0]);
    while (error == 0 && wait4(child, &ended.status, 0, &usage) < 0 && errno == EINTR) {
    }
    ended.wall_us = (seconds_of(CLOCK_MONOTONIC) - start) * 1e6;

    if (read_output)
        close(ends[0]);
    if (error != 0)
        throw Failure("cannot start " + command[0] + ": " + std::strerror(error));
    ended.cpu_us = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
    return ended;
}

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof path))
        throw Failure("cannot find out where this program is");
    return std::string(path, static_cast<std::size_t>(length));
}

std::string beside(const std::string &relative) {
    const std::string own = own_path();
    return own.substr(0, own.rfind('/') + 1) + relative;
}

std::string on_path(const std::string &program) {
    const char *path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string candidate = folder + "/" + program;
        if (!folder.empty() && access(candidate.c_str(), X_OK) == 0)
            return candidate;
    }
    return "";
}

// --- measuring create and join -----------------------------------------------------------------------------

Sample measure(const std::vector<std::string> &words, const Environment &environment, bool expect_reuse) {
    std::vector<std::string> command = {own_path(), "--work"};
    command.insert(command.end(), words.begin(), words.end());
    const Ended ended = run(command, environment, true);
    Sample sample{};
    if (ended.status != 0 ||
        std::sscanf(ended.output.c_str(), "%lf %lf %lf %lf %lf %lf %lf %lf %lf", &sample.operations,
                    &sample.wall_ns, &sample.cpu_ns, &sample.system_ns, &sample.created, &sample.reused,
                    &sample.idle, &sample.resident_kb, &sample.switches) != 9 ||
        sample.operations < 1)
        throw Failure("a measuring process failed (wait status " + std::to_string(ended.status) + ")");
    if (expect_reuse != (sample.reused > 0))
        throw Failure(expect_reuse ? "the library has not reused a thread; see why with THRUM_CACHE_VERBOSE=1"
                                   : "a thread was reused where none should have been");
    return sample;
}

namespace {

// The kernel's share of this process's CPU time, 0 to 1, and its context switches. From getrusage, whose two times are
// counted in clock ticks and then scaled to the exact sum: good for measurements of many ticks, and no better than that.
struct Usage {
    double user, system, switches;
    Usage() {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        user = microseconds(usage.ru_utime);
        system = microseconds(usage.ru_stime);
        switches = static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw);
    }
    double kernel_share_until(const Usage &end) const {
        const double in_kernel = std::max(end.system - system, 0.0), outside = std::max(end.user - user, 0.0);
        return in_kernel + outside > 0 ? in_kernel / (in_kernel + outside) : 0;
    }
};

double resident_kb() {
    std::ifstream file("/proc/self/statm");
    double size = 0, pages = 0;
    if (!(file >> size >> pages))
        throw Failure("/proc/self/statm cannot be read");
    return pages * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

} // namespace

void report_work(const std::function<std::uint64_t()> &work, double settle) {
    const Usage begin;
    const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    const std::uint64_t operations = work();
    const double wall_ns = (seconds_of(CLOCK_MONOTONIC) - wall) * 1e9;
    const double cpu_ns = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e9;
    const Usage end;
    const auto *counters =
        static_cast<const struct thrum_cache_counters *>(dlsym(RTLD_DEFAULT, "thrum_cache_counters"));
    if (counters != nullptr && counters->version != THRUM_CACHE_COUNTERS_VERSION)
        throw Failure("the library's counters are of another version than this benchmark's");
    if (settle > 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(settle));
    const auto count = [counters](std::uint64_t thrum_cache_counters::*counter) {
        return static_cast<unsigned long long>(counters != nullptr ? counters->*counter : 0);
    };
    std::printf("%llu %.0f %.0f %.0f %llu %llu %llu %.0f %.0f\n", static_cast<unsigned long long>(operations),
                wall_ns, cpu_ns, cpu_ns * begin.kernel_share_until(end),
                count(&thrum_cache_counters::created), count(&thrum_cache_counters::reused),
                count(&thrum_cache_counters::idle), resident_kb(), end.switches - begin.switches);
}

namespace {

void *nothing(void *) {
    return nullptr;
}

} // namespace

std::uint64_t create_and_join(unsigned at_once, const std::function<bool(std::uint64_t)> &enough) {
    std::vector<pthread_t> threads(at_once);
    std::uint64_t count = 0;
    do {
        for (pthread_t &thread : threads)
            if (const int error = pthread_create(&thread, nullptr, nothing, nullptr); error != 0)
                throw Failure(std::string("pthread_create: ") + std::strerror(error));
        for (const pthread_t thread : threads)
            if (const int error = pthread_join(thread, nullptr); error != 0)
                throw Failure(std::string("pthread_join: ") + std::strerror(error));
        count += at_once;
    } while (!enough(count));
    return count;
}

std::function<bool(std::uint64_t)> after_seconds(double seconds) {
    const double end = seconds_of(CLOCK_MONOTONIC) + seconds;
    return [end](std::uint64_t) { return seconds_of(CLOCK_MONOTONIC) >= end; };
}

// --- statistics --------------------------------------------------------------------------------------------

namespace {

// How many values at either end may be cut off so that the rest still spans the median with 95 %, in all of so many cases
// together: the largest k with P(fewer than k of n fair coins show heads) <= 2.5 % of one of them.
std::size_t cut_off(std::size_t n, std::size_t cases) {
    double below = 0;
    for (std::size_t k = 0; k <= n / 2; k++) {
        const double heads = static_cast<double>(k), all = static_cast<double>(n);
        below += std::exp(std::lgamma(all + 1) - std::lgamma(heads + 1) - std::lgamma(all - heads + 1) -
                          all * std::log(2.0));
        if (below > 0.025 / static_cast<double>(cases))
            return k;
    }
    return n / 2;
}

} // namespace

Estimate estimate(std::vector<double> values, std::size_t cases) {
    if (values.empty())
        throw Failure("nothing was measured");
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    const std::size_t cut = std::max<std::size_t>(cut_off(n, cases), 1); // the cut-th value from either end
    return {(values[(n - 1) / 2] + values[n / 2]) / 2, values[cut - 1], values[n - cut]};
}

bool are_enough(std::size_t values, std::size_t cases) {
    return cut_off(values, cases) > 0;
}

// The rank is rounded up, but not where it is a whole number but for a rounding error.
double quantile(std::vector<double> *values, double share) {
    constexpr double kRounding = 1e-9;
    if (values->empty())
        throw Failure("nothing was measured");
    std::sort(values->begin(), values->end());
    const double rank = std::ceil(share * static_cast<double>(values->size()) - kRounding);
    return (*values)[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

// --- report ------------------------------------------------------------------------------------------------

namespace {

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(": ");
        if (colon != std::string::npos && line.compare(0, 10, "model name") == 0)
            return line.substr(colon + 2);
    }
    return "unknown CPU";
}

int cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set)
                                                       : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

struct Machine {
    std::string cpu = cpu_model(), kernel, libc = std::string("glibc ") + gnu_get_libc_version();
    int usable_cores = cores();

    Machine() {
        utsname name{};
        uname(&name);
        kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
    }
};

// The three averages, without the rest of the line.
std::string load_average() {
    std::istringstream line(first_line("/proc/loadavg"));
    std::string one, five, fifteen;
    line >> one >> five >> fifteen;
    return one + " " + five + " " + fifteen;
}

// Only a debug build has assertions, and their text.
const char *build_of(const std::string &library) {
    return whole_file(library).find("assertion broken: ") == std::string::npos ? "release" : "debug";
}

std::string text_of(const Cell &cell, const Column &column) {
    if (const auto *text = std::get_if<std::string>(&cell))
        return *text;
    if (const auto *number = std::get_if<double>(&cell))
        return formatted(*number, column.decimals);
    const auto &value = std::get<Estimate>(cell);
    return formatted(value.median, column.decimals) + " [" + formatted(value.low, column.decimals) + ", " +
           formatted(value.high, column.decimals) + "]";
}

// As many places as a terminal takes: UTF-8 continuation bytes take none.
std::size_t width_of(const std::string &text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    }));
}

void print_line(const std::vector<std::string> &cells, const std::vector<std::size_t> &widths) {
    for (std::size_t i = 0; i < cells.size(); i++) {
        const std::string padding(widths[i] - width_of(cells[i]), ' ');
        std::cout << (i == 0 ? cells[i] + padding : "  " + padding + cells[i]);
    }
    std::cout << '\n';
}

void print_table(const Table &table) {
    std::vector<std::vector<std::string>> lines(2);
    for (const Column &column : table.columns) {
        lines[0].emplace_back(column.heading);
        lines[1].emplace_back(column.unit);
    }
    for (const std::vector<Cell> &row : table.rows) {
        lines.emplace_back();
        for (std::size_t i = 0; i < row.size(); i++)
            lines.back().push_back(text_of(row[i], table.columns[i]));
    }
    std::vector<std::size_t> widths(table.columns.size());
    for (const std::vector<std::string> &line : lines)
        for (std::size_t i = 0; i < line.size(); i++)
            widths[i] = std::max(widths[i], width_of(line[i]));
    std::cout << '\n' << table.title << "\n\n";
    for (const std::vector<std::string> &line : lines)
        print_line(line, widths);
}

std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char byte : text) {
        char escaped[8];
        if (byte == '"' || byte == '\\')
            result += '\\';
        if (static_cast<unsigned char>(byte) >= 0x20) {
            result += byte;
            continue;
        }
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(byte));
        result += escaped;
    }
    return result + "\"";
}

std::string json_number(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::isfinite(value) ? text : "null";
}

// Several values of one kind, with commas in between.
template <class List, class Show>
std::string listed(const List &list, Show show) {
    std::string text;
    for (const auto &item : list)
        text += (text.empty() ? "" : ", ") + show(item);
    return text;
}

std::string json_cell(const Cell &cell, const Column &column) {
    const std::string key = column.key;
    if (const auto *text = std::get_if<std::string>(&cell))
        return quoted(key) + ": " + quoted(*text);
    if (const auto *number = std::get_if<double>(&cell))
        return quoted(key) + ": " + json_number(*number);
    const auto &value = std::get<Estimate>(cell);
    return quoted(key) + ": " + json_number(value.median) + ", " + quoted(key + "_low") + ": " +
           json_number(value.low) + ", " + quoted(key + "_high") + ": " + json_number(value.high);
}

std::string json_row(const Table &table, const std::vector<Cell> &row) {
    std::string text;
    for (std::size_t i = 0; i < row.size(); i++)
        text += (i == 0 ? "" : ", ") + json_cell(row[i], table.columns[i]);
    return "\n      {" + text + "}";
}

std::string json_table(const Table &table) {
    return "\n    " + quoted(table.key) + ": {\"title\": " + quoted(table.title) + ",\n     \"units\": {" +
           listed(table.columns, [](const Column &c) { return quoted(c.key) + ": " + quoted(c.unit); }) +
           "},\n     \"rows\": [" +
           listed(table.rows, [&](const std::vector<Cell> &row) { return json_row(table, row); }) + "]}";
}

} // namespace

Report::Report(const Options &options)
    : options_(options), load_at_start_(load_average()), distance_at_start_(cpu_distance()) {}

void Report::print() const {
    progress("");
    if (options_.json)
        print_json(std::cout);
    else
        print_text();
    if (options_.save.empty())
        return;
    std::ofstream file(options_.save);
    print_json(file);
    if (!file.flush())
        throw Failure(options_.save + ": " + std::strerror(errno));
}

void Report::print_text() const {
    const Machine machine;
    std::cout << options_.name << '\n'
              << "machine: " << machine.cpu << ", " << machine.usable_cores
              << (machine.usable_cores == 1 ? " core, " : " cores, ") << machine.kernel << ", "
              << machine.libc << '\n'
              << "load average before " << load_at_start_ << ", after " << load_average() << '\n'
              << "a cache line between two CPUs, there and back: " << formatted(distance_at_start_, 0)
              << " ns before, " << formatted(cpu_distance(), 0) << " after\n";
    if (!options_.library.empty())
        std::cout << "library: " << build_of(options_.library) << " build, " << options_.library << '\n';
    std::cout << "settings: " << listed(options_.settings, [](const auto &setting) {
        return setting.first + " " + json_number(setting.second);
    }) << '\n';
    for (const Table &table : tables_)
        print_table(table);
    std::cout << (notes_.empty() ? "" : "\n");
    for (const std::string &note : notes_)
        std::cout << note << '\n';
}

void Report::print_json(std::ostream &out) const {
    const Machine machine;
    out << "{\"benchmark\": " << quoted(options_.name) << ",\n \"machine\": {\"cpu\": " << quoted(machine.cpu)
        << ", \"cores\": " << machine.usable_cores << ", \"kernel\": " << quoted(machine.kernel)
        << ", \"libc\": " << quoted(machine.libc) << ",\n   \"load_before\": " << quoted(load_at_start_)
        << ", \"load_after\": " << quoted(load_average())
        << ",\n   \"line_ns_before\": " << json_number(distance_at_start_)
        << ", \"line_ns_after\": " << json_number(cpu_distance()) << "},\n";
    if (!options_.library.empty())
        out << " \"library\": {\"path\": " << quoted(options_.library)
            << ", \"build\": " << quoted(build_of(options_.library)) << "},\n";
    out << " \"settings\": {"
        << listed(
               options_.settings,
               [](const auto &setting) { return quoted(setting.first) + ": " + json_number(setting.second); })
        << "},\n \"tables\": {" << listed(tables_, json_table) << "},\n \"notes\": ["
        << listed(notes_, quoted) << "]}\n";
}

void progress(const std::string &line) {
    if (isatty(STDERR_FILENO))
        std::fprintf(stderr, "\r\033[K%s", line.c_str());
}

} // namespace bench
