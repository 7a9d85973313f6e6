// SPDX-License-Identifier: Apache-2.0
//
// Runs a program where the kernel has no membarrier(2), as some sandboxes have it: it is answered with ENOSYS.
//
//   without PROGRAM ARGS...
//
// Exits with 77 where no such filter can be installed.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (argc < 2) {
        fprintf(stderr, "usage: without PROGRAM ARGS...\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "without: skipped: no filter can be installed: %s\n", strerror(errno));
        return 77;
    }
    execv(argv[1], argv + 1);
    fprintf(stderr, "without: %s: %s\n", argv[1], strerror(errno));
    return 1;
}
