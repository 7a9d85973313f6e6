// SPDX-License-Identifier: Apache-2.0
/* Where the event trace (sched/trace.h) goes: to the file that THRUM_TRACE names, in the form of <thrum/trace.h>. It
 * is written when the runtime stops, or, if it is not stopped, by exit(); a process that a signal ends, or _exit(),
 * leaves an empty file. */
#ifndef THRUM_RUNTIME_TRACE_FILE_H
#define THRUM_RUNTIME_TRACE_FILE_H

/* What the environment says; the file is made, and is empty. A file that cannot be made is no error: there is a line, and
 * no trace. 0 or EINVAL. */
int trace_file_configure(void);

/* Before there are workers; the trace is on from here, if requested. */
void trace_file_start(void);

/* When no worker runs any more. */
void trace_file_write(void);

void trace_file_fork_child(void);

#endif
