// SPDX-License-Identifier: Apache-2.0
//
// In the place of operands_capstone.cpp: no operand is known.
#include "stat/operands.hpp"

namespace thrum::stat {

std::optional<Operand> find_operand(const std::vector<std::uint8_t> &, std::uint64_t, std::uint64_t,
                                    const std::vector<std::uint64_t> &) {
    return std::nullopt;
}

bool knows_operands() {
    return false;
}

} // namespace thrum::stat
