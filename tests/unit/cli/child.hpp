// SPDX-License-Identifier: Apache-2.0
//
// A program that is looked at from its beginning on.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <utility>
#include <vector>

#include "spawn.hpp"

// A program that stands before its execve(2) until go(); ended with this.
class Child {
  public:
    explicit Child(const Words &words) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0 || (pid_ = fork()) < 0)
            throw std::runtime_error("no child");
        if (pid_ == 0) {
            char byte;
            close(ends[1]);
            if (read(ends[0], &byte, 1) < 0 || dup2(open("/dev/null", O_WRONLY), 1) < 0)
                _exit(96);
            std::vector<char *> pointers;
            for (const std::string &word : words)
                pointers.push_back(const_cast<char *>(word.c_str()));
            pointers.push_back(nullptr);
            execv(pointers[0], pointers.data());
            _exit(95);
        }
        close(ends[0]);
        gate_ = ends[1];
    }
    ~Child() {
        go();
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Child(const Child &) = delete;
    Child &operator=(const Child &) = delete;

    pid_t pid() const { return pid_; }
    void go() {
        if (gate_ >= 0)
            close(std::exchange(gate_, -1));
    }

  private:
    pid_t pid_ = -1;
    int gate_ = -1;
};
