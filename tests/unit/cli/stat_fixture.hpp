// SPDX-License-Identifier: Apache-2.0
//
// Reports of `thrum stat`, made up, for the tests of what shows them (cli/stat/report.hpp).
#pragma once

#include "stat/report.hpp"

// Four threads that draw from random(3), slower than one.
thrum::stat::Report report_of_random();

// Threads that each do their part of the work.
thrum::stat::Report report_that_scales();

// One run on a busy machine, with names as bad as a program may choose them, numbers that are none, and indexes to
// nowhere.
thrum::stat::Report report_inconclusive();
