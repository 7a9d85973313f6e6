// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: registers that a call need not preserve and a signal must: all vectors, in each width that the CPU has,
// masks, the x87 stack and control word, MXCSR. Each thread has values of its own there while it computes. How often it was
// hit with the widest is counted (preempt_pcs.h), and how wide they are is told.
#include <fenv.h>

#include <array>
#include <cstring>

#include "preempt_stress.h"

namespace {

#if defined(__x86_64__)

constexpr unsigned kVectors = 32;                   // of the widest; the others are half as many
constexpr unsigned kXmm = 16, kYmm = 32, kZmm = 64; // bytes

// As long as several slices sometimes: `turns` times nothing.
struct alignas(64) Vectors {
    std::array<std::array<std::uint64_t, 8>, kVectors> values;
};

// All vector registers hold `in` for so long, and are then written to `out`.
#define KEEP(registers_load, registers_store)                                                                \
    __asm__ volatile(registers_load "1: dec %[turns]\n jnz 1b\n" registers_store                             \
                     : [turns] "+r"(turns)                                                                   \
                     : [in] "r"(&in), [out] "r"(&out)                                                        \
                     : "memory", "cc" CLOBBERED)

#define EACH16(X)                                                                                            \
    X(0)                                                                                                     \
    X(1)                                                                                                     \
    X(2)                                                                                                     \
    X(3)                                                                                                     \
    X(4)                                                                                                     \
    X(5)                                                                                                     \
    X(6)                                                                                                     \
    X(7)                                                                                                     \
    X(8)                                                                                                     \
    X(9)                                                                                                     \
    X(10)                                                                                                    \
    X(11)                                                                                                    \
    X(12)                                                                                                    \
    X(13)                                                                                                    \
    X(14)                                                                                                    \
    X(15)
#define EACH16_MORE(X)                                                                                       \
    X(16)                                                                                                    \
    X(17)                                                                                                    \
    X(18)                                                                                                    \
    X(19)                                                                                                    \
    X(20)                                                                                                    \
    X(21)                                                                                                    \
    X(22)                                                                                                    \
    X(23)                                                                                                    \
    X(24)                                                                                                    \
    X(25)                                                                                                    \
    X(26)                                                                                                    \
    X(27)                                                                                                    \
    X(28)                                                                                                    \
    X(29)                                                                                                    \
    X(30)                                                                                                    \
    X(31)
#define LOW_CLOBBERED                                                                                        \
    , "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",      \
        "xmm12", "xmm13", "xmm14", "xmm15"

#define LOAD_XMM(i)  "movdqu 64*" #i "(%[in]), %%xmm" #i "\n"
#define STORE_XMM(i) "movdqu %%xmm" #i ", 64*" #i "(%[out])\n"
#define LOAD_YMM(i)  "vmovdqu 64*" #i "(%[in]), %%ymm" #i "\n"
#define STORE_YMM(i) "vmovdqu %%ymm" #i ", 64*" #i "(%[out])\n"
#define LOAD_ZMM(i)  "vmovdqu64 64*" #i "(%[in]), %%zmm" #i "\n"
#define STORE_ZMM(i) "vmovdqu64 %%zmm" #i ", 64*" #i "(%[out])\n"

void keep_xmm(const Vectors &in, Vectors &out, unsigned long turns) {
#define CLOBBERED LOW_CLOBBERED
    KEEP(EACH16(LOAD_XMM), EACH16(STORE_XMM));
#undef CLOBBERED
}

__attribute__((target("avx2"))) void keep_ymm(const Vectors &in, Vectors &out, unsigned long turns) {
#define CLOBBERED LOW_CLOBBERED
    KEEP(EACH16(LOAD_YMM), EACH16(STORE_YMM) "vzeroupper\n");
#undef CLOBBERED
}

__attribute__((target("avx512f"))) void keep_zmm(const Vectors &in, Vectors &out, unsigned long turns) {
#define CLOBBERED                                                                                            \
    LOW_CLOBBERED, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", \
        "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"
    KEEP(EACH16(LOAD_ZMM) EACH16_MORE(LOAD_ZMM), EACH16(STORE_ZMM) EACH16_MORE(STORE_ZMM) "vzeroupper\n");
#undef CLOBBERED
}

__attribute__((target("avx512f"))) std::uint16_t keep_mask(std::uint16_t value, unsigned long turns) {
    std::uint32_t kept = value;
    __asm__ volatile("kmovw %[kept], %%k1\n kmovw %[kept], %%k7\n"
                     "1: dec %[turns]\n jnz 1b\n"
                     "kxorw %%k1, %%k7, %%k2\n kmovw %%k2, %[kept]\n" // 0, unless they differ
                     : [kept] "+r"(kept), [turns] "+r"(turns)
                     :
                     : "cc", "k1", "k2", "k7");
    return static_cast<std::uint16_t>(kept);
}

// The whole x87 stack; the sum of what is on it.
double keep_x87(double value, unsigned long turns) {
    double sum = 0;
    __asm__ volatile("fldl %[value]\n fld %%st(0)\n fld %%st(0)\n fld %%st(0)\n"
                     "fld %%st(0)\n fld %%st(0)\n fld %%st(0)\n fld %%st(0)\n"
                     "1: dec %[turns]\n jnz 1b\n"
                     "faddp\n faddp\n faddp\n faddp\n faddp\n faddp\n faddp\n fstpl %[sum]\n"
                     : [turns] "+r"(turns), [sum] "=m"(sum)
                     : [value] "m"(value)
                     : "memory", "cc", "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
    return sum;
}

struct Control {
    std::uint32_t mxcsr;
    std::uint16_t x87;

    static Control now() {
        Control is{0, 0};
        __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(is.mxcsr), "=m"(is.x87));
        return is;
    }
    void set() const { __asm__ volatile("ldmxcsr %0\n fldcw %1" : : "m"(mxcsr), "m"(x87)); }
};

unsigned widest() {
    return __builtin_cpu_supports("avx512f") != 0 ? kZmm : __builtin_cpu_supports("avx2") != 0 ? kYmm : kXmm;
}

class Floats : public Torture {
  public:
    const char *name() const override { return "floats"; }

