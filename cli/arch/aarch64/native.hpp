// SPDX-License-Identifier: Apache-2.0
//
// What the command knows of the CPU that it is built for.
#pragma once

#include <asm/perf_regs.h>
#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace thrum::native {

constexpr std::uint16_t kMachine = EM_AARCH64;

// Code::Set of stat/instructions.hpp.
constexpr bool kIsX86_64 = false;

// DWARF's numbers of registers.
constexpr unsigned kFramePointer = 29, kStackPointer = 31;

// What a sample of perf has of the registers: the general ones and the program counter, ascending as the kernel writes them.
constexpr std::uint64_t kPerfRegisters = 0x1ffffffffULL;
constexpr std::size_t kPerfCount = 33;
constexpr std::size_t kPerfFrame = PERF_REG_ARM64_X29, kPerfStack = PERF_REG_ARM64_SP,
                      kPerfProgram = PERF_REG_ARM64_PC;
// The first argument of a system call, and of a function.
constexpr std::size_t kPerfArgument = PERF_REG_ARM64_X0;

// Of the signal by which stat/timer.c samples; see stat/arch/<cpu>/interrupted.c.
constexpr const char *kTimerSideEffect =
    " On this architecture it can interrupt calls that wait for events or time, such as poll, with EINTR.";

} // namespace thrum::native
