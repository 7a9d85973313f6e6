// SPDX-License-Identifier: Apache-2.0
//
// The program that early.c is linked with.
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "early.h"

int main(int argc, char **argv) {
    static unsigned word;
    if (argc > 2 && strcmp(argv[1], "burn") == 0) {
        early_until_burnt();
        return puts("burnt") < 0;
    }
    for (int i = 0; i < 5; i++)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
    for (const unsigned before = early_waits(); early_waits() < before + 5;)
        usleep(1000);
    return puts("still there") < 0;
}
