// SPDX-License-Identifier: Apache-2.0
//
// A file that a long measurement writes its result to. Opened before the measurement: a slip in its name is not to cost
// that time. "-" is standard output. Used by compare.cpp, stat.cpp, trace.cpp and repeat.cpp.
#pragma once

#include <string>

namespace thrum {

// One that was made for nothing is taken away again, one that was there before is only overwritten by write(). While there
// is an OutputFile of it, a second one is refused: one of the two results would be lost.
class OutputFile {
  public:
    // An empty path: no file is wanted. Throws Failure (1), as write() does.
    explicit OutputFile(const std::string &path);
    ~OutputFile();
    OutputFile(const OutputFile &) = delete;
    OutputFile &operator=(const OutputFile &) = delete;

    // In the place of a file's name.
    static constexpr const char *kStandard = "-";

    bool wanted() const { return fd_ >= 0; }
    // In the place of what was there before.
    void write(const std::string &text);
    // Behind what was written; what was there before the first time is gone.
    void add(const std::string &text);
    // For a writer with streams of its own: what was there before the first time is gone.
    int begin();
    // What could not be done with it, by errno.
    [[noreturn]] void fail() const;

  private:
    void open_file();
    bool claim();
    std::string path_;
    int fd_ = -1;
    bool is_stream_ = false; // what is there already is others'
    bool made_ = false, written_ = false;
};

// As a message has it: "standard output" for "-".
std::string name_of_output(const std::string &path);

} // namespace thrum
