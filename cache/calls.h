// SPDX-License-Identifier: Apache-2.0
/* Every system call of Linux, with what it means for the reuse of the thread that makes it, and why. A number that is not
 * here is newer than this list: the thread retires. tests/unit/rows/calls.sh compares the list with the kernel's headers.
 * For calls through libc's syscall(); functions of libc's that make such calls have their own, or none because the class
 * is ASKS, SHARED or KEPT. */
#ifndef THRUM_CACHE_CALLS_H
#define THRUM_CACHE_CALLS_H

/* X(class). What follows for the thread:
 *   UNKNOWN  a number that is not in the list: as TIES
 *   ASKS     nothing: it changes nothing
 *   SHARED   nothing: what it changes is not the thread's, and a new thread would find the same
 *   KEPT     nothing: reuse puts it back, or asks the kernel for it at each end
 *   OWN      nothing here: a function of this library stands for the call
 *   DEPENDS  one of the others, by the arguments
 *   LINEAGE  new threads inherit it: a new lineage (src/kthread/lineage.c)
 *   RIGHTS   as LINEAGE; and where the thread may do less now, no idle thread may be able to do more (inherit.c)
 *   TIES     something of the kernel's lasts as long as the kernel thread: it retires
 *   NEVER    no program makes the call: as TIES */
#define CALL_CLASSES(X)                                                                                      \
    X(UNKNOWN)                                                                                               \
    X(ASKS)                                                                                                  \
    X(SHARED)                                                                                                \
    X(KEPT)                                                                                                  \
    X(OWN)                                                                                                   \
    X(DEPENDS)                                                                                               \
    X(LINEAGE)                                                                                               \
    X(RIGHTS)                                                                                                \
    X(TIES)                                                                                                  \
    X(NEVER)

#define CALL_CLASS_ENUM_(name) CALL_##name,
enum call_class { CALL_CLASSES(CALL_CLASS_ENUM_) };
#undef CALL_CLASS_ENUM_

/* The class of a call: never DEPENDS. */
enum call_class call_class(long number, const long *arguments);

