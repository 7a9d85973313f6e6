// SPDX-License-Identifier: Apache-2.0
//
// A file that a long measurement writes its result to. Opened before the measurement: a slip in its name is not to cost
// that time. Used by compare.cpp and stat.cpp.
#pragma once

#include <string>

namespace thrum {

// One that was made for nothing is taken away again, one that was there before is only overwritten by write().
class OutputFile {
  public:
    // An empty path: no file is wanted. Throws Failure (1), as write() does.
    explicit OutputFile(const std::string &path);
    ~OutputFile();
    OutputFile(const OutputFile &) = delete;
    OutputFile &operator=(const OutputFile &) = delete;

    bool wanted() const { return fd_ >= 0; }
    void write(const std::string &text);

  private:
    [[noreturn]] void fail() const;

    std::string path_;
    int fd_ = -1;
    bool made_ = false, written_ = false;
};

} // namespace thrum
