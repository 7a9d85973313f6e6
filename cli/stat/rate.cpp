// SPDX-License-Identifier: Apache-2.0
#include "stat/rate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "tools/failure.hpp"

namespace thrum::stat {

struct Rate::Compiled {
    std::regex regex;
};

Rate::Rate(const std::string &regex) : regex_(regex) {
    try {
        compiled_ = std::make_unique<Compiled>(Compiled{std::regex(regex)});
    } catch (const std::regex_error &) {
        throw Failure(kUsage, "--rate takes a regular expression whose first group is a number, such as "
                              "'events per second: *([0-9.]+)', not '" +
                                  regex + "'");
    }
}

Rate::~Rate() = default;

// Line by line: std::regex takes stack for each character that it matches.
std::optional<double> Rate::find(const std::string &output) const {
    constexpr std::size_t kLongestLine = 4096;
    std::optional<double> found;
    for (std::size_t begin = 0; begin < output.size();) {
        const std::size_t end = std::min(output.find('\n', begin), output.size());
        const std::string line = output.substr(begin, std::min(end - begin, kLongestLine));
        begin = end + 1;
        std::smatch match;
        if (!std::regex_search(line, match, compiled_->regex))
            continue;
        std::string text = match[match.size() > 1 ? 1 : 0];
        text.erase(std::remove(text.begin(), text.end(), ','), text.end());
        const std::size_t digit = text.find_first_of("0123456789.");
        const double number = digit == std::string::npos ? 0 : std::strtod(text.c_str() + digit, nullptr);
        if (number > 0 && std::isfinite(number))
            found = number;
    }
    return found;
}

void scale_to_work(Measured &run, double rate, double work) {
    if (!(run.wall > 0 && rate > 0))
        return;
    const double factor = work / (rate * run.wall);
    for (double *time : {&run.wall, &run.user, &run.system, &run.own_cpu, &run.children_cpu, &run.run_delay})
        *time *= factor;
    for (std::uint64_t *count : {&run.voluntary, &run.involuntary, &run.faults_major})
        *count = static_cast<std::uint64_t>(std::llround(static_cast<double>(*count) * factor));
}

} // namespace thrum::stat