/* X(name, class) */
/* clang-format off */
#define CALLS(X)                                                                                             \
    /* They only ask, or wait, or give the CPU away. */                                                      \
    X(getpid, ASKS) X(gettid, ASKS) X(getppid, ASKS) X(getuid, ASKS) X(geteuid, ASKS) X(getgid, ASKS)        \
    X(getegid, ASKS) X(getresuid, ASKS) X(getresgid, ASKS) X(getgroups, ASKS) X(getpgid, ASKS)               \
    X(getsid, ASKS) X(uname, ASKS) X(sysinfo, ASKS) X(syslog, ASKS) X(times, ASKS) X(gettimeofday, ASKS)     \
    X(clock_getres, ASKS) X(getrlimit, ASKS) X(getcpu, ASKS) X(getrandom, ASKS) X(getcwd, ASKS)              \
    X(getitimer, ASKS) X(timer_gettime, ASKS) X(timer_getoverrun, ASKS) X(timerfd_gettime, ASKS)             \
    X(capget, ASKS) X(getpriority, ASKS) X(ioprio_get, ASKS) X(sched_getaffinity, ASKS)                      \
    X(sched_getattr, ASKS) X(sched_getparam, ASKS) X(sched_getscheduler, ASKS)                               \
    X(sched_get_priority_max, ASKS) X(sched_get_priority_min, ASKS) X(sched_rr_get_interval, ASKS)           \
    X(get_mempolicy, ASKS) X(get_robust_list, ASKS) X(rt_sigpending, ASKS) X(kcmp, ASKS) X(statfs, ASKS)     \
    X(fstatfs, ASKS) X(faccessat, ASKS) X(faccessat2, ASKS) X(fstat, ASKS) X(newfstatat, ASKS)               \
    X(statx, ASKS) X(readlinkat, ASKS) X(getxattr, ASKS) X(lgetxattr, ASKS) X(fgetxattr, ASKS)               \
    X(listxattr, ASKS) X(llistxattr, ASKS) X(flistxattr, ASKS) X(getsockname, ASKS) X(getpeername, ASKS)     \
    X(getsockopt, ASKS) X(mq_getsetattr, ASKS) X(mincore, ASKS) X(nanosleep, ASKS) X(ppoll, ASKS)            \
    X(pselect6, ASKS) X(epoll_pwait, ASKS) X(epoll_pwait2, ASKS) X(rt_sigsuspend, ASKS)                      \
    X(rt_sigtimedwait, ASKS) X(wait4, ASKS) X(waitid, ASKS) X(sched_yield, ASKS) X(lookup_dcookie, ASKS)     \
    X(quotactl_fd, ASKS)                                                                                     \
    /* What they change belongs to the whole process, its memory, its open files, other processes or */      \
    /* the machine: files and directories. */                                                                \
    X(read, SHARED) X(write, SHARED) X(pread64, SHARED) X(pwrite64, SHARED) X(readv, SHARED)                 \
    X(writev, SHARED) X(preadv, SHARED) X(pwritev, SHARED) X(preadv2, SHARED) X(pwritev2, SHARED)            \
    X(openat, SHARED) X(openat2, SHARED) X(close, SHARED) X(close_range, SHARED) X(lseek, SHARED)            \
    X(dup, SHARED) X(dup3, SHARED) X(pipe2, SHARED) X(ioctl, SHARED) X(flock, SHARED) X(fsync, SHARED)       \
    X(fdatasync, SHARED) X(sync, SHARED) X(syncfs, SHARED) X(sync_file_range, SHARED)                        \
    X(truncate, SHARED) X(ftruncate, SHARED) X(fallocate, SHARED) X(fadvise64, SHARED)                       \
    X(readahead, SHARED) X(sendfile, SHARED) X(splice, SHARED) X(tee, SHARED) X(vmsplice, SHARED)            \
    X(copy_file_range, SHARED) X(getdents64, SHARED) X(chdir, SHARED) X(fchdir, SHARED)                      \
    X(renameat, SHARED) X(renameat2, SHARED) X(mkdirat, SHARED) X(linkat, SHARED) X(symlinkat, SHARED)       \
    X(unlinkat, SHARED) X(mknodat, SHARED) X(fchmod, SHARED) X(fchmodat, SHARED) X(fchown, SHARED)           \
    X(fchownat, SHARED) X(umask, SHARED) X(utimensat, SHARED) X(setxattr, SHARED) X(lsetxattr, SHARED)       \
    X(fsetxattr, SHARED) X(removexattr, SHARED) X(lremovexattr, SHARED) X(fremovexattr, SHARED)              \
    X(name_to_handle_at, SHARED) X(open_by_handle_at, SHARED) X(memfd_create, SHARED)                        \
    X(memfd_secret, SHARED)                                                                                  \
    /* Mounts and roots: of the mount namespace, or of what a process shares until it unshares it. */        \
    X(chroot, SHARED) X(pivot_root, SHARED) X(mount, SHARED) X(umount2, SHARED) X(mount_setattr, SHARED)     \
    X(open_tree, SHARED) X(move_mount, SHARED) X(fsopen, SHARED) X(fsconfig, SHARED) X(fsmount, SHARED)      \
    X(fspick, SHARED) X(quotactl, SHARED) X(nfsservctl, SHARED)                                              \
    /* Memory. */                                                                                            \
    X(mmap, SHARED) X(munmap, SHARED) X(mremap, SHARED) X(mprotect, SHARED) X(msync, SHARED)                 \
    X(madvise, SHARED) X(process_madvise, SHARED) X(process_mrelease, SHARED) X(brk, SHARED)                 \
    X(mlock, SHARED) X(mlock2, SHARED) X(munlock, SHARED) X(mlockall, SHARED) X(munlockall, SHARED)          \
    X(mbind, SHARED) X(migrate_pages, SHARED) X(move_pages, SHARED) X(set_mempolicy_home_node, SHARED)       \
    X(remap_file_pages, SHARED) X(pkey_mprotect, SHARED) X(pkey_free, SHARED) X(membarrier, SHARED)          \
    X(process_vm_readv, SHARED) X(process_vm_writev, SHARED) X(userfaultfd, SHARED)                          \
    /* Events, sockets, messages, semaphores and asynchronous I/O: of descriptors or of the memory. */       \
    /* Undone semaphore operations (SEM_UNDO) are of the process: its threads share the list. */             \
    X(eventfd2, SHARED) X(epoll_create1, SHARED) X(epoll_ctl, SHARED) X(signalfd4, SHARED)                   \
    X(timerfd_create, SHARED) X(timerfd_settime, SHARED) X(inotify_init1, SHARED)                            \
    X(inotify_add_watch, SHARED) X(inotify_rm_watch, SHARED) X(fanotify_init, SHARED)                        \
    X(fanotify_mark, SHARED) X(socket, SHARED) X(socketpair, SHARED) X(bind, SHARED) X(listen, SHARED)       \
    X(connect, SHARED) X(accept, SHARED) X(accept4, SHARED) X(shutdown, SHARED) X(sendto, SHARED)            \
    X(recvfrom, SHARED) X(sendmsg, SHARED) X(recvmsg, SHARED) X(sendmmsg, SHARED) X(recvmmsg, SHARED)        \
    X(setsockopt, SHARED) X(mq_open, SHARED) X(mq_unlink, SHARED) X(mq_timedsend, SHARED)                    \
    X(mq_timedreceive, SHARED) X(mq_notify, SHARED) X(msgget, SHARED) X(msgsnd, SHARED)                      \
    X(msgrcv, SHARED) X(msgctl, SHARED) X(semget, SHARED) X(semop, SHARED) X(semtimedop, SHARED)             \
    X(semctl, SHARED) X(shmget, SHARED) X(shmat, SHARED) X(shmdt, SHARED) X(shmctl, SHARED)                  \
    X(io_setup, SHARED) X(io_destroy, SHARED) X(io_getevents, SHARED) X(io_pgetevents, SHARED)               \
    X(io_submit, SHARED) X(io_cancel, SHARED)                                                                \
    /* Signals to others, timers and limits of the process, process groups. */                               \
    X(kill, SHARED) X(tkill, SHARED) X(tgkill, SHARED) X(rt_sigqueueinfo, SHARED)                            \
    X(rt_tgsigqueueinfo, SHARED) X(pidfd_open, SHARED) X(pidfd_send_signal, SHARED)                          \
    X(pidfd_getfd, SHARED) X(rt_sigaction, SHARED) X(setitimer, SHARED) X(timer_settime, SHARED)             \
    X(timer_delete, SHARED) X(setrlimit, SHARED) X(setpgid, SHARED) X(setsid, SHARED) X(acct, SHARED)        \
    /* The machine: only the kernel itself remembers. */                                                     \
    X(adjtimex, SHARED) X(clock_adjtime, SHARED) X(clock_settime, SHARED) X(settimeofday, SHARED)            \
    X(sethostname, SHARED) X(setdomainname, SHARED) X(reboot, SHARED) X(swapon, SHARED)                      \
    X(swapoff, SHARED) X(vhangup, SHARED) X(init_module, SHARED) X(finit_module, SHARED)                     \
    X(delete_module, SHARED) X(kexec_load, SHARED) X(kexec_file_load, SHARED) X(bpf, SHARED)                 \
    /* Rules that apply to nothing until landlock_restrict_self. */                                          \
    X(landlock_create_ruleset, SHARED) X(landlock_add_rule, SHARED)                                          \
    /* The process becomes another program, or ends; report.c and exit.c see to it where there is */         \
    /* something to do. */                                                                                   \
    X(execve, SHARED) X(execveat, SHARED) X(exit, SHARED) X(exit_group, SHARED)                              \
    /* Of the thread, and put back or asked for by reuse itself. */                                          \
    X(rt_sigprocmask, KEPT) X(sigaltstack, KEPT) X(set_robust_list, KEPT) X(set_tid_address, KEPT)           \
    /* The number is handed to a function of the library, which decides. */                                  \
    X(prctl, OWN) X(sched_setaffinity, OWN) X(clock_gettime, OWN) X(clock_nanosleep, OWN)                    \
    X(getrusage, OWN) X(fcntl, OWN) X(setns, OWN) X(prlimit64, OWN) X(pkey_alloc, OWN)                       \
    /* By their arguments: calls.c. */                                                                       \
    X(seccomp, DEPENDS) X(personality, DEPENDS) X(perf_event_open, DEPENDS) X(add_key, DEPENDS)              \
    X(request_key, DEPENDS) X(keyctl, DEPENDS) X(futex, DEPENDS)                                             \
    /* Of these futex calls none takes a lock. */                                                            \
    X(futex_waitv, SHARED)                                                                                   \
    /* Scheduling, of the thread that is named: inherited, and lower values cannot be raised again by */     \
    /* an ordinary user. */                                                                                  \
    X(sched_setscheduler, LINEAGE) X(sched_setparam, LINEAGE) X(sched_setattr, LINEAGE)                      \
    X(setpriority, LINEAGE) X(ioprio_set, LINEAGE)                                                           \
    /* Inherited, and not put back: memory policy, port rights, segments. An area for restartable */         \
    /* sequences that is not libc's: libc registers none for the threads of a thread without. */             \
    X(set_mempolicy, LINEAGE) X(rseq, LINEAGE)                                                               \
    /* What the thread may do: ids, groups, capabilities, Landlock, security modules. By number they */      \
    /* concern the caller alone. */                                                                          \
    X(setuid, RIGHTS) X(setgid, RIGHTS) X(setreuid, RIGHTS) X(setregid, RIGHTS) X(setresuid, RIGHTS)         \
    X(setresgid, RIGHTS) X(setgroups, RIGHTS) X(setfsuid, RIGHTS) X(setfsgid, RIGHTS) X(capset, RIGHTS)      \
    X(landlock_restrict_self, RIGHTS) X(unshare, RIGHTS)                                                     \
    /* The thread is a parent, a tracer, the owner of a ring or of a timer's target until the kernel */      \
    /* thread ends. */                                                                                       \
    X(clone, TIES) X(clone3, TIES) X(ptrace, TIES) X(timer_create, TIES) X(io_uring_setup, TIES)             \
    X(io_uring_enter, TIES) X(io_uring_register, TIES)                                                       \
    /* Not called by programs, or not there any more: what they would do is not known. */                    \
    X(rt_sigreturn, NEVER) X(restart_syscall, NEVER)

