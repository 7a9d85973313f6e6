// SPDX-License-Identifier: Apache-2.0
//
// A file that is closed with its owner.
#pragma once

#include <unistd.h>

#include <string>
#include <utility>

namespace thrum {

class Descriptor {
  public:
    explicit Descriptor(int fd = -1) : fd_(fd) {} // -1: none
    Descriptor(Descriptor &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor &operator=(Descriptor &&other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor() {
        if (fd_ >= 0)
            close(fd_);
    }
    int get() const { return fd_; }
    bool is_open() const { return fd_ >= 0; }

  private:
    int fd_;
};

// Throws Failure (1), with the reason.
Descriptor open_file(const std::string &path, int flags);

} // namespace thrum
