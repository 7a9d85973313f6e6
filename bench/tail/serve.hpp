// SPDX-License-Identifier: Apache-2.0
//
// A server for the other end of wire.hpp, which is measured: each request is a user-level thread, or a kernel thread.
#ifndef THRUM_BENCH_TAIL_SERVE_HPP
#define THRUM_BENCH_TAIL_SERVE_HPP

#include <string>
#include <vector>

namespace tail {

// `words`: the kind of server ("ults", "priorities", "threads"), how many orders come, and how many seconds after the
// last one the answers are read, if not all have been given before. Workers and preemption are as the environment
// says (libthrum(7)). Ends the process: there may be requests that never end.
[[noreturn]] void serve(const std::vector<std::string> &words);

} // namespace tail

#endif
