// SPDX-License-Identifier: Apache-2.0
//
// Disease: all threads write to standard output character by character, and each putc() takes the stream's lock.
// Cure: a buffer a thread, which is handed to the stream when it is full.
#include "crew.h"

struct sheet {
    size_t used;
    char text[1 << 16];
};

#ifdef CURED
static SEEN void write_line(struct sheet *sheet, const char *line, size_t length) {
    if (sheet->used + length > sizeof sheet->text) {
        fwrite(sheet->text, 1, sheet->used, stdout);
        sheet->used = 0;
    }
    memcpy(sheet->text + sheet->used, line, length);
    sheet->used += length;
}
#else
static SEEN void write_line(struct sheet *sheet, const char *line, size_t length) {
    (void)sheet;
    for (size_t i = 0; i < length; i++)
        putc(line[i], stdout); /* HERE: hidden-lock */
}
#endif

static void *write_lines(void *arg) {
    struct hand *hand = arg;
    struct sheet *sheet = calloc(1, sizeof *sheet);
    if (sheet == NULL)
        exit(1);
    for (long i = 0; i < hand->share; i++) {
        char line[32];
        hand->result = chew(hand->result, 150);
        memset(line, '0' + (int)(hand->result >> 61), sizeof line);
        line[sizeof line - 1] = '\n';
        write_line(sheet, line, sizeof line);
    }
    fwrite(sheet->text, 1, sheet->used, stdout);
    free(sheet);
    return NULL;
}

int main(int argc, char **argv) {
    const unsigned size = crew_size(argc, argv);
    if (freopen("/dev/null", "w", stdout) == NULL)
        return 1;
    crew_work(size, 900000, write_lines);
    return fclose(stdout) == 0 ? 0 : 1;
}
