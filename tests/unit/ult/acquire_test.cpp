// SPDX-License-Identifier: Apache-2.0
//
// thrum_acquire and thrum_release: libraries that use libthrum, before, beside and after a program's thrum_init.
#include <errno.h>
#include <sys/wait.h>
#include <thrum/worker.h>

#include <cstdlib>

#include "ult.hpp"

namespace {

class Acquire : public Ult {};

TEST_P(Acquire, KeepsTheRuntimeThatThereIs) {
    const std::uint64_t runtime = thrum_runtime_id();
    EXPECT_EQ(thrum_release(), EINVAL);
    EXPECT_EQ(thrum_acquire(), 0);
    in_ult([] { EXPECT_EQ(thrum_acquire(), 0); });
    EXPECT_EQ(thrum_workers(), workers());
    EXPECT_EQ(thrum_fini(), 0); // ends nothing
    EXPECT_EQ(thrum_fini(), EPERM);
    EXPECT_EQ(thrum_runtime_id(), runtime);
    in_ult([] { thrum_sleep(THRUM_US); });
    EXPECT_EQ(thrum_release(), 0);
    const thrum_config config{workers(), 0, {}, {}};
    EXPECT_EQ(thrum_init(&config), 0); // the same runtime, once more
    EXPECT_EQ(thrum_init(&config), EBUSY);
    EXPECT_EQ(thrum_runtime_id(), runtime);
    External external([] { EXPECT_EQ(thrum_init(nullptr), EBUSY); });
    external.join();
    EXPECT_EQ(thrum_fini(), 0);
    EXPECT_EQ(thrum_release(), 0); // the last, by the thread that called thrum_init
    EXPECT_EQ(thrum_runtime_id(), 0U);
    EXPECT_EQ(thrum_workers(), 0U);
    EXPECT_EQ(thrum_init(&config), 0);
}

TEST_P(Acquire, ByManyAtATime) {
    {
        std::vector<Light> lights;
        External external([] {
            for (int i = 0; i < 1000; i++) {
                EXPECT_EQ(thrum_acquire(), 0);
                EXPECT_EQ(thrum_release(), 0);
            }
        });
        for (int i = 0; i < 10; i++)
            lights.emplace_back([] {
                EXPECT_EQ(thrum_acquire(), 0);
                thrum_yield();
                EXPECT_EQ(thrum_release(), 0);
            });
    }
    EXPECT_EQ(thrum_release(), EINVAL);
}

ULT_OVER_WORKERS(Acquire);

// A library that came first. In children: the library's workers stay.
class AcquireFirst : public testing::TestWithParam<unsigned> {};

void counts(int times) {
    std::atomic<int> count{0};
    {
        std::vector<Light> lights;
        for (int i = 0; i < times; i++)
            lights.emplace_back([&count] {
                thrum_sleep(100 * THRUM_US);
                count++;
            });
    }
    EXPECT_EQ(count, times);
}

// `work` in a child, in which a library has used the runtime of `mode`, and has a thread that lives as long as the runtime.
void beside_a_library(unsigned mode, const std::function<void()> &work) {
    static const char *const names[] = {"auto", "none", "yield", "lend", "own-tls", "klt"};
    const int status = in_child([&] {
        setenv("THRUM_PREEMPT", names[mode], 1);
        setenv("THRUM_WORKERS", "3", 1);
        EXPECT_EQ(thrum_acquire(), 0);
        EXPECT_EQ(thrum_workers(), 3U);
        counts(20);
        thrum_sem_t sem = THRUM_SEM_INITIALIZER(0);
        std::atomic<int> served{0};
        std::atomic<bool> over{false};
        Light library([&] {
            while (!over) {
                thrum_sem_wait(&sem);
                served++;
            }
        });
        const auto serves = [&] {
            const int before = served;
            thrum_sem_post(&sem);
            EXPECT_TRUE(eventually([&] { return served > before; }));
        };
        serves();
        work();
        serves();
        over = true;
        thrum_sem_post(&sem);
        library.join();
        EXPECT_EQ(thrum_release(), 0);
        return testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_P(AcquireFirst, InitJoinsItsRuntime) {
    beside_a_library(GetParam(), [] {
        const std::uint64_t runtime = thrum_runtime_id();
        EXPECT_EQ(thrum_self(), nullptr);
        EXPECT_EQ(thrum_fini(), EPERM);
        for (const unsigned wanted : {5U, 2U, 0U}) {
            const thrum_config config{wanted, 0, {}, {}};
            const std::string said = stderr_of([&] { EXPECT_EQ(thrum_init(&config), 0); });
            EXPECT_EQ(said, "");
            EXPECT_EQ(thrum_init(&config), EBUSY);
            EXPECT_EQ(thrum_runtime_id(), runtime);
            EXPECT_NE(thrum_self(), nullptr);
            EXPECT_GE(thrum_worker_self(), 0);
            EXPECT_EQ(thrum_worker_stop(static_cast<unsigned>(thrum_worker_self())), EBUSY);
            EXPECT_TRUE(eventually([&] { return thrum_workers() == (wanted != 0 ? wanted : 3); }))
                << thrum_workers() << " of " << wanted;
            counts(20);
            const int here = thrum_worker_self();
            thrum_sleep(THRUM_MS);
            EXPECT_EQ(thrum_worker_self(), here);
            EXPECT_EQ(thrum_fini(), 0);
            EXPECT_EQ(thrum_fini(), EPERM);
            counts(20);
        }
    });
}

TEST_P(AcquireFirst, InitSaysWhatDoesNotApply) {
    beside_a_library(GetParam(), [] {
        thrum_config config{3, 1 << 20, {}, {}};
        config.preempt.mode = THRUM_PREEMPT_YIELD;
        config.preempt.slice = 70;
        const std::string said = stderr_of([&] { EXPECT_EQ(thrum_init(&config), 0); });
        EXPECT_NE(
            said.find(
                "thrum: thrum_init: a library has started the runtime (thrum_acquire); what does not apply: "
                "stack_size"),
            std::string::npos)
            << said;
        EXPECT_NE(said.find(", preempt.mode, preempt.slice; set it by the environment"), std::string::npos)
            << said;
        EXPECT_EQ(said.find("workers"), std::string::npos) << said;
        counts(20);
        EXPECT_EQ(thrum_fini(), 0);
    });
}

// Threads that compute are preempted, main too, also those that are beside it.
TEST_P(AcquireFirst, MainIsPreemptedAsOthers) {
    if ((ULT_ASAN || ULT_TSAN) && GetParam() != THRUM_PREEMPT_NONE)
        GTEST_SKIP() << "under sanitizers no thread is preempted";
    beside_a_library(GetParam(), [] {
        const thrum_config config{1, 0, {}, {}};
        EXPECT_EQ(thrum_init(&config), 0);
        std::atomic<int> begun{0};
        std::vector<Light> lights;
        const thrum_attr_t queued = attr_queued();
        if (GetParam() != THRUM_PREEMPT_NONE) {
            for (int i = 0; i < 3; i++)
                lights.emplace_back(
                    [&begun] {
                        begun++;
                        const uint64_t end = thrum_now() + 20 * THRUM_S;
                        while (begun < 4 && thrum_now() < end) {
                        }
                    },
                    &queued);
            const uint64_t end = thrum_now() + 20 * THRUM_S;
            while (begun < 3 && thrum_now() < end) { // without a wait
            }
            EXPECT_EQ(begun, 3);
            begun = 4;
        }
    });
}

std::string name_of_mode(const testing::TestParamInfo<unsigned> &info) {
    static const char *const names[] = {"", "None", "Yield", "Lend", "OwnTls", "Klt"};
    return names[info.param];
}

INSTANTIATE_TEST_SUITE_P(Modes, AcquireFirst,
                         testing::Values(THRUM_PREEMPT_NONE, THRUM_PREEMPT_LEND, THRUM_PREEMPT_OWN_TLS,
                                         THRUM_PREEMPT_KLT),
                         name_of_mode);

class AcquirePlain : public UltPlain {};

// A program without thrum_acquire: as before.
TEST_F(AcquirePlain, InitDoesNotJoinTheRuntimeOfAFirstSpawn) {
    const int status = in_child([] {
        counts(1);
        const bool is_busy = thrum_init(nullptr) == EBUSY && thrum_acquire() == 0 &&
                             thrum_init(nullptr) == EBUSY && thrum_release() == 0;
        return is_busy ? 0 : 1;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(AcquirePlain, AChildOfForkHoldsNothing) {
    if (ULT_EMULATED)
        GTEST_SKIP() << "the emulator's child of a fork among threads can start none";
    const thrum_config config{2, 0, {}, {}};
    ASSERT_EQ(thrum_init(&config), 0);
    ASSERT_EQ(thrum_acquire(), 0);
    const int status = in_child([&config] {
        if (thrum_release() != EINVAL || thrum_init(&config) != 0)
            return 1;
        return thrum_fini() == 0 && thrum_workers() == 0 ? 0 : 2;
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(thrum_release(), 0);
    ASSERT_EQ(thrum_fini(), 0);
}

} // namespace
