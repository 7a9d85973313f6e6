// SPDX-License-Identifier: Apache-2.0
#include <capstone/capstone.h>

#include <string_view>

#include "native.hpp"
#include "stat/operands.hpp"

namespace thrum::stat {

namespace {

class Decoder {
  public:
    Decoder() {
        const bool is_open = native::kIsX86_64
                                 ? cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) == CS_ERR_OK
                                 : cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &handle_) == CS_ERR_OK;
        is_ready_ = is_open && cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK;
        instruction_ = is_ready_ ? cs_malloc(handle_) : nullptr;
    }
    ~Decoder() {
        if (instruction_ != nullptr)
            cs_free(instruction_, 1);
        if (is_ready_)
            cs_close(&handle_);
    }
    Decoder(const Decoder &) = delete;
    Decoder &operator=(const Decoder &) = delete;

    // The next instruction; moves on. nullptr: the bytes are none.
    const cs_insn *next(const std::uint8_t *&code, std::size_t &size, std::uint64_t &address) {
        return instruction_ != nullptr && cs_disasm_iter(handle_, &code, &size, &address, instruction_)
                   ? instruction_
                   : nullptr;
    }

  private:
    csh handle_ = 0;
    bool is_ready_ = false;
    cs_insn *instruction_ = nullptr;
};

using Registers = std::vector<std::uint64_t>;

// --- x86-64 -------------------------------------------------------------------------------------------

// A place in perf's order; nothing for other registers, as those of segments.
std::optional<std::size_t> place_of_x86(unsigned reg) {
    static constexpr unsigned kOrder[] = {X86_REG_RAX, X86_REG_RBX, X86_REG_RCX, X86_REG_RDX, X86_REG_RSI,
                                          X86_REG_RDI, X86_REG_RBP, X86_REG_RSP, X86_REG_RIP, X86_REG_R8,
                                          X86_REG_R9,  X86_REG_R10, X86_REG_R11, X86_REG_R12, X86_REG_R13,
                                          X86_REG_R14, X86_REG_R15};
    for (std::size_t i = 0; i < sizeof kOrder / sizeof *kOrder; i++)
        if (kOrder[i] == reg)
            return i;
    return std::nullopt;
}

Operand::Kind kind_of_x86(const cs_insn &one) {
    const bool is_locked = one.detail->x86.prefix[0] == X86_PREFIX_LOCK;
    switch (one.id) {
    case X86_INS_XCHG: return Operand::kSwap; // locked without a prefix
    case X86_INS_CMPXCHG:
    case X86_INS_CMPXCHG8B:
    case X86_INS_CMPXCHG16B:
    case X86_INS_BTS:
    case X86_INS_BTR: return is_locked ? Operand::kSwap : Operand::kPlain;
    default: return is_locked ? Operand::kAdd : Operand::kPlain;
    }
}

std::optional<Operand> operand_of_x86(const cs_insn &one, const Registers &registers) {
    const cs_x86 &detail = one.detail->x86;
    for (int i = 0; i < detail.op_count; i++) {
        const cs_x86_op &operand = detail.operands[i];
        const x86_op_mem &memory = operand.mem;
        if (operand.type != X86_OP_MEM || one.id == X86_INS_LEA || one.id == X86_INS_NOP ||
            memory.segment != X86_REG_INVALID)
            continue;
        Operand found;
        found.address = static_cast<std::uint64_t>(memory.disp);
        const auto base = place_of_x86(memory.base), index = place_of_x86(memory.index);
        if ((memory.base != X86_REG_INVALID && !base) || (memory.index != X86_REG_INVALID && !index))
            return std::nullopt;
        if (memory.base == X86_REG_RIP)
            found.address += one.address + one.size;
        else if (base)
            found.address += registers[*base];
        if (index)
            found.address += registers[*index] * static_cast<std::uint64_t>(memory.scale);
        found.kind = kind_of_x86(one);
        found.is_write = (operand.access & CS_AC_WRITE) != 0 || found.kind != Operand::kPlain;
        return found;
    }
    return std::nullopt;
}

// --- aarch64 ------------------------------------------------------------------------------------------

std::optional<std::size_t> place_of_arm(unsigned reg) {
    if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
        return reg - ARM64_REG_X0;
    switch (reg) {
    case ARM64_REG_X29: return 29;
    case ARM64_REG_X30: return 30;
    case ARM64_REG_SP: return 31;
    default: return std::nullopt;
    }
}

Operand::Kind kind_of_arm(const cs_insn &one) {
    const std::string_view name = one.mnemonic;
    const auto begins = [name](std::string_view with) { return name.substr(0, with.size()) == with; };
    if (begins("cas") || begins("swp"))
        return Operand::kSwap;
    const bool adds = begins("ldadd") || begins("ldset") || begins("ldclr") || begins("ldeor") ||
                      begins("stadd") || begins("ldxr") || begins("ldaxr") || begins("stxr") ||
                      begins("stlxr");
    return adds ? Operand::kAdd : Operand::kPlain;
}

std::optional<Operand> operand_of_arm(const cs_insn &one, const Registers &registers) {
    const cs_arm64 &detail = one.detail->arm64;
    for (int i = 0; i < detail.op_count; i++) {
        const cs_arm64_op &operand = detail.operands[i];
        const auto base = operand.type == ARM64_OP_MEM ? place_of_arm(operand.mem.base) : std::nullopt;
        if (!base)
            continue;
        Operand found;
        const auto index = place_of_arm(operand.mem.index);
        if (operand.mem.index != ARM64_REG_INVALID && !index)
            return std::nullopt;
        found.address =
            registers[*base] + static_cast<std::uint64_t>(std::int64_t{operand.mem.disp}) +
            (index ? registers[*index] << (operand.shift.type == ARM64_SFT_LSL ? operand.shift.value : 0)
                   : 0);
        found.kind = kind_of_arm(one);
        found.is_write = one.mnemonic[0] == 's' || found.kind != Operand::kPlain;
        return found;
    }
    return std::nullopt;
}

std::optional<Operand> operand_of(const cs_insn &one, const Registers &registers) {
    return native::kIsX86_64 ? operand_of_x86(one, registers) : operand_of_arm(one, registers);
}

} // namespace

std::optional<Operand> find_operand(const std::vector<std::uint8_t> &code, std::uint64_t begin,
                                    std::uint64_t pc, const std::vector<std::uint64_t> &registers) {
    static Decoder decoder;
    if (registers.size() < native::kPerfCount)
        return std::nullopt;
    const std::uint8_t *at = code.data();
    std::size_t size = code.size();
    std::uint64_t address = begin;
    std::optional<Operand> before;
    while (address <= pc) {
        const bool is_present = address == pc;
        const cs_insn *one = decoder.next(at, size, address);
        if (one == nullptr)
            return std::nullopt;
        std::optional<Operand> here = operand_of(*one, registers);
        if (here)
            here->instruction = one->address;
        if (is_present)
            return before && (before->kind != Operand::kPlain || (before->is_write && !here)) ? before : here;
        before = here;
    }
    return std::nullopt; // `pc` is in the middle of one: `begin` was no beginning
}

bool knows_operands() {
    return true;
}

} // namespace thrum::stat
