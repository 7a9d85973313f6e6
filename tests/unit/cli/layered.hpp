// SPDX-License-Identifier: Apache-2.0
//
// Running a program under a layer of `thrum stat`, as run.cpp does: for the tests of libthrum-stat.so.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "stat/layers.hpp"
#include "tools/clock.hpp"

using Words = std::vector<std::string>;

struct Ended {
    int status = 0;
    std::string out;
};

[[noreturn]] inline void become(const Words &words, const thrum::stat::Layer *layer, int go, int out) {
    char byte;
    if (dup2(out, 1) < 0 || read(go, &byte, 1) != 1)
        _exit(96);
    const Words variables = layer != nullptr ? layer->environment() : Words{};
    for (const std::string &entry : variables)
        putenv(const_cast<char *>(entry.c_str()));
    std::vector<char *> arguments;
    for (const std::string &word : words)
        arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(95);
}

inline bool take_output(int fd, std::string &out) {
    pollfd stream{fd, POLLIN, 0};
    if (poll(&stream, 1, 5) <= 0)
        return true;
    char block[4096];
    const ssize_t got = read(fd, block, sizeof block);
    if (got > 0)
        out.append(block, static_cast<std::size_t>(got));
    return got > 0;
}

inline Ended run(const Words &words, thrum::stat::Layer *layer = nullptr) {
    int go[2], out[2];
    Ended ended;
    if (pipe2(go, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return ended;
    const pid_t child = fork();
    if (child == 0)
        become(words, layer, go[0], out[1]);
    close(out[1]);
    if (layer != nullptr)
        layer->forked(child);
    EXPECT_EQ(write(go[1], "", 1), 1);
    const double begin = thrum::seconds_now();
    while (take_output(out[0], ended.out))
        if (layer != nullptr)
            layer->poll(thrum::seconds_now() - begin);
    waitpid(child, &ended.status, 0);
    for (const int fd : {go[0], go[1], out[0]})
        close(fd);
    return ended;
}

// In a process of its own, because it changes what cannot be changed back.
template <class Body>
void apart(const Body &body) {
    const pid_t child = fork();
    if (child == 0) {
        body();
        std::fflush(nullptr);
        _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}
