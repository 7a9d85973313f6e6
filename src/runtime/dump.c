// SPDX-License-Identifier: Apache-2.0
/* What all threads are at, told by the process itself. Its own memory, too, is read by the kernel's hand: what others
 * unmap meanwhile is an error then, not a fault. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/text.h"
#include "inspect/image.h"
#include "inspect/report.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/memory.h"
#include "thrum/thrum.h"

static bool read_own(void *context, uint64_t address, void *to, size_t size) {
    (void)context;
    return memory_copy((const void *)(uintptr_t)address, to, size);
}

static bool own_kernel_thread(void *context, int32_t tid, struct inspect_kernel_thread *told) {
    struct text path = {.length = 0};
    char status[1024];
    (void)context;
    text_add(&path, "/proc/self/task/");
    text_add_number(&path, (uint64_t)tid);
    text_add(&path, "/status");
    path.bytes[path.length] = '\0';
    return file_read_status(path.bytes, status, sizeof status) > 0 && inspect_parse_status(status, told);
}

struct output {
    int file, error;
    const struct thrum_unit *caller;
    uint64_t stack_pointer; /* the caller's */
};

static void write_line(void *context, const char *line, size_t length) {
    struct output *output = context;
    while (output->error == 0 && length > 0) {
        ssize_t n = write(output->file, line, length);
        if (n >= 0) {
            line += n;
            length -= (size_t)n;
        } else if (errno != EINTR) {
            output->error = errno;
        }
    }
}

/* Of the other ones that run it is known to their kernel threads alone. */
static uint64_t stack_pointer_of(void *context, const struct inspect_thread *thread) {
    const struct output *output = context;
    return thread->handle == (uintptr_t)output->caller ? output->stack_pointer : 0;
}

int thrum_dump(int file, size_t most) {
    int saved = errno;
    struct output output = {
        .file = file, .caller = unit_to_note(), .stack_pointer = (uintptr_t)__builtin_frame_address(0)};
    const struct inspect_source source = {.read = read_own,
                                          .image = (uintptr_t)&thrum_image,
                                          .kernel_thread = own_kernel_thread,
                                          .now = clock_monotonic_ns()};
    const struct inspect_report report = {.line = write_line,
                                          .stack_pointer = stack_pointer_of,
                                          .context = &output,
                                          .most = most != 0 ? most : UINT64_MAX};
    if (!load_acquire(&runtime.open))
        output.error = ESRCH;
    else if (!inspect_print(&source, &report))
        output.error = EPERM;
    errno = saved;
    return output.error;
}
