// SPDX-License-Identifier: Apache-2.0
//
// Row "fpenv": a thread starts with the floating-point environment of its creator (POSIX: it is inherited), not with
// that of the thread which used the kernel thread before.

#include "check.h"

#if defined(__x86_64__)

typedef struct {
    uint32_t mxcsr;
    uint16_t x87_control, x87_status;
} fp_state;

static fp_state read_state(void) {
    fp_state state;
    __asm__ volatile("stmxcsr %0" : "=m"(state.mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(state.x87_control));
    __asm__ volatile("fnstsw %0" : "=m"(state.x87_status));
    return state;
}

static void write_state(fp_state state) {
    __asm__ volatile("fnclex; fldcw %0" : : "m"(state.x87_control));
    __asm__ volatile("ldmxcsr %0" : : "m"(state.mxcsr));
}

static void expect_state(fp_state expected) {
    fp_state state = read_state();
    CHECK(state.mxcsr == expected.mxcsr, "MXCSR is %#x, expected %#x", state.mxcsr, expected.mxcsr);
    CHECK(state.x87_control == expected.x87_control, "x87 control word is %#x, expected %#x",
          state.x87_control, expected.x87_control);
    CHECK((state.x87_status & 0x3f) == (expected.x87_status & 0x3f),
          "x87 exception flags are %#x, expected %#x", state.x87_status & 0x3f, expected.x87_status & 0x3f);
}

static fp_state with_rounding(unsigned direction) {
    fp_state state = read_state();
    state.mxcsr = (state.mxcsr & ~0x6000u) | direction << 13;
    state.x87_control = (uint16_t)((state.x87_control & ~0xc00u) | direction << 10);
    return state;
}

static fp_state with_flags(void) {
    fp_state state = read_state();
    state.mxcsr |= 0x3f;
    return state;
}

static fp_state without_flags(void) {
    fp_state state = read_state();
    state.mxcsr &= ~0x3fu;
    return state;
}

static fp_state with_traps(void) { // division by zero, invalid operation, overflow
    fp_state state = read_state();
    state.mxcsr &= ~(0x680u);
    state.x87_control = (uint16_t)(state.x87_control & ~0xdu);
    return state;
}

static fp_state with_flushing(void) { // flush to zero, denormals are zero
    fp_state state = read_state();
    state.mxcsr |= 0x8040;
    return state;
}

#elif defined(__aarch64__)

typedef struct {
    uint64_t fpcr, fpsr;
} fp_state;

static fp_state read_state(void) {
    fp_state state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state.fpcr));
    __asm__ volatile("mrs %0, fpsr" : "=r"(state.fpsr));
    return state;
}

static void write_state(fp_state state) {
    __asm__ volatile("msr fpcr, %0" : : "r"(state.fpcr));
    __asm__ volatile("msr fpsr, %0" : : "r"(state.fpsr));
}

static void expect_state(fp_state expected) {
    fp_state state = read_state();
    CHECK(state.fpcr == expected.fpcr, "FPCR is %#jx, expected %#jx", (uintmax_t)state.fpcr,
          (uintmax_t)expected.fpcr);
    CHECK(state.fpsr == expected.fpsr, "FPSR is %#jx, expected %#jx", (uintmax_t)state.fpsr,
          (uintmax_t)expected.fpsr);
}

static fp_state with_rounding(unsigned direction) {
    fp_state state = read_state();
    state.fpcr = (state.fpcr & ~0xc00000ul) | (uint64_t)direction << 22;
    return state;
}

static fp_state with_flags(void) {
    fp_state state = read_state();
    state.fpsr |= 0x1f;
    return state;
}

static fp_state without_flags(void) {
    fp_state state = read_state();
    state.fpsr &= ~0x1ful;
    return state;
}

static fp_state with_traps(void) { // most processors have no traps and ignore this
    fp_state state = read_state();
    state.fpcr |= 0x700;
    return state;
}

static fp_state with_flushing(void) {
    fp_state state = read_state();
    state.fpcr |= 1ul << 24;
    return state;
}

#else
#error "row fpenv has no test for this processor"
#endif

static fp_state expected, wanted;

static void *look(void *arg) {
    expect_state(expected);
    return arg;
}

static void *spoil(void *arg) {
    write_state(wanted);
    return arg;
}

static void *spoil_and_exit(void *arg) {
    write_state(wanted);
    pthread_exit(arg);
}

// One thread leaves `state`; the next starts with the creator's all the same.
static void expect_not_inherited_from_predecessor(fp_state state) {
    expected = read_state();
    wanted = state;
    pid_t first = run_thread(spoil, NULL), second = run_thread(look, NULL);
    pid_t third = run_thread(spoil_and_exit, NULL), fourth = run_thread(look, NULL);
    expect_reused(first, second);
    expect_reused(second, third);
    expect_reused(third, fourth);
    expect_state(expected);
}

static void rounding_left(void) {
    for (unsigned direction = 1; direction <= 3; direction++)
        expect_not_inherited_from_predecessor(with_rounding(direction));
}

static volatile double one = 1, three = 3, zero = 0, tiny = 5e-324;

