// SPDX-License-Identifier: Apache-2.0
/* arch_prctl, which libc exports and no header declares: the bases of FS and GS, CPUID faulting, shadow stacks. Row
 * registers. What new threads inherit of it makes a new lineage, as in inherit.c, but for the base of GS where it can
 * be put back without the kernel (arch_registers.h). */
#include <asm/prctl.h>
#include <errno.h>

#include "cache.h"
#include "os/syscall.h"

/* Rights to protection keys can be changed without any key. Libc knows what CPUID said at its start; the instruction
 * itself is slow in a virtual machine, and a program may have forbidden it. */
bool registers_have_pkeys(void) {
    struct leaf {
        unsigned cpuid[4], active[4]; /* of <sys/platform/x86.h>, glibc 2.33 */
    };
    enum { LEAF_7 = 1, ECX = 2, OSPKE = 1 << 4 };
    const struct leaf *(*get)(unsigned) =
        (const struct leaf *(*)(unsigned))dlsym(RTLD_DEFAULT, "__x86_get_cpuid_feature_leaf");
    return get != NULL && (get(LEAF_7)->cpuid[ECX] & OSPKE) != 0;
}

enum { GET_XCOMP_SUPPORT = 0x1021, REQUEST_XCOMP_GUEST_PERMISSION = 0x1025, SHADOW_STACK_STATUS = 0x5005 };

/* Only asks, or concerns the whole process: permissions for extended registers (AMX) do. */
static bool is_harmless(int code) {
    switch (code) {
    case ARCH_GET_FS:
    case ARCH_GET_GS:
    case ARCH_GET_CPUID:
    case ARCH_MAP_VDSO_X32:
    case ARCH_MAP_VDSO_32:
    case ARCH_MAP_VDSO_64:
    case SHADOW_STACK_STATUS: return true;
    case ARCH_SET_GS: return creator_has_registers();
    default: return code >= GET_XCOMP_SUPPORT && code <= REQUEST_XCOMP_GUEST_PERMISSION;
    }
}

/* Libc's thread-locals hang on FS, errno and ours among them. So the thread is found by its id, and nothing else is
 * done, neither before the base moves nor after. */
static long move_fs(unsigned long base) {
    struct kthread *thread;
    struct gate_visit visit;
    if (load_relaxed(&thrum_cache_counters.created) != 0 &&
        kthread_visit_tid((pid_t)sys(SYS_gettid), &visit, &thread) == KTHREAD_TID_VISITED) {
        if (!skipped(ROW_REGISTERS))
            store_relaxed(&thread->tied, RETIRE_TIES);
        gate_visit_end(&visit);
    }
    return sys(SYS_arch_prctl, ARCH_SET_FS, base);
}

/* Without a stack protector, whose value is in FS's block, too. */
__attribute__((no_stack_protector)) INTERPOSE int arch_prctl(int code, unsigned long address) {
    long answer = code == ARCH_SET_FS ? move_fs(address) : sys(SYS_arch_prctl, code, address);
    if (answer < 0) {
        errno = (int)-answer;
        return -1;
    }
    if (code != ARCH_SET_FS && !is_harmless(code) && !skipped(ROW_REGISTERS))
        inherit_changed_tid(0);
    return (int)answer;
}
