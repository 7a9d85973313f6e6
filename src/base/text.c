// SPDX-License-Identifier: Apache-2.0
/* Lines on standard error; see text.h. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static int out = STDERR_FILENO;
static bool kept; /* `out` must be the file that standard error was then: */
static struct stat kept_file;

/* High up, where no program looks for its own next file; lower where the limit on files wants it so. */
void text_keep_stderr(void) {
    int saved = errno, copy = -1;
    kept = true;
    if (fstat(STDERR_FILENO, &kept_file) != 0)
        out = -1; /* it is closed, and its number will be reused for another file */
    for (int from = 960; from >= 15 && copy < 0 && out >= 0; from /= 4)
        copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, from);
    if (copy >= 0)
        out = copy;
    errno = saved;
}

static bool is_kept_file(int fd) {
    struct stat now;
    return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == kept_file.st_dev &&
           now.st_ino == kept_file.st_ino;
}

/* A program may close all descriptors, ours too, and open files of its own: nothing is written into those. -1: there
 * is no place to report to. */
static int where(void) {
    if (!kept || is_kept_file(out))
        return out;
    return out >= 0 && is_kept_file(STDERR_FILENO) ? STDERR_FILENO : -1;
}

void text_add(struct text *text, const char *string) {
    while (*string != '\0' && text->length < sizeof text->bytes - 1)
        text->bytes[text->length++] = *string++;
}

void text_add_number(struct text *text, uint64_t number) {
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    text_add(text, digits + at);
}

size_t text_printable_length(const char *at) {
    const unsigned char *bytes = (const unsigned char *)at;
    if (bytes[0] < 0x80)
        return bytes[0] >= 0x20 && bytes[0] != 0x7f ? 1 : 0;
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || (bytes[0] == 0xc2 && bytes[1] < 0xa0))
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

void text_start(struct text *text) {
    text->length = 0;
    text_add(text, "thrum: ");
}

/* Names and values in it are others' choice, and it may go to a terminal. */
static void make_printable(struct text *text) {
    for (size_t at = 0; at < text->length - 1;) {
        size_t length = text_printable_length(text->bytes + at);
        if (length == 0)
            text->bytes[at] = '?';
        at += length != 0 ? length : 1;
    }
}

void text_finish(struct text *text) {
    int saved = errno, to = where();
    text->bytes[text->length++] = '\n';
    make_printable(text);
    for (size_t done = 0; done < text->length;) {
        ssize_t n = write(to, text->bytes + done, text->length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* no reader: there is nowhere else to report it */
        done += (size_t)n;
    }
    errno = saved;
}

void text_line(const char *a, const char *b, const char *c) {
    struct text text;
    text_start(&text);
    if (a != NULL)
        text_add(&text, a);
    if (b != NULL)
        text_add(&text, b);
    if (c != NULL)
        text_add(&text, c);
    text_finish(&text);
}
