// SPDX-License-Identifier: Apache-2.0
//
// See pairs.hpp. Linked into every benchmark, used by three.
#include "pairs.hpp"

#include <unistd.h>

#include <sstream>

namespace bench {

std::string program_path(const std::string &name) {
    const std::string path = beside("programs/" + name);
    return access(path.c_str(), X_OK) == 0 ? path : "";
}

Measured run_program(const std::vector<std::string> &command, const Environment &environment) {
    const Ended ended = run(command, environment, true);
    Measured run{};
    std::istringstream line(ended.output);
    line >> run.checksum >> run.threads >> run.deferred >> run.wall_ms >> run.user_ms >> run.system_ms >>
        run.created >> run.reused;
    if (ended.status != 0 || !line)
        throw Failure(command[0] + " failed (wait status " + std::to_string(ended.status) + ")");
    run.process_wall_ms = ended.wall_us / 1e3;
    run.process_cpu_ms = ended.cpu_us / 1e3;
    return run;
}

namespace {

std::string joined(const std::vector<std::string> &words) {
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

void check(const Measured &run, bool with_library, const Subject &subject) {
    const std::string name = joined(subject.command) + (with_library ? " with" : " without") + " the library";
    if (run.checksum != subject.checksum)
        throw Failure(name + ": the result is " + run.checksum + ", not " + subject.checksum);
    if (with_library && run.created + run.reused == 0)
        throw Failure(name + ": the cache is off; see why with THRUM_CACHE_VERBOSE=1");
    if (with_library && subject.reuses && run.reused == 0)
        throw Failure(name + ": no thread was reused; see why with THRUM_CACHE_VERBOSE=1");
    if (!with_library && run.created + run.reused > 0)
        throw Failure(name + ": the library is there where it should not be");
}

} // namespace

std::vector<Pair> run_pairs(const Subject &subject, const std::string &library, unsigned rounds) {
    const Environment plain;
    Environment cached;
    cached.preload(library);
    std::vector<Pair> pairs(rounds);
    for (unsigned round = 0; round < rounds; round++) {
        progress(subject.label + ", pair " + std::to_string(round + 1) + " of " + std::to_string(rounds));
        for (unsigned turn = 0; turn < 2; turn++) {
            const bool with_library = (round + turn) % 2 != 0;
            Measured &run = with_library ? pairs[round].cached : pairs[round].plain;
            run = run_program(subject.command, with_library ? cached : plain);
            check(run, with_library, subject);
        }
    }
    return pairs;
}

Estimate over(const std::vector<Pair> &pairs, const std::function<double(const Pair &)> &value) {
    std::vector<double> values;
    values.reserve(pairs.size());
    for (const Pair &pair : pairs)
        values.push_back(value(pair));
    return estimate(values);
}

Estimate of_plain(const std::vector<Pair> &pairs, double (*value)(const Measured &)) {
    return over(pairs, [&](const Pair &pair) { return value(pair.plain); });
}

Estimate of_cached(const std::vector<Pair> &pairs, double (*value)(const Measured &)) {
    return over(pairs, [&](const Pair &pair) { return value(pair.cached); });
}

Estimate ratio(const std::vector<Pair> &pairs, double (*value)(const Measured &)) {
    return over(pairs, [&](const Pair &pair) { return value(pair.cached) / value(pair.plain); });
}

} // namespace bench
