// SPDX-License-Identifier: Apache-2.0
//
// What the command knows of the CPU that it is built for.
#pragma once

#include <asm/perf_regs.h>
#include <elf.h>

#include <cstddef>
#include <cstdint>

namespace thrum::native {

constexpr std::uint16_t kMachine = EM_X86_64;

// Code::Set of stat/instructions.hpp.
constexpr bool kIsX86_64 = true;

// DWARF's numbers of registers.
constexpr unsigned kFramePointer = 6, kStackPointer = 7;

// What a sample of perf has of the registers: the general ones and the program counter, ascending as the kernel writes them.
constexpr std::uint64_t kPerfRegisters = 0x1ffULL | 0xffULL << PERF_REG_X86_R8;
constexpr std::size_t kPerfCount = 17;
constexpr std::size_t kPerfFrame = PERF_REG_X86_BP, kPerfStack = PERF_REG_X86_SP,
                      kPerfProgram = PERF_REG_X86_IP;
// The first argument of a system call, and of a function.
constexpr std::size_t kPerfArgument = PERF_REG_X86_DI;

// Of the signal by which stat/timer.c samples; see stat/arch/<cpu>/interrupted.c.
constexpr const char *kTimerSideEffect = "";

} // namespace thrum::native
