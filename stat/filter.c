// SPDX-License-Identifier: Apache-2.0
/* The seccomp filter: which system calls come to trap.c as SIGSYS.
 *
 * A filter outlives execve, a handler does not, and a program that is trapped without one is ended. So calls are known
 * by where they are made: from the code of this process's libraries, and of the program where that may stand
 * anywhere. Randomization puts another program's code elsewhere. What is made from this library passes: that is how
 * the handler makes the calls that it has trapped. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "os/syscall.h"
#include "stat.h"

/* Newer than the oldest headers that thrum is built with. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

enum { MOST = 128 };

/* Where a jump goes: to the next instruction, over some, or to one of these. */
enum label { CHECK = 200, CLONE, LIBRARIES, PROGRAM, ALLOW, TRAP, REFUSE, LABELS_END };

struct rules {
    struct sock_filter code[MOST];
    unsigned short count;
    unsigned short at[LABELS_END - CHECK];
};

static void add(struct rules *rules, unsigned code, uint32_t operand, unsigned yes, unsigned no) {
    rules->code[rules->count++] = (struct sock_filter){(uint16_t)code, (uint8_t)yes, (uint8_t)no, operand};
}

static void add_load(struct rules *rules, size_t offset) {
    add(rules, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void add_test(struct rules *rules, unsigned test, uint32_t operand, unsigned yes, unsigned no) {
    add(rules, BPF_JMP | BPF_K | test, operand, yes, no);
}

static void add_label(struct rules *rules, enum label label) {
    rules->at[label - CHECK] = rules->count;
}

static size_t argument(unsigned index) {
    return offsetof(struct seccomp_data, args) + index * sizeof(uint64_t); /* its lower half */
}

/* To `target` if the call is made from below the limit; otherwise falls through. */
static void add_below(struct rules *rules, uint64_t limit, enum label target) {
    const size_t low = offsetof(struct seccomp_data, instruction_pointer), high = low + sizeof(uint32_t);
    add_load(rules, high);
    add_test(rules, BPF_JGT, (uint32_t)(limit >> 32), 3, 0);
    add_test(rules, BPF_JEQ, (uint32_t)(limit >> 32), 0, target);
    add_load(rules, low);
    add_test(rules, BPF_JGE, (uint32_t)limit, 0, target);
}

/* What is counted: waits with their time (waits.c), the rest as it comes. None of these does anything to the stack that
 * the handler stands on, and none returns anywhere else. */
static void add_counted(struct rules *rules) {
    add_test(rules, BPF_JEQ, SYS_futex, CHECK, 0);
    add_test(rules, BPF_JEQ, SYS_sched_yield, CHECK, 0);
}

/* What the program executes in its place (executed.c). */
static void add_executing(struct rules *rules) {
    add_test(rules, BPF_JEQ, SYS_execve, CHECK, 0);
    add_test(rules, BPF_JEQ, SYS_execveat, CHECK, 0);
}

/* clone3 can make a child that has no handlers (CLONE_CLEAR_SIGHAND), and its first trapped call would end it:
 * posix_spawn does so from glibc 2.38 on. The flags are in memory, where a filter cannot look, and a handler cannot
 * make the call for others, as the child continues on another stack. Libraries are told that there is none, as on
 * older kernels, and use clone. */
static void add_clone(struct rules *rules) {
    add_label(rules, CLONE);
    add_below(rules, text.libraries.begin, ALLOW);
    add_below(rules, text.libraries.end, REFUSE);
    add(rules, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

/* Calls that may block SIGSYS, or that wait with another mask where they are given one (masks.c). */
static void add_masks(struct rules *rules) {
    static const struct {
        uint32_t number;
        unsigned mask;
    } waiting[] = {{SYS_ppoll, 3},
                   {SYS_pselect6, 5},
                   {SYS_epoll_pwait, 4},
                   {SYS_epoll_pwait2, 4},
                   {SYS_io_pgetevents, 5}};
    add_test(rules, BPF_JEQ, SYS_rt_sigprocmask, CHECK, 0);
    add_test(rules, BPF_JEQ, SYS_rt_sigaction, CHECK, 0);
    add_test(rules, BPF_JEQ, SYS_rt_sigsuspend, CHECK, 0);
    for (unsigned i = 0; i < sizeof waiting / sizeof *waiting; i++) {
        add_test(rules, BPF_JEQ, waiting[i].number, 0, 2);
        add_load(rules, argument(waiting[i].mask));
        add_test(rules, BPF_JEQ, 0, ALLOW, CHECK);
    }
    add(rules, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

static void resolve(struct rules *rules) {
    for (unsigned short i = 0; i < rules->count; i++) {
        struct sock_filter *one = &rules->code[i];
        if (one->jt >= CHECK)
            one->jt = (uint8_t)(rules->at[one->jt - CHECK] - i - 1);
        if (one->jf >= CHECK)
            one->jf = (uint8_t)(rules->at[one->jf - CHECK] - i - 1);
    }
}

static void write_rules(struct rules *rules) {
    add_load(rules, offsetof(struct seccomp_data, arch));
    add_test(rules, BPF_JEQ, REGISTERS_AUDIT, 0, ALLOW);
    add_load(rules, offsetof(struct seccomp_data, nr));
    add_test(rules, BPF_JEQ, SYS_clone3, CLONE, 0);
    add_counted(rules);
    add_executing(rules);
    add_masks(rules);
    add_clone(rules);
    add_label(rules, CHECK);
    add_below(rules, text.own.begin, LIBRARIES);
    add_below(rules, text.own.end, ALLOW);
    add_label(rules, LIBRARIES);
    add_below(rules, text.libraries.begin, PROGRAM);
    add_below(rules, text.libraries.end, TRAP);
    add_label(rules, PROGRAM);
    if (text.movable) {
        add_below(rules, text.program.begin, ALLOW);
        add_below(rules, text.program.end, TRAP);
    }
    add_label(rules, ALLOW);
    add(rules, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    add_label(rules, TRAP);
    add(rules, BPF_RET | BPF_K, SECCOMP_RET_TRAP | TRAP_MARK, 0, 0);
    add_label(rules, REFUSE);
    add(rules, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS, 0, 0);
    resolve(rules);
}

static void count_other(int thread, void *argument) {
    uint64_t *others = argument;
    (void)thread;
    ++*others;
}

static void look_for_blocked(int thread, void *argument) {
    bool *blocked = argument;
    *blocked = *blocked || tasks_keep_blocked(thread, SIGSYS);
}

/* For all threads where that is possible: a constructor may have made some. One that blocks SIGSYS, as those do that are
 * to take no signal, would be ended by its first trapped call. (So would one that libc makes block all for a moment, as it
 * makes a thread or ends, just between the look and the filter.) */
static long install(const struct sock_fprog *program, uint64_t *untrapped) {
    bool blocked = false;
    long error = 1;
    tasks_each(look_for_blocked, &blocked);
    *untrapped = 0;
    if (!blocked)
        error = sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                    SECCOMP_FILTER_FLAG_SPEC_ALLOW | SECCOMP_FILTER_FLAG_TSYNC, program);
    if (error > 0) {
        tasks_each(count_other, untrapped);
        error = sys(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, program);
    }
    return -error;
}

/* Without CAP_SYS_ADMIN the kernel wants a promise that set-user-ID programs gain nothing here. */
long filter_install(bool *no_new_privileges, uint64_t *untrapped) {
    struct rules rules = {.count = 0};
    write_rules(&rules);
    const struct sock_fprog program = {rules.count, rules.code};
    long error = install(&program, untrapped);
    if (error == EACCES) {
        *no_new_privileges = sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
        error = -sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (error == 0)
            error = install(&program, untrapped);
    }
    return error;
}
