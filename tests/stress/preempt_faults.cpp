// SPDX-License-Identifier: Apache-2.0
//
// See preempt_faults.h. The handler returns, and by then there is none: the instruction faults again, and that ends the
// process.
#include "preempt_faults.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "preempt_pcs.h"

namespace {

void tell(int, siginfo_t *, void *context) {
    const Interrupted at = pcs_interrupted(context);
    const auto phase = at.actor != nullptr ? at.actor->phase.load() : static_cast<unsigned>(kElsewhere);
    char line[200];
    const int length = std::snprintf(
        line, sizeof line, "stress-preempt: a fault in %s, on %s stack, who is in %s (%s, seed %llu)\n",
        at.module, at.actor != nullptr ? "an actor's" : "no actor's", name_of(static_cast<Phase>(phase)),
        name_of(options.mode), static_cast<unsigned long long>(options.seed));
    (void)!write(STDERR_FILENO, line, static_cast<std::size_t>(std::min(length, 199)));
}

} // namespace

void faults_are_told() {
    struct sigaction action = {};
    action.sa_sigaction = tell;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    CHECK_EQ(sigaction(SIGSEGV, &action, nullptr), 0);
}
