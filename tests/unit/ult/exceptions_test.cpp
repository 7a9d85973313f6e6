// SPDX-License-Identifier: Apache-2.0
//
// C++ exceptions in ULTs: each has its own in flight, wherever it is switched out and on whatever worker it resumes.
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <stdexcept>

#include "ult.hpp"

namespace {

class Exceptions : public Ult {};

// libstdc++ asks for the kernel thread's state in each of these calls; never inlined, so that nothing is kept of it.
__attribute__((noinline)) bool nothing_in_flight() {
    return std::current_exception() == nullptr && std::uncaught_exceptions() == 0;
}

__attribute__((noinline)) int current_number() {
    try {
        if (std::current_exception() == nullptr)
            return -1;
        throw;
    } catch (int value) {
        return value;
    } catch (...) {
        return -2;
    }
}

__attribute__((noinline)) int uncaught() {
    return std::uncaught_exceptions();
}

__attribute__((noinline)) long kernel_thread() {
    return syscall(SYS_gettid);
}

// The whole body runs on 8 ULTs at the same time, numbered.
void on_eight(const std::function<void(int)> &body) {
    in_ult([&] {
        std::vector<std::unique_ptr<Light>> threads;
        for (int i = 0; i < 8; i++)
            threads.push_back(std::make_unique<Light>([&body, i] { body(i); }));
    });
}

TEST_P(Exceptions, AreThrownAndCaught) {
    on_eight([](int me) {
        for (int i = 0; i < 1000; i++) {
            int caught = -1;
            try {
                throw me * 1000 + i;
            } catch (int value) {
                caught = value;
            }
            ASSERT_EQ(caught, me * 1000 + i);
            if (i % 50 == 0)
                thrum_yield();
        }
    });
}

__attribute__((noinline)) int throw_below(int depth, int value) {
    if (depth == 0)
        throw std::runtime_error(std::to_string(value));
    return throw_below(depth - 1, value) + 1;
}

TEST_P(Exceptions, UnwindThroughManyFrames) {
    on_eight([](int me) {
        for (int i = 0; i < 50; i++) {
            std::string caught;
            try {
                throw_below(100, me * 100 + i);
            } catch (const std::exception &error) {
                caught = error.what();
            }
            ASSERT_EQ(caught, std::to_string(me * 100 + i));
        }
    });
}

// Every one of them is in a catch block while the others throw, catch and leave theirs.
TEST_P(Exceptions, SwitchInACatchBlock) {
    on_eight([](int me) {
        for (int i = 0; i < 200; i++) {
            int again = -1;
            try {
                try {
                    throw me;
                } catch (int value) {
                    ASSERT_EQ(value, me);
                    for (int k = 0; k < 3; k++) {
                        thrum_yield();
                        ASSERT_EQ(current_number(), me);
                        ASSERT_EQ(uncaught(), 0);
                    }
                    throw;
                }
            } catch (int value) {
                again = value;
            }
            ASSERT_EQ(again, me);
            ASSERT_TRUE(nothing_in_flight());
        }
    });
}

TEST_P(Exceptions, NestedCatchBlocksWithSwitches) {
    on_eight([](int me) {
        for (int i = 0; i < 100; i++) {
            try {
                throw me;
            } catch (int) {
                thrum_yield();
                try {
                    throw me + 100;
                } catch (int) {
                    thrum_yield();
                    ASSERT_EQ(current_number(), me + 100);
                }
                thrum_yield();
                ASSERT_EQ(current_number(), me);
            }
            ASSERT_TRUE(nothing_in_flight());
        }
    });
}

// A destructor that waits while its ULT unwinds.
struct WaitsAtItsEnd {
    int *counted;
    ~WaitsAtItsEnd() {
        for (int k = 0; k < 3; k++) {
            thrum_yield();
            *counted += uncaught();
        }
    }
};

TEST_P(Exceptions, SwitchWhileUnwinding) {
    on_eight([](int me) {
        for (int i = 0; i < 200; i++) {
            int counted = 0, caught = -1;
            try {
                const WaitsAtItsEnd waits{&counted};
                if (me % 2 == 0)
                    throw me;
            } catch (int value) {
                caught = value;
            }
            ASSERT_EQ(counted, me % 2 == 0 ? 3 : 0);
            ASSERT_EQ(caught, me % 2 == 0 ? me : -1);
            ASSERT_TRUE(nothing_in_flight());
        }
    });
}

// A new ULT begins with none in flight, though its maker, on whose worker it runs at once, has one.
TEST_P(Exceptions, SpawnInACatchBlock) {
    const thrum_attr_t queued = attr_queued();
    on_eight([&](int me) {
        for (int i = 0; i < 100; i++) {
            try {
                throw me;
            } catch (int) {
                for (const thrum_attr_t *attr : {static_cast<const thrum_attr_t *>(nullptr), &queued}) {
                    Light child(
                        [me] {
                            ASSERT_TRUE(nothing_in_flight());
                            try {
                                throw me + 100;
                            } catch (int) {
                                thrum_yield();
                                ASSERT_EQ(current_number(), me + 100);
                            }
                            ASSERT_TRUE(nothing_in_flight());
                        },
                        attr);
                    ASSERT_EQ(current_number(), me);
                    child.join();
                    ASSERT_EQ(current_number(), me);
                }
            }
            ASSERT_TRUE(nothing_in_flight());
        }
    });
}

TEST_P(Exceptions, WaitInACatchBlock) {
    thrum_mutex_t mutex = THRUM_MUTEX_INITIALIZER;
    on_eight([&](int me) {
        for (int i = 0; i < 100; i++) {
            try {
                throw me;
            } catch (int) {
                thrum_mutex_lock(&mutex);
                thrum_yield();
                thrum_mutex_unlock(&mutex);
                ASSERT_EQ(current_number(), me);
            }
            ASSERT_TRUE(nothing_in_flight());
        }
    });
}

// Thrown on one kernel thread, caught there, and rethrown on another.
TEST_P(Exceptions, MigrationInACatchBlock) {
    if (workers() == 1)
        GTEST_SKIP() << "there is nowhere to go";
    in_ult([] {
        int moved = 0;
        EXPECT_TRUE(eventually([&] {
            int again = -1;
            const long before = kernel_thread();
            try {
                try {
                    throw 17;
                } catch (int) {
                    const Light child([] { spin_us(100); }); // this one is in the queue meanwhile
                    moved += kernel_thread() != before;
                    throw;
                }
            } catch (int value) {
                again = value;
            }
            EXPECT_EQ(again, 17);
            EXPECT_TRUE(nothing_in_flight());
            return moved >= 20 || testing::Test::HasFailure();
        }));
    });
}

TEST_P(Exceptions, TravelToTheJoiner) {
    in_ult([] {
        for (int i = 0; i < 300; i++) {
            std::exception_ptr thrown;
            Light([&] {
                try {
                    throw i;
                } catch (...) {
                    thrown = std::current_exception();
                }
            }).join();
            int caught = -1;
            try {
                std::rethrow_exception(thrown);
            } catch (int value) {
                caught = value;
            }
            ASSERT_EQ(caught, i);
        }
    });
}

// The bound thread's are its own as well.
TEST_P(Exceptions, OfTheThreadThatCalledInit) {
    for (int i = 0; i < 100; i++) {
        try {
            throw 5;
        } catch (int) {
            Light([] {
                ASSERT_TRUE(nothing_in_flight());
                try {
                    throw 6;
                } catch (int) {
                    thrum_yield();
                    ASSERT_EQ(current_number(), 6);
                }
            }).join();
            thrum_yield();
            ASSERT_EQ(current_number(), 5);
        }
        ASSERT_TRUE(nothing_in_flight());
    }
}

ULT_OVER_WORKERS(Exceptions);

class UncaughtException : public UltPlain {};

// As in a thread of libc's: the program ends.
TEST_F(UncaughtException, Terminates) {
    for (const unsigned workers : {1U, 2U}) {
        const int status = in_child([workers] {
            std::set_terminate([] { _exit(77); });
            const thrum_config config{workers, 0, {}, {}};
            if (thrum_init(&config) != 0)
                return 1;
            in_ult([] { throw 1; });
            return 2;
        });
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 77) << status;
    }
}

} // namespace
