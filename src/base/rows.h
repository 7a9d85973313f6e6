// SPDX-License-Identifier: Apache-2.0
/* The rows of docs/internals/soundness.md, by name, and the debug switch that leaves one out.
 *
 * THRUM_SKIP=<row>[,<row>...] exists so that a suite can show that each row's test fails without the row's
 * code; release builds have neither the variable nor the branches. Read once, before the first thread. */
#ifndef THRUM_BASE_ROWS_H
#define THRUM_BASE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#define THRUM_ROWS(X)                                                                                        \
    X(END, "end")                                                                                            \
    X(STATIC_TLS, "static-tls")                                                                              \
    X(LIBC_TLS, "libc-tls")                                                                                  \
    X(TLS_DTORS, "tls-dtors")                                                                                \
    X(KEYS, "keys")                                                                                          \
    X(SIGMASK, "sigmask")                                                                                    \
    X(SIGPENDING, "sigpending")                                                                              \
    X(CANCEL, "cancel")                                                                                      \
    X(ROBUST, "robust")                                                                                      \
    X(CPUTIME, "cputime")                                                                                    \
    X(FPENV, "fpenv")                                                                                        \
    X(INHERIT, "inherit")                                                                                    \
    X(LINEAGE, "lineage")                                                                                    \
    X(KERNEL_TIES, "kernel-ties")                                                                            \
    X(PKEYS, "pkeys")                                                                                        \
    X(REGISTERS, "registers")                                                                                \
    X(ATTRIBUTES, "attributes")                                                                              \
    X(JOIN, "join")                                                                                          \
    X(STALE, "stale")                                                                                        \
    X(LAST_THREAD, "last-thread")                                                                            \
    X(EAGAIN, "eagain")                                                                                      \
    X(FORK, "fork")                                                                                          \
    X(C11, "c11")                                                                                            \
    X(EXIT, "exit")                                                                                          \
    X(DLCLOSE, "dlclose")                                                                                    \
    X(SANITIZERS, "sanitizers")                                                                              \
    X(STACK, "stack")                                                                                        \
    X(REST, "rest")                                                                                          \
    X(TASKS, "tasks")                                                                                        \
    X(PRELOAD, "preload")                                                                                    \
    X(GLIBC, "glibc")                                                                                        \
    X(SANDBOX, "sandbox")                                                                                    \
    X(KERNEL_POINTERS, "kernel-pointers")                                                                    \
    X(UNSEEN, "unseen")                                                                                      \
    X(RIGHTS, "rights")                                                                                      \
    X(DEEPBIND, "deepbind")                                                                                  \
    X(TASK_STAT, "task-stat")

#define THRUM_ROW_ENUM_(name, text) ROW_##name,
enum thrum_row { THRUM_ROWS(THRUM_ROW_ENUM_) ROWS_END };
#undef THRUM_ROW_ENUM_

#ifdef THRUM_DEBUG
extern uint64_t rows_skipped_mask;
#define skipped(row) ((rows_skipped_mask >> (row)) & 1)

/* Parses a value of THRUM_SKIP. Returns false if it names an unknown row. */
bool rows_skip(const char *list);
#else
#define skipped(row) ((void)(row), false)
#endif

#endif
