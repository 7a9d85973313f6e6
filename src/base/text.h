// SPDX-License-Identifier: Apache-2.0
/* One line of text, built without stdio or malloc and written with one system call.
 *
 * The preloaded library prints from places where stdio's locks or the allocator may be held or gone: while a library
 * is initialised, at exit, in an assertion. A line that outgrows the buffer is cut, never split. */
#ifndef THRUM_BASE_TEXT_H
#define THRUM_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/inside.h"

struct text {
    size_t length;
    char bytes[512];
};

/* Starts a line with "thrum: ". */
SIGSAFE void text_start(struct text *text);
SIGSAFE void text_add(struct text *text, const char *string);
SIGSAFE void text_add_number(struct text *text, uint64_t number);

/* The length of the character in UTF-8 that begins here; 0: none does, or it is one of the control characters that a
 * terminal obeys (those of ASCII, and U+0080 to U+009F). */
SIGSAFE size_t text_printable_length(const char *at);

/* Ends the line and writes it to standard error, with question marks for what is not printable. Keeps errno. */
SIGSAFE void text_finish(struct text *text);

/* Later lines go to a copy of standard error as it is now: programs close it before they end, and a file opened
 * then would get its number. */
void text_keep_stderr(void);

/* A whole line from three pieces; NULL pieces are left out. */
SIGSAFE void text_line(const char *a, const char *b, const char *c);

#endif
