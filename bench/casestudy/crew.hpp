// SPDX-License-Identifier: Apache-2.0
//
// What runs tasks: kernel threads, or user-level threads. What a task may need of its runtime, in terms that both
// have. Used by tasks.cpp.
#ifndef THRUM_BENCH_CASESTUDY_CREW_HPP
#define THRUM_BENCH_CASESTUDY_CREW_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace casestudy {

// One waits, another rings, in any order, once.
class Bell {
  public:
    virtual ~Bell() = default;
    virtual void wait() = 0;
    virtual void ring() = 0; // by a kernel thread, too
};

class Crew {
  public:
    static constexpr unsigned kFew = 8;
    virtual ~Crew() = default;
    // Makes the crew, has task(0) to task(count - 1) done, and returns when all is gone.
    virtual void run(unsigned count, const std::function<void(unsigned)> &task) = 0;

    // For tasks. Moments are in ns on CLOCK_MONOTONIC.
    virtual void sleep_until(std::uint64_t moment) = 0;
    virtual void yield() = 0;
    virtual std::unique_ptr<Bell> bell() = 0;
    virtual void block(const std::function<void()> &call) = 0; // something that blocks in the kernel
    // The same; where a thread that blocks takes a kernel thread, at most kFew do so at a time.
    virtual void block_few(const std::function<void()> &call) = 0;
};

std::unique_ptr<Crew> make_crew(const std::string &name, unsigned size);

std::uint64_t now_ns();
void sleep_in_kernel_until(std::uint64_t moment);

} // namespace casestudy

#endif
