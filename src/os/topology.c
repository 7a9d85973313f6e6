// SPDX-License-Identifier: Apache-2.0
/* See topology.h. */
#include "os/topology.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "os/file.h"

static struct topology machine; /* nodes is 0 until it has been read */
static const char *folder_of_nodes = "/sys/devices/system/node";

/* --- lists as the kernel writes them: "0-3,8,10-11" --------------------------------------------------- */

static bool number(const char **at, unsigned *value) {
    const char *from = *at;
    for (*value = 0; **at >= '0' && **at <= '9' && *value < TOPOLOGY_CPUS_MAX; (*at)++)
        *value = *value * 10 + (unsigned)(**at - '0');
    return *at != from;
}

/* False: that was all. */
static bool next_range(const char **at, unsigned *first, unsigned *last) {
    if (**at == ',')
        (*at)++;
    if (!number(at, first))
        return false;
    *last = *first;
    if (**at != '-')
        return true;
    (*at)++;
    return number(at, last);
}

/* --- files -------------------------------------------------------------------------------------------- */

static const char *digits_of(unsigned value, char *end) {
    *end = '\0';
    do {
        *--end = (char)('0' + value % 10);
    } while ((value /= 10) != 0);
    return end;
}

/* `folder`, then the pieces; false: there is no such file, or nothing in it. */
static bool read_below(const char *folder, const char *const pieces[], char *text, size_t size) {
    char path[512];
    size_t length = strlen(folder);
    if (length >= sizeof path)
        return false;
    memcpy(path, folder, length);
    for (; *pieces != NULL; pieces++) {
        size_t more = strlen(*pieces);
        if (length + more >= sizeof path)
            return false;
        memcpy(path + length, *pieces, more);
        length += more;
    }
    path[length] = '\0';
    return file_read(path, text, size) > 0;
}

static void read_node(const char *folder, unsigned node, unsigned index, struct topology *topology) {
    char text[4096], digits[12];
    const char *at = text, *name = digits_of(node, digits + sizeof digits - 1);
    unsigned first, last;
    if (!read_below(folder, (const char *const[]){"/node", name, "/cpulist", NULL}, text, sizeof text))
        return;
    while (next_range(&at, &first, &last))
        for (unsigned cpu = first; cpu <= last && cpu < TOPOLOGY_CPUS_MAX; cpu++)
            topology->node_of[cpu] = (uint8_t)index;
}

/* Nodes that have memory alone do not count. */
void topology_read(const char *folder, struct topology *topology) {
    char text[512];
    const char *at = text;
    unsigned first, last, index = 0;
    memset(topology->node_of, 0, sizeof topology->node_of);
    topology->nodes = 1;
    if (!read_below(folder, (const char *const[]){"/has_cpu", NULL}, text, sizeof text))
        return;
    if (strchr(text, '-') == NULL && strchr(text, ',') == NULL)
        return;
    while (next_range(&at, &first, &last))
        for (unsigned node = first; node <= last && index < TOPOLOGY_NODES_MAX; node++)
            read_node(folder, node, index++, topology);
    topology->nodes = index > 0 ? index : 1;
}

const struct topology *topology_machine(void) {
    if (machine.nodes == 0)
        topology_read(folder_of_nodes, &machine);
    return &machine;
}

uint8_t topology_here(void) {
    unsigned cpu = 0;
    getcpu(&cpu, NULL);
    return topology_machine()->node_of[cpu % TOPOLOGY_CPUS_MAX];
}

void topology_pretend(const char *folder) {
    folder_of_nodes = folder != NULL ? folder : "/sys/devices/system/node";
    machine.nodes = 0;
}

/* --- CPUs that one may use ---------------------------------------------------------------------------- */

unsigned cpus_count(const struct cpus *cpus) {
    unsigned count = 0;
    for (unsigned i = 0; i < TOPOLOGY_CPUS_MAX / 64; i++)
        count += (unsigned)__builtin_popcountll(cpus->bits[i]);
    return count;
}

void cpus_allowed(struct cpus *cpus) {
    memset(cpus, 0, sizeof *cpus);
    sys(SYS_sched_getaffinity, 0, sizeof *cpus, cpus);
}

/* By libc's function, which others may have put something in front of that has to know. */
int cpus_allow(const struct cpus *cpus) {
    int before = errno, error = 0;
    if (sched_setaffinity(0, sizeof *cpus, (const cpu_set_t *)(const void *)cpus) != 0)
        error = errno;
    errno = before;
    return error;
}
