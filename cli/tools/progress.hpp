// SPDX-License-Identifier: Apache-2.0
//
// One line on the terminal that says how far a comparison or a benchmark is, and is gone in the end.
#pragma once

#include <cstddef>
#include <string>

namespace thrum {

// A line on stderr that the next one overwrites. Nothing is shown where stderr is no terminal.
class PassingLine {
  public:
    PassingLine();
    ~PassingLine() { clear(); }
    PassingLine(const PassingLine &) = delete;
    PassingLine &operator=(const PassingLine &) = delete;

    bool is_shown() const { return shown_; }
    std::size_t room() const; // in columns
    void show(const std::string &line);
    void clear();

  private:
    bool shown_, used_ = false;
    std::size_t drawn_ = 0; // characters that are on the terminal
};

class Progress {
  public:
    // Shows nothing where stderr is no terminal, or `wanted` is false. Draws `note`, unless it is empty.
    explicit Progress(bool wanted, const std::string &note = "warming up");

    void set_total(std::size_t runs) { total_ = runs; }
    // `seconds`: what a run takes, as far as one knows. Draws.
    void set_done(std::size_t runs, double seconds, const std::string &note);
    void draw();

  private:
    std::string text(std::size_t room) const;

    PassingLine line_;
    bool wanted_;
    std::size_t total_ = 0, done_ = 0;
    std::string note_;
    double each_ = 0, since_ = 0; // of a run; when the last one was done
};

} // namespace thrum
