// SPDX-License-Identifier: Apache-2.0
//
// What the command knows of the CPU that it is built for.
#pragma once

#include <asm/perf_regs.h>
#include <elf.h>

#include <cstdint>

namespace thrum::native {

constexpr std::uint16_t kMachine = EM_X86_64;

// Code::Set of stat/instructions.hpp.
constexpr bool kIsX86_64 = true;

// DWARF's numbers of registers.
constexpr unsigned kFramePointer = 6, kStackPointer = 7;

// What a sample of perf has of the registers. Ascending, as the kernel writes them: frame pointer, stack pointer, program
// counter.
constexpr std::uint64_t kPerfRegisters =
    1ULL << PERF_REG_X86_BP | 1ULL << PERF_REG_X86_SP | 1ULL << PERF_REG_X86_IP;

// Of the signal by which stat/timer.c samples; see stat/arch/<cpu>/interrupted.c.
constexpr const char *kTimerSideEffect = "";

} // namespace thrum::native
