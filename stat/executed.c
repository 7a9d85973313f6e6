// SPDX-License-Identifier: Apache-2.0
/* PROBE_EXACT: the program executes another one in its place.
 *
 * As a rule that one loads this library again, whose constructor starts counting anew. A static program does not, nor
 * one that gains privileges, nor one whose environment does not name us: the command must know of that. So what is
 * executed is noted before, and the note is taken back by the constructor, or where the call fails.
 *
 * A program that has not loaded us may execute one that does. It is recognised by the path, which the kernel passes
 * on as given. */
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "os/syscall.h"
#include "stat.h"

static void note(struct probe *probe, uint64_t path) {
    memory_copy_string_sigsafe(probe->executed, path, PROBE_PATH);
    maps_leave_sigsafe();
    store_release(&probe->executed_at, clock_ns_sigsafe()); /* pairs with is_unseen (cli/stat/exact.cpp) */
}

static void take_back(struct probe *probe) {
    store_release(&probe->executed_at, 0);     /* pairs with is_unseen */
    if (!confined_sigsafe())                   /* else they are from before */
        store_release(&probe->maps_length, 0); /* pairs with ProbeFile::maps (cli/stat/collect.cpp) */
}

/* --- rights ------------------------------------------------------------------------------------------------- */

static bool gains_rights(long folder, long path, long flags) {
    struct stat status;
    if (sys(SYS_newfstatat, folder, path, &status, flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0)
        return false;
    const bool gains_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
    return ((status.st_mode & S_ISUID) != 0 && status.st_uid != (uid_t)sys(SYS_geteuid)) ||
           (gains_group && status.st_gid != (gid_t)sys(SYS_getegid)) ||
           (folder == AT_FDCWD && sys(SYS_getxattr, path, "security.capability", 0, 0) > 0);
}

/* In children, too: it does something else than without us. */
static void look_at_rights(struct probe *probe, long folder, long path, long flags) {
    if (gains_rights(folder, path, flags) && fetch_add_relaxed(&probe->held_back, 1) == 0)
        memory_copy_string_sigsafe(probe->first_held_back, (uint64_t)path, PROBE_PATH);
}

/* --- the call ----------------------------------------------------------------------------------------------- */

/* A child, which may have the program's memory, only makes the call. */
long executed_call_sigsafe(struct probe *probe, long number, const long a[6]) {
    const bool may_ask = probe->no_new_privileges != 0 && !confined_sigsafe();
    if (may_ask && number == SYS_execve)
        look_at_rights(probe, AT_FDCWD, a[0], 0);
    else if (may_ask)
        look_at_rights(probe, a[0], a[1], a[4]);
    const bool is_program = probe->program == confined_caller_sigsafe();
    if (is_program)
        note(probe, (uint64_t)a[number == SYS_execve ? 0 : 1]);
    masks_show_sigsafe(true);
    const long error = sys(number, a[0], a[1], a[2], a[3], a[4]);
    masks_show_sigsafe(false);
    if (is_program)
        take_back(probe);
    return error;
}

/* execveat names a descriptor's file in another way than it was told. */
static bool is_this(const char *path) {
    const char *own = (const char *)(uintptr_t)getauxval(AT_EXECFN); // NOLINT
    const char descriptor[] = "/dev/fd/";
    return own == NULL || strncmp(own, path, PROBE_PATH - 1) == 0 ||
           strncmp(own, descriptor, sizeof descriptor - 1) == 0;
}

void executed_begin(struct probe *probe) {
    if (probe->executed_at != 0 && probe->unseen[0] == '\0' && !is_this(probe->executed))
        memcpy(probe->unseen, probe->executed, PROBE_PATH);
    store_release(&probe->executed_at, 0); /* pairs with is_unseen: `unseen` is there */
}
