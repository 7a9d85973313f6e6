// SPDX-License-Identifier: Apache-2.0
//
// Runs a program where the kernel has no membarrier(2), as some sandboxes have it: it is answered with ENOSYS.
//
//   without PROGRAM ARGS...
//
// Exits with 77 where no such filter can be installed.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../refuse_call.h"

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: without PROGRAM ARGS...\n");
        return 2;
    }
    if (!refuse_call(SYS_membarrier, ENOSYS)) {
        fprintf(stderr, "without: skipped: no filter can be installed: %s\n", strerror(errno));
        return 77;
    }
    execv(argv[1], argv + 1);
    fprintf(stderr, "without: %s: %s\n", argv[1], strerror(errno));
    return 1;
}
