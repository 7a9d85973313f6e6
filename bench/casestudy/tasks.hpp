// SPDX-License-Identifier: Apache-2.0
//
// The tasks of the case study, and what runs them: a number of kernel threads, or user-level threads on a number of
// workers. Every measurement is a process of its own that does this and nothing else:
//
//     PROGRAM --work CREW SIZE TASKS ACTION...        go CREW SIZE TASKS ACTION...
//
// CREW is "threads" (SIZE kernel threads take the tasks from one queue), "ults" (each task is a thread of libthrum, on
// SIZE workers), or, of the program in go/, "goroutines" (each task is one, GOMAXPROCS is SIZE) or "pool" (SIZE
// goroutines take the tasks from one queue). A task does its ACTIONs one after the other:
//
//     sleep:S      sleeps for S seconds as its runtime does it: kernel threads in the kernel, others in a timer queue
//     kernel:S     in the kernel, whatever the runtime
//     poll:S       looks at the clock until then and lets others run in between
//     bell:S       waits for a condition variable, which a clock thread signals when it is time
//     compute:N    goes N times around a loop
//     write:K:DIR  writes K KiB to a file in DIR and waits until the disk has them; ULTs through thrum_blocking
//     few:K:DIR    the same, eight ULTs at a time
//     direct:K:DIR the same on the worker itself
//
// The process says "begin" before the crew is made and, when it has gone, what that took.
#ifndef THRUM_BENCH_CASESTUDY_TASKS_HPP
#define THRUM_BENCH_CASESTUDY_TASKS_HPP

#include <string>
#include <vector>

namespace casestudy {

// Called in the process of the measurement, with the words after --work.
void work(const std::vector<std::string> &words);

} // namespace casestudy

#endif