/* Of x86-64 alone. */
#define CALLS_X86_64(X)                                                                                      \
    /* They only ask, or wait, or give the CPU away. */                                                      \
    X(getpgrp, ASKS) X(time, ASKS) X(get_thread_area, ASKS) X(ustat, ASKS) X(sysfs, ASKS)                    \
    X(access, ASKS) X(stat, ASKS) X(lstat, ASKS) X(readlink, ASKS) X(pause, ASKS) X(poll, ASKS)              \
    X(select, ASKS) X(epoll_wait, ASKS) X(epoll_wait_old, ASKS)                                              \
    /* What they change belongs to the whole process, its memory, its open files, other processes or */      \
    /* the machine: files and directories. */                                                                \
    X(open, SHARED) X(creat, SHARED) X(dup2, SHARED) X(pipe, SHARED) X(getdents, SHARED)                     \
    X(rename, SHARED) X(mkdir, SHARED) X(rmdir, SHARED) X(link, SHARED) X(symlink, SHARED)                   \
    X(unlink, SHARED) X(mknod, SHARED) X(chmod, SHARED) X(chown, SHARED) X(lchown, SHARED)                   \
    X(utime, SHARED) X(utimes, SHARED) X(futimesat, SHARED)                                                  \
    /* Events, sockets, messages, semaphores and asynchronous I/O: of descriptors or of the memory. */       \
    /* Undone semaphore operations (SEM_UNDO) are of the process: its threads share the list. */             \
    X(eventfd, SHARED) X(epoll_create, SHARED) X(epoll_ctl_old, SHARED) X(signalfd, SHARED)                  \
    X(inotify_init, SHARED)                                                                                  \
    /* Signals to others, timers and limits of the process, process groups. */                               \
    X(alarm, SHARED)                                                                                         \
    /* The number is handed to a function of the library, which decides. */                                  \
    X(arch_prctl, OWN)                                                                                       \
    /* Inherited, and not put back: memory policy, port rights, segments. An area for restartable */         \
    /* sequences that is not libc's: libc registers none for the threads of a thread without. */             \
    X(ioperm, LINEAGE) X(iopl, LINEAGE) X(set_thread_area, LINEAGE) X(modify_ldt, LINEAGE)                   \
    /* The thread is a parent, a tracer, the owner of a ring or of a timer's target until the kernel */      \
    /* thread ends. */                                                                                       \
    X(fork, TIES) X(vfork, TIES)                                                                             \
    /* Not called by programs, or not there any more: what they would do is not known. */                    \
    X(uselib, NEVER) X(_sysctl, NEVER) X(create_module, NEVER) X(get_kernel_syms, NEVER)                     \
    X(query_module, NEVER) X(getpmsg, NEVER) X(putpmsg, NEVER) X(afs_syscall, NEVER) X(tuxcall, NEVER)       \
    X(security, NEVER) X(vserver, NEVER)

