// SPDX-License-Identifier: Apache-2.0
//
// stress-preempt: all combinations of what the command line lists, each in a process of its own: malloc's settings
// are taken from its environment, and change from one to the next.
#ifndef TESTS_STRESS_PREEMPT_MATRIX_H
#define TESTS_STRESS_PREEMPT_MATRIX_H

#include <string>
#include <vector>

#include "preempt_options.h"

// The program's exit status: of the first run that fails, or what all come to.
int matrix_run(const CommandLine &line);

// This program once more. Its status, as waitpid tells it. What it says goes to `said` instead, if that is not nullptr;
// else *report_to is where to read its report.
int run_self(const std::vector<std::string> &arguments, const char *malloc_settings, std::string *said,
             int *report_to);

#endif
