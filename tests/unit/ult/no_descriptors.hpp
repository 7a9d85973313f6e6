// SPDX-License-Identifier: Apache-2.0
//
// Takes all descriptors of threads: thrum_spawn and the like fail from here on, while threads that are there go on.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <thrum/sync.h>

#include <atomic>
#include <deque>

#include "crew.hpp"
#include "faults.hpp"

class NoDescriptors {
  public:
    NoDescriptors() {
        faults.mmap.after(0, INT_MAX, ENOMEM);
        int error = 0;
        while (error == 0 && all_.size() < kMany) {
            Waiting &one = all_.emplace_back();
            one.left = &left_;
            one.wait = {THRUM_WAIT_EVENT, 0, &over_, nullptr, {}};
            one.when = {&one.wait, 1, kNever, leave, &one, 0, 0, 0, {}};
            left_++;
            error = thrum_spawn_when(nullptr, &one.when);
        }
        left_--;
        EXPECT_EQ(error, EAGAIN) << "after " << all_.size();
    }
    NoDescriptors(const NoDescriptors &) = delete;
    ~NoDescriptors() {
        faults_clear();
        thrum_event_set(&over_);
        EXPECT_TRUE(eventually([this] { return left_ == 0; }));
    }

  private:
    static constexpr std::size_t kMany = 100000; // more than what is kept at hand
    struct Waiting {
        std::atomic<int> *left = nullptr;
        thrum_wait_t wait{};
        thrum_when_t when{};
    };
    static void leave(void *arg) { --*static_cast<Waiting *>(arg)->left; }

    thrum_event_t over_ = THRUM_EVENT_INITIALIZER;
    std::atomic<int> left_{0};
    std::deque<Waiting> all_;
};
