// SPDX-License-Identifier: Apache-2.0
#include "repeat.hpp"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <sstream>
#include <thread>

#include "tools/output_file.hpp"

namespace thrum {

namespace {

// What is shown goes to standard output by way of std::cout, and here to a string in its place.
class Caught {
  public:
    Caught() : before_(std::cout.rdbuf(text_.rdbuf())) {}
    ~Caught() { std::cout.rdbuf(before_); }
    Caught(const Caught &) = delete;
    Caught &operator=(const Caught &) = delete;
    std::string text() const { return text_.str(); }

  private:
    std::ostringstream text_;
    std::streambuf *before_;
};

std::string caught(const std::function<void()> &show) {
    const Caught to;
    show();
    return to.text();
}

} // namespace

void repeat(double seconds, const std::string &output, const std::function<void()> &show) {
    const bool is_file = !output.empty() && output != OutputFile::kStandard;
    OutputFile file(is_file ? output : "");
    const bool is_terminal = !is_file && isatty(STDOUT_FILENO) == 1;
    for (;;) {
        if (is_file || (seconds > 0 && is_terminal)) {
            const std::string text =
                caught(show); // if there is nothing to show any more, the last look stays
            if (is_file)
                file.add(text);
            else
                std::cout << "\033[H\033[2J" << text;
        } else {
            show();
        }
        std::cout.flush();
        if (seconds <= 0 || !std::cout)
            return;
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    }
}

} // namespace thrum
