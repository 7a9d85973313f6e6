// SPDX-License-Identifier: Apache-2.0
//
// One line on the terminal that says how far a comparison is, and is gone in the end. Used by compare.cpp.
#pragma once

#include <cstddef>
#include <string>

namespace thrum {

class Progress {
  public:
    // Shows nothing where stderr is no terminal, or `wanted` is false.
    explicit Progress(bool wanted);
    ~Progress(); // clears the line
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void set_total(std::size_t runs) { total_ = runs; }
    // `seconds`: what a run takes, as far as one knows. Draws.
    void set_done(std::size_t runs, double seconds, const std::string &note);
    void draw();

  private:
    std::string text(std::size_t room) const;
    void erase(std::size_t columns);

    bool shown_;
    std::size_t drawn_ = 0; // characters that are on the terminal
    std::size_t total_ = 0, done_ = 0;
    std::string note_ = "warming up";
    double each_ = 0, since_ = 0; // of a run; when the last one was done
};

} // namespace thrum