/* Newer than the oldest headers that thrum is built with. All architectures have the same numbers. */
#define CALLS_NEW(X) \
    X(cachestat, 451, ASKS)                                                                                  \
    X(fchmodat2, 452, SHARED)                                                                                \
    X(map_shadow_stack, 453, SHARED)                                                                         \
    X(futex_wake, 454, SHARED)                                                                               \
    X(futex_wait, 455, SHARED)                                                                               \
    X(futex_requeue, 456, SHARED)                                                                            \
    X(statmount, 457, ASKS)                                                                                  \
    X(listmount, 458, ASKS)                                                                                  \
    X(lsm_get_self_attr, 459, ASKS)                                                                          \
    X(lsm_set_self_attr, 460, RIGHTS)                                                                        \
    X(lsm_list_modules, 461, ASKS)                                                                           \
    X(mseal, 462, SHARED)                                                                                    \
    X(setxattrat, 463, SHARED)                                                                               \
    X(getxattrat, 464, ASKS)                                                                                 \
    X(listxattrat, 465, ASKS)                                                                                \
    X(removexattrat, 466, SHARED)                                                                            \
    X(open_tree_attr, 467, SHARED)                                                                           \
    X(file_getattr, 468, ASKS)                                                                               \
    X(file_setattr, 469, SHARED)                                                                             \
    X(listns, 470, ASKS)                                                                                     \
    X(rseq_slice_yield, 471, ASKS)

/* Of x86-64 alone, likewise. */
#define CALLS_NEW_X86_64(X) X(uretprobe, 335, NEVER) X(uprobe, 336, NEVER)
/* clang-format on */

#endif
