// SPDX-License-Identifier: Apache-2.0
//
// Misuse that ends the process. Used by the misuse_*test.cpp.
#pragma once

#include <signal.h>
#include <sys/wait.h>

#include <functional>
#include <string>

#include "ult.hpp"

// `work` ends its process by SIGABRT after a line that has `words` in it.
inline void expect_abort(const std::function<void()> &work, const std::string &words) {
    int status = 0;
    const std::string said = stderr_of([&] {
        status = in_child([&] {
            work();
            return 0;
        });
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << "status " << status;
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_EQ(said.find("assertion"), std::string::npos) << said;
}