static void *divide(void *result) {
    *(double *)result = one / three;
    return NULL;
}

// What it means: one third is the same number in each thread.
static void results_are_the_same(void) {
    double before, after;
    run_thread(divide, &before);
    wanted = with_rounding(2);
    pid_t first = run_thread(spoil, NULL), second = run_thread(divide, &after);
    CHECK(before == after, "1/3 is %.20g and then %.20g", before, after);
    expect_reused(first, second);
}

static void flags_left(void) {
    write_state(without_flags());
    expect_not_inherited_from_predecessor(with_flags());
}

static void flushing_left(void) {
    expect_not_inherited_from_predecessor(with_flushing());
}

static void *divide_by_zero(void *arg) {
    volatile double infinity = one / zero;
    volatile double same = tiny * one;
    CHECK(infinity > 1e308 && same == tiny, "arithmetic is wrong");
    return arg;
}

static void traps_left(void) {
    wanted = with_traps();
    pid_t first = run_thread(spoil, NULL), second = run_thread(divide_by_zero, NULL);
    expect_reused(first, second);
}

// The creator's, as it is at the call, changes included.
static void inherited_from_creator(void) {
    run_thread(do_nothing, NULL);
    pid_t last = 0;
    for (int i = 0; i < 8; i++) {
        write_state(i % 2 ? with_flags() : without_flags());
        write_state(with_rounding((unsigned)i % 4));
        expected = read_state();
        wanted = with_rounding((unsigned)(i + 1) % 4);
        pid_t tid = run_thread(look, NULL);
        run_thread(spoil, NULL);
        if (last)
            expect_reused(last, tid);
        last = tid;
    }
}

static void *create_with_rounding(void *arg) {
    write_state(with_rounding(3));
    expected = read_state();
    run_thread(look, NULL);
    return arg;
}

static void creator_is_a_thread(void) {
    fp_state of_main = read_state();
    for (int i = 0; i < 3; i++) {
        run_thread(create_with_rounding, NULL);
        expected = of_main;
        run_thread(look, NULL);
        run_thread(look, NULL);
    }
}

#if defined(__x86_64__)

static void *leave_short_precision(void *arg) {
    uint16_t control = 0x007f; // 24 bits
    __asm__ volatile("fldcw %0" : : "m"(control));
    return arg;
}

static void *divide_long(void *arg) {
    volatile long double dividend = 1, divisor = 3;
    long double quotient = dividend / divisor;
    CHECK(quotient != (long double)(float)quotient, "long double has the precision of float");
    CHECK(quotient * 3 == 1.0L, "1/3*3 is not 1");
    return arg;
}

static void x87_precision_left(void) {
    pid_t first = run_thread(leave_short_precision, NULL), second = run_thread(divide_long, NULL);
    expect_reused(first, second);
}

static void *leave_full_stack(void *arg) {
    __asm__ volatile("fldz; fldz; fldz; fldz; fldz; fldz; fldz; fldz");
    return arg;
}

static void *use_stack(void *arg) {
    double sum;
    __asm__ volatile("fld1; fld1; fld1; fld1; fld1; fld1; fld1; fld1\n\t"
                     "faddp; faddp; faddp; faddp; faddp; faddp; faddp\n\t"
                     "fstpl %0"
                     : "=m"(sum));
    CHECK(sum == 8, "eight ones on the x87 stack make %f", sum);
    return arg;
}

// MMX code without emms, say.
static void x87_stack_left(void) {
    pid_t first = run_thread(leave_full_stack, NULL), second = run_thread(use_stack, NULL);
    expect_reused(first, second);
}

static void *leave_x87_flags(void *arg) {
    __asm__ volatile("fldz; fld1; fdivp; fstp %%st(0)" : : : "st"); // division by zero
    return arg;
}

static void x87_flags_left(void) {
    __asm__ volatile("fnclex");
    expected = read_state();
    pid_t first = run_thread(leave_x87_flags, NULL), second = run_thread(look, NULL);
    expect_reused(first, second);
}

#endif

static const struct check_case cases[] = {
    {"rounding-left", rounding_left, FAILS_WHEN_SKIPPED},
    {"results-are-the-same", results_are_the_same, FAILS_WHEN_SKIPPED},
    {"flags-left", flags_left, FAILS_WHEN_SKIPPED},
    {"flushing-left", flushing_left, FAILS_WHEN_SKIPPED},
#if defined(__x86_64__)
    {"traps-left", traps_left, FAILS_WHEN_SKIPPED},
    {"x87-precision-left", x87_precision_left, FAILS_WHEN_SKIPPED},
    {"x87-stack-left", x87_stack_left, FAILS_WHEN_SKIPPED},
    {"x87-flags-left", x87_flags_left, FAILS_WHEN_SKIPPED},
#else
    {"traps-left", traps_left, HOLDS_WHEN_SKIPPED},
#endif
    {"inherited-from-creator", inherited_from_creator, FAILS_WHEN_SKIPPED},
    {"creator-is-a-thread", creator_is_a_thread, FAILS_WHEN_SKIPPED},
};
CHECK_MAIN(cases)
