// SPDX-License-Identifier: Apache-2.0
//
// The case study's server and client, which it needs for its user-level sleep: requests over TCP, each of which sleeps on
// the server as a thread of its own. The pair is examples/server.c and client.c; beside it the same client with a server
// in Go. All requests are on their way at once, over one connection.
#include <unistd.h>

#include <cstdio>

#include "experiment.hpp"
#include "tools/text.hpp"

namespace {

using namespace casestudy;

// A server and its client.
struct Pair {
    bool go;
    unsigned requests, milliseconds;
    bench::Cell seed;   // seconds, what the case study has there
    States states = {}; // over all rounds
};

struct Result {
    double seconds, per_second, latency, latency_99, cpu_us;
};

std::string go_server() {
    return bench::beside("casestudy/go");
}

int port_of(const std::string &line) {
    int port = 0;
    if (std::sscanf(line.c_str(), "listening on port %d", &port) != 1)
        throw bench::Failure("the server says '" + line + "'");
    return port;
}

Result measure(const std::string &library, Pair *pair) {
    using Command = std::vector<std::string>;
    bench::Environment environment;
    environment.preload(library);
    Child server(pair->go ? Command{go_server(), "serve"}
                          : Command{bench::beside("../examples/server"), "0", "1"},
                 pair->go ? bench::Environment() : environment);
    const int port = port_of(server.line());
    Child client({bench::beside("../examples/client"), std::to_string(port), std::to_string(pair->requests),
                  std::to_string(pair->milliseconds)},
                 environment);
    pair->states.watch(server.pid(), client);
    const std::string result = client.line();
    double seconds = 0, rate = 0, latency = 0, latency_99 = 0;
    if (std::sscanf(result.c_str(),
                    "%*u requests of %*u ms in %lf s, %lf a second; latency %lf ms, 99th percentile %lf",
                    &seconds, &rate, &latency, &latency_99) != 4)
        throw bench::Failure("the client says '" + result + "'");
    client.wait();
    server.wait();
    return {seconds, rate, latency, latency_99, server.cpu_seconds() * 1e6 / pair->requests};
}

std::vector<bench::Cell> row(const Pair &pair, const bench::Rounds<Result> &rounds, std::size_t which) {
    const auto median = [&](double Result::*what) { return rounds.of(which, what).median; };
    std::vector<bench::Cell> cells = {pair.go ? kGo : kUlts,
                                      static_cast<double>(pair.requests),
                                      static_cast<double>(pair.milliseconds),
                                      cell(rounds.values(which, &Result::seconds)),
                                      pair.seed,
                                      median(&Result::per_second),
                                      cell(rounds.values(which, &Result::latency)),
                                      median(&Result::latency_99),
                                      median(&Result::cpu_us)};
    add_states(pair.states, &cells);
    return cells;
}

std::vector<Pair> pairs(const bench::Options &options) {
    const auto sleep = static_cast<unsigned>(options.numbers[0]);
    const auto many = static_cast<unsigned>(options.numbers[1]);
    std::vector<Pair> list;
    const auto add = [&](unsigned requests, unsigned milliseconds, double seed) {
        const bool has_figure = seed > 0 && milliseconds == 2000;
        list.push_back({false, requests, milliseconds, has_figure ? bench::Cell(seed) : bench::Cell("")});
        if (access(go_server().c_str(), X_OK) == 0)
            list.push_back({true, requests, milliseconds, ""});
    };
    add(128, sleep, 2.0016);
    add(256, sleep, 2.0021);
    add(1024, sleep, 2.0080);
    add(many, 10, 0);
    return list;
}

void body(const bench::Options &options) {
    bench::Report report(options);
    std::vector<Pair> list = pairs(options);
    bench::Turns turns{options.numbers[2], {}};
    for (const Pair &pair : list)
        turns.variants.push_back(thrum::counted(pair.requests, "request") + (pair.go ? ", Go" : ""));
    const bench::Rounds<Result> rounds(
        turns, [&](std::size_t which, std::size_t) { return measure(options.library, &list[which]); });
    bench::Table table{"requests",
                       "Requests that sleep on the server, all at once over one connection",
                       {{"crew", "server's threads", "", 0},
                        {"size", "requests", "number", 0},
                        {"milliseconds", "sleep", "ms", 0},
                        {"seconds", "time", "s", 4},
                        {"seed_seconds", "case study", "s", 4},
                        {"per_second", "requests", "1/s", 0},
                        {"latency_ms", "latency, median", "ms", 2},
                        {"latency_99_ms", "99th percentile", "ms", 2},
                        {"cpu_us", "server's CPU, a request", "µs", 1}},
                       {}};
    table.columns.insert(table.columns.end(), kStateColumns.begin(), kStateColumns.end());
    for (std::size_t i = 0; i < list.size(); i++)
        table.rows.push_back(row(list[i], rounds, i));
    report.add(table);
    if (access(go_server().c_str(), X_OK) != 0)
        report.note(kGoMissing);
    report.note("The client is the same for both, and shares the CPUs with the server.");
    report.print();
}

} // namespace

int main(int argc, char **argv) {
    return casestudy::main_of(argc, argv, "requests",
                              "Requests that sleep on a server: how many a second, and how long one takes; "
                              "examples/server.c and client.c.",
                              {{"--sleep", "How long each sleeps on the server, ms", 20, 200, 2000, 0, 60000},
                               {"--many", "Requests of 10 ms, for the rate", 500, 20000, 20000, 1, 1000000},
                               {"--rounds", "Measurements of each row", 1, 5, 5, 1, 1000}},
                              {}, body);
}
