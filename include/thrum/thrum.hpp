// SPDX-License-Identifier: Apache-2.0
/* libthrum from C++20: the standard library's thread support, for threads that cost nanoseconds.
 *
 *     #include <cstdio>
 *     #include <thrum/thrum.hpp>
 *
 *     int main() {
 *         thrum::future<int> answer = thrum::async([] { return 6 * 7; });
 *         thrum::thread thread([] { std::puts("hello"); });
 *         thread.join();
 *         return answer.get() == 42 ? 0 : 1;
 *     }
 *
 *     c++ -std=c++20 hello.cpp $(pkg-config --cflags --libs thrum)
 *
 * Names, arguments and exceptions follow the standard library where it has an equivalent. All of it is inline code over
 * the functions of <thrum/thrum.h>. That header says in which contexts a function may be called, and what happens to
 * thread-local variables: use them between two waits, not across one. Each header below can be included by itself;
 * docs/guide/cpp.md shows them together. */
#ifndef THRUM_THRUM_HPP
#define THRUM_THRUM_HPP

#if __cplusplus < 202002L
#error "thrum.hpp needs C++20: -std=c++20, or target_compile_features(... cxx_std_20)"
#else
#include "thrum/hpp/attributes.hpp"
#include "thrum/hpp/await.hpp"
#include "thrum/hpp/barrier.hpp"
#include "thrum/hpp/branch.hpp"
#include "thrum/hpp/channel.hpp"
#include "thrum/hpp/condition_variable.hpp"
#include "thrum/hpp/condition_variable_any.hpp"
#include "thrum/hpp/event.hpp"
#include "thrum/hpp/executor.hpp"
#include "thrum/hpp/future.hpp"
#include "thrum/hpp/guards.hpp"
#include "thrum/hpp/latch.hpp"
#include "thrum/hpp/local.hpp"
#include "thrum/hpp/mutex.hpp"
#include "thrum/hpp/packaged_task.hpp"
#include "thrum/hpp/parallel.hpp"
#include "thrum/hpp/pool.hpp"
#include "thrum/hpp/runtime.hpp"
#include "thrum/hpp/scope.hpp"
#include "thrum/hpp/semaphore.hpp"
#include "thrum/hpp/shared_future.hpp"
#include "thrum/hpp/task.hpp"
#include "thrum/hpp/task_group.hpp"
#include "thrum/hpp/thread.hpp"
#include "thrum/hpp/when_any.hpp"
#include "thrum/hpp/worker.hpp"
#endif

#endif
