// SPDX-License-Identifier: Apache-2.0
//
// What preload.sh has `thrum run` start or refuse: says that it ran, with which arguments, and ends with code 7. Built
// three times: as usual, statically, and with musl's dynamic loader named as its interpreter.
#include <stdio.h>

int main(int argc, char **argv) {
    printf("ran with");
    for (int i = 1; i < argc; i++)
        printf(" %s", argv[i]);
    printf("\n");
    return 7;
}
