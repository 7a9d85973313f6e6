// SPDX-License-Identifier: Apache-2.0
//
// See rounds.hpp.
#include "rounds.hpp"

#include <sstream>

#include "tools/text.hpp"

namespace bench {

void take_turns(const Turns &turns, const std::function<bool(std::size_t, std::size_t)> &measure) {
    const std::size_t count = turns.variants.size(), row = turns.row != 0 ? turns.row : count;
    std::vector<bool> is_out(count, false);
    for (std::size_t round = 0; round < static_cast<std::size_t>(turns.rounds); round++)
        for (std::size_t turn = 0; turn < count; turn++) {
            const std::size_t first = turn - turn % row, variant = first + (turn + round) % row;
            if (is_out[variant])
                continue;
            progress("round " + std::to_string(round + 1) + " of " + thrum::fixed(turns.rounds, 0) + ", " +
                     std::to_string(turn + 1) + " of " + std::to_string(count) + ": " +
                     turns.variants[variant]);
            is_out[variant] = !measure(variant, round);
        }
    progress("");
}

Numbers numbers_in(const std::string &text, std::size_t count) {
    std::istringstream words(text);
    Numbers numbers(count);
    for (double &number : numbers)
        words >> number;
    if (!words)
        throw Failure("not " + thrum::counted(static_cast<double>(count), "number") + ": '" + text + "'");
    return numbers;
}

} // namespace bench
