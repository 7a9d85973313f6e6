// SPDX-License-Identifier: Apache-2.0
//
// A program on a terminal of its own, in the foreground there as if a shell had started it: a test types, and reads what
// appears.
#pragma once

#include <string>

#include "spawn.hpp"

class Session {
  public:
    // All three standard streams are the terminal, which shows what is written as it is and does not repeat what is typed.
    // Of `world` the environment alone is taken. `columns`: its width; 0: it does not tell.
    explicit Session(const Words &words, const World &world = {}, unsigned short columns = 0);
    ~Session(); // ends what is left
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    void type(const std::string &bytes);
    void resize(unsigned short columns);
    // Reads on until `text` appears behind what was waited for before. False: the terminal came to its end without it.
    bool until(const std::string &text);
    // Reads all the rest. `out` is everything that appeared.
    Ended finish();
    const std::string &screen() const { return screen_; }

  private:
    bool read_more();

    int terminal_;
    pid_t pid_ = -1;
    std::string screen_;
    std::size_t seen_ = 0;
};
