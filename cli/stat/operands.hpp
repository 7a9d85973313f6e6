// SPDX-License-Identifier: Apache-2.0
//
// Which memory an instruction accesses, by the registers that it found: the address of what a thread was writing or reading
// when it was sampled. Decoded by Capstone (operands_capstone.cpp); where a build has it not, operands_absent.cpp stands in
// its place and nothing is known. Used by unwind.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace thrum::stat {

struct Operand {
    std::uint64_t address = 0;
    std::uint64_t instruction = 0; // that accesses it
    bool is_write = false;
    // Atomic ones: what adds to a counter, and what takes a lock or tries again.
    enum Kind : std::uint8_t { kPlain, kAdd, kSwap } kind = kPlain;
};

// Of the instruction at `pc`, or of the one before it: a store or an atomic operation holds the processor up, and what is
// interrupted then is the next one. `code`: the bytes from `begin`, where an instruction begins, up to and with that at `pc`.
// `registers`: as perf has them.
std::optional<Operand> find_operand(const std::vector<std::uint8_t> &code, std::uint64_t begin,
                                    std::uint64_t pc, const std::vector<std::uint64_t> &registers);

// Does this build know operands?
bool knows_operands();

} // namespace thrum::stat
