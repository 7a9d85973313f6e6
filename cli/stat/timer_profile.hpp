// SPDX-License-Identifier: Apache-2.0
//
// The CPU profile by timers inside the program, for profile.cpp.
#pragma once

#include <memory>
#include <string>

#include "stat/layers.hpp"

namespace thrum::stat {

// `why_not`: why there is no better profile; where there is none at all, the reason for that is added.
std::unique_ptr<CpuProfile> make_timer_profile(const std::string &program, double rate, std::string &why_not);

} // namespace thrum::stat
