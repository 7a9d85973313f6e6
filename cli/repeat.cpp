// SPDX-License-Identifier: Apache-2.0
#include "repeat.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

namespace thrum {

void repeat(double seconds, const std::function<void()> &show) {
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    for (;;) {
        if (seconds > 0 && is_terminal)
            std::cout << "\033[H\033[2J";
        show();
        std::cout.flush();
        if (seconds <= 0 || !std::cout)
            return;
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
}

} // namespace thrum
