// SPDX-License-Identifier: Apache-2.0
//
// Checks of the JSON and the pages that the command writes, by Python, which has readers of both. Of use to tests.
#pragma once

#include <string>

// What a few lines of Python print where they are given `input`.
std::string python(const std::string &program, const std::string &input);

// What an expression is, `d` being the document: "d['points'][0]['threads']".
std::string json_value(const std::string &json, const std::string &expression);

// Every element is closed, in its order, and nothing is fetched or run.
void expect_sound_page(const std::string &page);
