// SPDX-License-Identifier: Apache-2.0
//
// What a benchmark prints, and the statistics in it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "common.hpp"
#include "distance.hpp"
#include "tools/json.hpp"
#include "tools/machine.hpp"
#include "tools/progress.hpp"
#include "tools/statistics.hpp"
#include "tools/table.hpp"
#include "tools/text.hpp"

namespace bench {

using thrum::Json;
using thrum::json_number;

Estimate estimate(std::vector<double> values, std::size_t cases) {
    if (values.empty())
        throw Failure("nothing was measured");
    const thrum::Interval interval = thrum::median_interval(std::move(values), cases);
    return {interval.median, interval.low, interval.high, thrum::has_median_interval(interval.count, cases)};
}

double quantile(std::vector<double> *values, double share) {
    if (values->empty())
        throw Failure("nothing was measured");
    std::sort(values->begin(), values->end());
    return thrum::nearest_rank(*values, share);
}

namespace {

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

std::string name_of_processor(const thrum::Machine &machine) {
    return machine.processor.empty() ? "unknown CPU" : machine.processor;
}

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
        return thrum::fixed(*number, column.decimals);
    const auto &value = std::get<Estimate>(cell);
    return thrum::fixed(value.median, column.decimals) + " [" + thrum::fixed(value.low, column.decimals) +
           ", " + thrum::fixed(value.high, column.decimals) + "]";
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
    std::cout << '\n' << table.title << "\n\n" << thrum::in_columns(lines);
}

void add_cell(Json *row, const Cell &cell, const std::string &key) {
    if (const auto *text = std::get_if<std::string>(&cell)) {
        (*row)[key] = *text;
    } else if (const auto *number = std::get_if<double>(&cell)) {
        (*row)[key] = json_number(*number);
    } else {
        const auto &value = std::get<Estimate>(cell);
        (*row)[key] = json_number(value.median);
        (*row)[key + "_low"] = json_number(value.low);
        (*row)[key + "_high"] = json_number(value.high);
    }
}

Json json_row(const Table &table, const std::vector<Cell> &cells) {
    Json row;
    for (std::size_t i = 0; i < cells.size(); i++)
        add_cell(&row, cells[i], table.columns[i].key);
    return row;
}

Json json_table(const Table &table) {
    Json units;
    for (const Column &column : table.columns)
        units[column.key] = column.unit;
    const auto row = [&table](const std::vector<Cell> &cells) { return json_row(table, cells); };
    return {{"title", table.title}, {"units", units}, {"rows", thrum::json_array(table.rows, row)}};
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
    const thrum::Machine machine = thrum::this_machine();
    std::cout << options_.name << '\n'
              << "machine: " << name_of_processor(machine) << ", "
              << thrum::counted(machine.processors, "core") << ", " << machine.kernel << ", " << machine.libc
              << '\n'
              << "load average before " << load_at_start_ << ", after " << load_average() << '\n'
              << "a cache line between two CPUs, there and back: " << thrum::fixed(distance_at_start_, 0)
              << " ns before, " << thrum::fixed(cpu_distance(), 0) << " after\n";
    if (!options_.library.empty())
        std::cout << "library: " << build_of(options_.library) << " build, " << options_.library << '\n';
    std::string settings;
    for (const auto &[name, value] : options_.settings)
        settings += (settings.empty() ? "" : ", ") + name + " " + thrum::json_compact(json_number(value));
    std::cout << "settings: " << settings << '\n';
    for (const Table &table : tables_)
        print_table(table);
    std::cout << (notes_.empty() ? "" : "\n");
    for (const std::string &note : notes_)
        std::cout << note << '\n';
}

void Report::print_json(std::ostream &out) const {
    const thrum::Machine machine = thrum::this_machine();
    Json all = {{"benchmark", options_.name},
                {"machine",
                 {{"cpu", name_of_processor(machine)},
                  {"cores", machine.processors},
                  {"kernel", machine.kernel},
                  {"libc", machine.libc},
                  {"load_before", load_at_start_},
                  {"load_after", load_average()},
                  {"line_ns_before", json_number(distance_at_start_)},
                  {"line_ns_after", json_number(cpu_distance())}}}};
    if (!options_.library.empty())
        all["library"] = {{"path", options_.library}, {"build", build_of(options_.library)}};
    Json &settings = all["settings"] = Json::object();
    for (const auto &[name, value] : options_.settings)
        settings[name] = json_number(value);
    Json &tables = all["tables"] = Json::object();
    for (const Table &table : tables_)
        tables[table.key] = json_table(table);
    all["notes"] = notes_;
    out << thrum::json_lines(all) << '\n';
}

void progress(const std::string &line) {
    static thrum::PassingLine passing;
    if (passing.is_shown())
        passing.show(thrum::cut(line, passing.room()));
}

} // namespace bench
