// SPDX-License-Identifier: Apache-2.0
// How far apart two CPUs are: what a cache line takes to go from one to the other and back. The two of a virtual machine
// may be moved, from one core's to those of two sockets, while it runs: that takes 60 ns or 380, and what wakes a thread
// elsewhere half as long or twice. So each report says it.
#ifndef THRUM_BENCH_DISTANCE_HPP
#define THRUM_BENCH_DISTANCE_HPP

namespace bench {

// In ns, for the first and the last CPU that this process may use; 0: there are no two, or they had other work to do.
double cpu_distance();

} // namespace bench

#endif
