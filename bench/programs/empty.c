// SPDX-License-Identifier: Apache-2.0
/* A library with nothing in it: what the loader takes for preloading anything at all (preload_cost). */
extern int thrum_bench_empty;
int thrum_bench_empty;
