// SPDX-License-Identifier: Apache-2.0
#include "tools/machine.hpp"

#include <gnu/libc-version.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tools/clock.hpp"

namespace thrum {

namespace {

double own_time() {
    double sum = 0;
    for (const int whose : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage;
        if (getrusage(whose, &usage) == 0)
            sum += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    }
    return sum;
}

// The first line of /proc/stat: "cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...", in ticks.
void read_stat(Moment &moment) {
    std::ifstream file("/proc/stat");
    std::string name;
    double user, nice, system, idle, wait, irq, softirq, steal;
    if (!(file >> name >> user >> nice >> system >> idle >> wait >> irq >> softirq >> steal) || name != "cpu")
        return;
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    moment.busy = (user + nice + system + irq + softirq) / ticks;
    moment.stolen = steal / ticks;
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS".
std::optional<double> read_pressure() {
    std::ifstream file("/proc/pressure/cpu");
    std::string line;
    std::getline(file, line);
    const std::size_t at = line.find("total=");
    double total;
    if (at == std::string::npos || !(std::istringstream(line.substr(at + 6)) >> total))
        return std::nullopt;
    return total * 1e-6;
}

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.compare(0, 10, "model name") == 0 && line.find(": ") != std::string::npos)
            return line.substr(line.find(": ") + 2);
    return "";
}

} // namespace

Moment moment_now() {
    Moment moment;
    moment.seconds = seconds_now();
    moment.own = own_time();
    read_stat(moment);
    moment.waited = read_pressure();
    std::ifstream("/proc/loadavg") >> moment.load;
    return moment;
}

Load load_between(const Moment &before, const Moment &after) {
    Load load;
    load.seconds = after.seconds - before.seconds;
    load.load_before = before.load;
    load.load_after = after.load;
    if (load.seconds <= 0)
        return load;
    if (before.busy && after.busy) {
        const double others = (*after.busy - *before.busy) - (after.own - before.own);
        load.others = std::max(0.0, others / load.seconds);
        load.stolen = std::max(0.0, (after.stolen - before.stolen) / load.seconds);
    }
    if (before.waited && after.waited)
        load.waited = std::min(1.0, (*after.waited - *before.waited) / load.seconds);
    return load;
}

Machine this_machine() {
    Machine machine;
    machine.processor = processor_name();
    machine.libc = std::string("glibc ") + gnu_get_libc_version();
    utsname system;
    if (uname(&system) == 0)
        machine.kernel = std::string(system.sysname) + " " + system.release + " " + system.machine;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        machine.processors = static_cast<unsigned>(std::max(1, CPU_COUNT(&allowed)));
    return machine;
}

} // namespace thrum
