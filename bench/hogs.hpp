// SPDX-License-Identifier: Apache-2.0
//
// Processes of others that want all of the CPUs, for the lifetime of an object of this class.
#ifndef THRUM_BENCH_HOGS_HPP
#define THRUM_BENCH_HOGS_HPP

#include <vector>

#include <sys/types.h>

namespace bench {

class Hogs {
  public:
    explicit Hogs(unsigned per_cpu); // per CPU that this process may use; Failure if one cannot be started
    ~Hogs();
    Hogs(const Hogs &) = delete;
    Hogs &operator=(const Hogs &) = delete;

  private:
    void end();
    std::vector<pid_t> processes_;
};

} // namespace bench

#endif
