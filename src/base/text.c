// SPDX-License-Identifier: Apache-2.0
/* Lines on standard error; see text.h. */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int out = STDERR_FILENO;

/* High up, where no program looks for its own next file; lower where the limit on files wants it so. */
void text_keep_stderr(void) {
    int saved = errno, copy = -1;
    for (int from = 960; from >= 15 && copy < 0; from /= 4)
        copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, from);
    if (copy >= 0)
        out = copy;
    errno = saved;
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

void text_start(struct text *text) {
    text->length = 0;
    text_add(text, "thrum: ");
}

void text_finish(struct text *text) {
    int saved = errno;
    text->bytes[text->length++] = '\n';
    for (size_t done = 0; done < text->length;) {
        ssize_t n = write(out, text->bytes + done, text->length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* nobody listens: there is nowhere else to say it */
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
