// SPDX-License-Identifier: Apache-2.0
//
// An object that outlives the runtime, and for which a thread of it still waits: what wakes that thread finds its stack
// gone. One line says so (src/context/remains.h), instead of a bare crash or of another mapping overwritten.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thrum/thrum.hpp>

#include "depots.h"
#include "ult.hpp"

using namespace std::chrono_literals;

namespace {

const std::string kLine =
    "thrum: an object was used for which a thread of a runtime that has ended still waits; join such threads "
    "before the runtime ends (thrum_fini), or initialise the object again\n";

class Remains : public UltPlain {};

struct End {
    int status;
    std::string said;
};

// `use` after the end of a runtime in which a thread was left in `wait`: without a runtime, or in the next one.
End end_of(const std::function<void()> &wait, const std::function<void()> &use, bool in_the_next = false) {
    End end{};
    end.said = stderr_of([&] {
        end.status = in_child([&] {
            {
                const thrum::runtime runtime(2);
                thrum::thread(thrum::attributes().queued(), wait).detach();
                thrum::this_thread::sleep_for(10ms);
            }
            if (in_the_next) {
                const thrum::runtime runtime(2);
                use();
            } else {
                use();
            }
            return 1;
        });
    });
    return end;
}

void expect_told(const char *what, const End &end) {
    if (!ULT_ASAN && !ULT_TSAN) { // whose own handlers take the signal when ours has passed it on
        EXPECT_TRUE(WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGSEGV) << what << ": " << end.status;
    }
    EXPECT_NE(end.said.find(kLine), std::string::npos) << what << ": " << end.said;
}

// Each kind of queue.
TEST_F(Remains, OfAWaiterAreTold) {
    struct {
        thrum::mutex mutex;
        thrum::condition_variable condition;
        thrum::counting_semaphore<> semaphore{0};
        thrum::latch latch{1};
        thrum::barrier<> barrier{2};
        thrum::event event;
        thrum::channel<std::string> channel;
        thrum::promise<int> promise;
        thrum::future<int> future = promise.get_future();
    } at;
    for (const bool in_the_next : {false, true}) {
        expect_told("condition", end_of(
                                     [&] {
                                         std::unique_lock lock(at.mutex);
                                         at.condition.wait(lock);
                                     },
                                     [&] { at.condition.notify_one(); }, in_the_next));
        expect_told("semaphore",
                    end_of([&] { at.semaphore.acquire(); }, [&] { at.semaphore.release(); }, in_the_next));
        expect_told("latch", end_of([&] { at.latch.wait(); }, [&] { at.latch.count_down(); }, in_the_next));
        expect_told("barrier", end_of([&] { at.barrier.arrive_and_wait(); },
                                      [&] { at.barrier.arrive_and_wait(); }, in_the_next));
        expect_told("event", end_of([&] { at.event.wait(); }, [&] { at.event.set(); }, in_the_next));
        expect_told("receiver", end_of([&] { at.channel.receive(); },
                                       [&] { static_cast<void>(at.channel.try_send("x")); }, in_the_next));
        expect_told("future",
                    end_of([&] { at.future.wait(); }, [&] { at.promise.set_value(1); }, in_the_next));
        expect_told("when_any", end_of([&] { thrum::when_any(at.event, at.semaphore); },
                                       [&] { at.semaphore.release(); }, in_the_next));
    }
}

// Destructors that look at their queues: a sender's element, and a promise that breaks.
TEST_F(Remains, OfAWaiterAreToldByADestructor) {
    auto *channel = new thrum::channel<std::string>;
    expect_told("channel", end_of([&] { channel->send("x"); }, [&] { delete channel; }));
    delete channel;
    auto *promise = new thrum::promise<int>;
    thrum::future<int> future = promise->get_future();
    expect_told("promise", end_of([&] { future.wait(); }, [&] { delete promise; }));
    delete promise;
}

// No handler, and no addresses.
TEST_F(Remains, OfARuntimeWhoseThreadsHaveEndedAreNone) {
    EXPECT_EQ(in_child([] {
                  const auto handler = [] {
                      struct sigaction now = {};
                      sigaction(SIGSEGV, nullptr, &now);
                      return now.sa_sigaction;
                  };
                  const auto before = handler();
                  for (int i = 0; i < 3; i++) {
                      const thrum::runtime runtime(2);
                      thrum::thread([] { thrum::this_thread::sleep_for(1ms); }).join();
                      thrum::thread(thrum::attributes().stack_size(1 << 20), [] {}).join();
                  }
                  return handler() == before ? 0 : 1;
              }),
              0);
}

// The oldest go.
TEST_F(Remains, AreBounded) {
    EXPECT_EQ(in_child([] {
                  std::size_t after_many = 0;
                  for (int i = 0; i < 140; i++) {
                      {
                          const thrum::runtime runtime(1);
                          thrum::thread([] { thrum_suspend(); }).detach();
                          thrum::this_thread::yield();
                      }
                      if (i == 100)
                          after_many = reserved_bytes();
                  }
                  return reserved_bytes() <= after_many ? 0 : 1;
              }),
              0);
}

// As it would without: a handler that the program installs later still gets the signal, and overflows are recognised.
TEST_F(Remains, LeaveTheNextRuntimeItsHandler) {
    EXPECT_EQ(in_child([] {
                  {
                      const thrum::runtime runtime(1);
                      thrum::thread([] { thrum_suspend(); }).detach();
                      thrum::this_thread::yield();
                  }
                  struct sigaction ours = {};
                  ours.sa_handler = [](int) { _exit(42); };
                  sigaction(SIGSEGV, &ours, nullptr);
                  const thrum::runtime runtime(1);
                  struct sigaction now = {};
                  sigaction(SIGSEGV, nullptr, &now);
                  if (now.sa_handler == ours.sa_handler)
                      return 1;
                  void *const page = mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                  *static_cast<volatile char *>(page) = 1;
                  return 2;
              }),
              42 << 8);
}

} // namespace
