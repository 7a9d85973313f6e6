// SPDX-License-Identifier: Apache-2.0
//
// Threads that do one thing together: the simulation's, whatever kind of thread they are (threads.hpp).
#ifndef THRUM_BENCH_INSITU_TEAM_HPP
#define THRUM_BENCH_INSITU_TEAM_HPP

#include <functional>

namespace insitu {

class Team {
  public:
    using Part = std::function<void(unsigned)>;
    virtual ~Team() = default;
    virtual unsigned size() const = 0;
    // part(0) to part(size() - 1), at the same time; returns when all have been done.
    virtual void run(const Part &part) = 0;
};

// One after the other.
class Alone final : public Team {
  public:
    explicit Alone(unsigned size) : size_(size) {}
    unsigned size() const override { return size_; }
    void run(const Part &part) override {
        for (unsigned i = 0; i < size_; i++)
            part(i);
    }

  private:
    unsigned size_;
};

} // namespace insitu

#endif
