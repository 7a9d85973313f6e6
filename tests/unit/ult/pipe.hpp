// SPDX-License-Identifier: Apache-2.0
//
// A pipe of single bytes: reading from it waits in the kernel.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

class Pipe {
  public:
    Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
    ~Pipe() {
        close(ends_[0]);
        close(ends_[1]);
    }
    Pipe(const Pipe &) = delete;
    char get() const {
        char c = 0;
        EXPECT_EQ(read(ends_[0], &c, 1), 1);
        return c;
    }
    void put(char c) const { EXPECT_EQ(write(ends_[1], &c, 1), 1); }

  private:
    std::array<int, 2> ends_{};
};
