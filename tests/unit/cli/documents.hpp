// SPDX-License-Identifier: Apache-2.0
//
// Checks of the JSON, the traces and the pages that the command writes, by Python, which has readers of all. Of use to tests.
#pragma once

#include <string>

// What a few lines of Python print where they are given `input`, and one argument.
std::string python(const std::string &program, const std::string &input, const std::string &argument = "");

// What an expression is, `d` being the document: "d['points'][0]['threads']".
std::string json_value(const std::string &json, const std::string &expression);

// Every element is closed, in its order, and nothing is fetched or run.
void expect_sound_page(const std::string &page);

// A trace of `thrum stat`, in the Trace Event Format's JSON: as strictly as Perfetto reads it, and further. Its own reader is
// not tried, since no package brings it; what it asks for is what src/trace_processor/importers does there:
//
//   the text     UTF-8 and JSON, without NaN and the like, and no member twice
//   the document an object of `displayTimeUnit` (first, or it is not heeded), `traceEvents` and `otherData`
//   each event   `ph`, `pid` and `tid` (numbers of 32 bits), `name`, `args`
//   ph X         besides, `cat`, `ts` and `dur`: numbers from 0 on. The slices of a thread are in order and do not overlap by
//                a nanosecond: those that do are dropped
//   ph M         nothing else; `args` has what its `name` takes: process_name and thread_name a `name`, thread_sort_index a
//                `sort_index`. Each once, of each thread that has slices before them
//
// `is_made_up`: times and numbers of threads are as no run has them, and not looked at.
void expect_sound_trace(const std::string &trace, bool is_made_up = false);
