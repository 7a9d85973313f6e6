// SPDX-License-Identifier: Apache-2.0
//
// See pairs.hpp. Linked into every benchmark, used by three.
#include "pairs.hpp"

#include <unistd.h>

#include <sstream>

#include "tools/text.hpp"

namespace bench {

std::string program_path(const std::string &name) {
    const std::string path = beside("programs/" + name);
    return access(path.c_str(), X_OK) == 0 ? path : "";
}

Measured run_program(const std::vector<std::string> &command, const Environment &environment) {
    const Ended ended = run_well(command, environment);
    Measured run{};
    std::istringstream line(ended.output);
    line >> run.checksum >> run.threads >> run.deferred >> run.wall_ms >> run.user_ms >> run.system_ms >>
        run.created >> run.reused;
    if (!line)
        throw Failure(command[0] + " says '" + ended.output + "'");
    run.process_wall_ms = ended.wall_us / 1e3;
    run.process_cpu_ms = ended.cpu_us / 1e3;
    return run;
}

namespace {

void check(const Measured &run, bool with_library, const Subject &subject) {
    const std::string name =
        thrum::shell_line(subject.command) + (with_library ? " with" : " without") + " the library";
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

Rounds<Measured> run_pairs(const Subject &subject, const std::string &library, double rounds) {
    const std::array<Environment, 2> environments = without_and_with(library);
    return Rounds<Measured>({rounds, {subject.label + ", without", subject.label + ", with"}},
                            [&](std::size_t variant, std::size_t) {
                                Measured run = run_program(subject.command, environments[variant]);
                                check(run, variant == kCached, subject);
                                return run;
                            });
}

} // namespace bench