    void step(Actor &actor) override {
        const unsigned long turns = 1 + actor.random.below(actor.random.one_in(8) ? 400000 : 4000);
        switch (actor.random.below(4)) {
        case 0: keep_control(actor); break;
        case 1: CHECK(keep_x87(actor.number + 1.0, turns) == 8 * (actor.number + 1.0)); break;
        case 2:
            if (widest_ == kZmm) {
                CHECK_EQ(keep_mask(static_cast<std::uint16_t>(actor.random.next()), turns), 0);
                break;
            }
            [[fallthrough]];
        default: keep_vectors(actor, turns); break;
        }
        safepoint();
    }

  private:
    // Mostly as wide as can be; what a preemption saves depends on what is in use.
    void keep_vectors(Actor &actor, unsigned long turns) const {
        const unsigned bytes = actor.random.one_in(4) ? kXmm << actor.random.below(2) : widest_;
        keep_vectors_of(actor, bytes < widest_ ? bytes : widest_, turns);
    }

    void keep_vectors_of(Actor &actor, unsigned bytes, unsigned long turns) const {
        Vectors in, out{};
        for (auto &vector : in.values)
            for (std::uint64_t &part : vector)
                part = actor.random.next();
        const unsigned vectors = bytes == kZmm ? kVectors : kVectors / 2;
        {
            const In in_registers(actor, bytes == widest_ ? kRegisters : kElsewhere);
            if (bytes == kZmm)
                keep_zmm(in, out, turns);
            else if (bytes == kYmm)
                keep_ymm(in, out, turns);
            else
                keep_xmm(in, out, turns);
        }
        for (unsigned i = 0; i < vectors; i++)
            if (std::memcmp(&in.values[i], &out.values[i], bytes) != 0)
                fail(__FILE__, __LINE__, "vector register %u of %u bytes has changed", i, bytes);
    }

    // Rounding in a direction of one's own, also across a yield.
    static void keep_control(Actor &actor) {
        const Control before = Control::now();
        const std::uint32_t direction = actor.random.below(4);
        const Control mine = {(before.mxcsr & ~UINT32_C(0x603f)) | direction << 13,
                              static_cast<std::uint16_t>((before.x87 & ~UINT32_C(0xc00)) | direction << 10)};
        mine.set();
        hold(actor);
        if (actor.random.one_in(4))
            safepoint();
        const Control after = Control::now();
        before.set();
        CHECK_EQ(after.mxcsr & ~UINT32_C(0x3f), mine.mxcsr); // but for the flags of what has happened
        CHECK_EQ(after.x87, mine.x87);
    }

    const unsigned widest_ = widest_registers();
};

#else

unsigned widest() {
    return 0;
}

class Floats : public Torture {
  public:
    const char *name() const override { return "floats"; }

    void step(Actor &actor) override {
        static constexpr std::array<int, 4> kDirections = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
                                                           FE_TOWARDZERO};
        const int direction = kDirections[actor.random.below(4)];
        CHECK_EQ(fesetround(direction), 0);
        hold(actor);
        CHECK_EQ(fegetround(), direction);
        CHECK_EQ(fesetround(FE_TONEAREST), 0);
        safepoint();
    }
};

#endif

} // namespace

unsigned widest_registers() {
    return widest();
}

void add_floats(Tortures &all) {
    all.push_back(std::make_unique<Floats>());
}
