// SPDX-License-Identifier: Apache-2.0
//
// What a measuring process of bench/cholesky does: factorises one matrix with one crew, again and again for a while, and
// prints a line.
#ifndef THRUM_BENCH_CHOLESKY_WORK_HPP
#define THRUM_BENCH_CHOLESKY_WORK_HPP

#include <string>
#include <vector>

namespace cholesky {

// The words: crew (kOsThreads and so on), size, tile, workers, outer, members, seconds. The line: the median of the
// times, CPU time and preemptions of one factorisation, and the largest error of all; or preempt::kUnavailable.
void work(const std::vector<std::string> &words);

constexpr const char *kOsThreads = "os-threads", *kUlts = "ults", *kPatched = "ults-patched", *kGang = "gang";

} // namespace cholesky

#endif
