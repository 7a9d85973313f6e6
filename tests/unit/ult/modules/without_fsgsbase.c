// SPDX-License-Identifier: Apache-2.0
//
// Preloaded, it makes the machine one on which a program may not change FS base by an instruction (Linux before 5.9, or
// nofsgsbase): the kernel does that for it, by a system call.
#include <dlfcn.h>
#include <elf.h>

typedef unsigned long lookup(unsigned long type);

unsigned long getauxval(unsigned long type);
unsigned long getauxval(unsigned long type) {
    enum { FSGSBASE = 2 };
    lookup *libcs = (lookup *)dlsym(RTLD_NEXT, "getauxval");
    const unsigned long value = libcs(type);
    return type == AT_HWCAP2 ? value & ~(unsigned long)FSGSBASE : value;
}
