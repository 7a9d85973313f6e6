// SPDX-License-Identifier: Apache-2.0
//
// Where a program's threads come from, as far as its report knows: used by rules/.
#pragma once

#include "stat/facts.hpp"

namespace thrum::stat {

struct Origins {
    Place made;   // the caller of pthread_create()
    Place joined; // where most are waited for, which is not far from there
    Place begun;  // the function that most begin in
    const Place &best() const { return made.is_known() ? made : joined.is_known() ? joined : begun; }
};
Origins origins_of(const Report &report);

// Of OpenMP's threads: where the program's code has the parallel regions that they work in.
Place place_of_region(const Report &report);

} // namespace thrum::stat
