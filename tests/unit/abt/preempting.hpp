// SPDX-License-Identifier: Apache-2.0
//
// What tests of preempted threads need.
#pragma once

#include "streams.hpp"

namespace abt_test {

// The library initialised so that threads are preempted that ask for it, unless the system lacks what that needs.
class Preempt : public testing::Test {
  public:
    void begin(int mode, unsigned slice = 200) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "no thread is preempted under sanitizers";
#endif
        OK(thrum_abt_set_preempt(mode, slice));
        OK(ABT_init(0, nullptr));
        is_on = true;
        OK(ABT_xstream_self(&stream));
        OK(ABT_xstream_get_main_pools(stream, 1, &pool));
        OK(ABT_thread_attr_create(&lend));
        const int error = thrum_abt_thread_attr_set_preempt(lend, THRUM_ABT_PREEMPT_LEND, 0);
        if (error == ABT_ERR_FEATURE_NA)
            GTEST_SKIP() << "no thread is preempted here";
        OK(error);
    }
    void TearDown() override {
        if (is_on) {
            OK(ABT_thread_attr_free(&lend));
            OK(ABT_finalize());
        }
        OK(thrum_abt_set_preempt(THRUM_ABT_PREEMPT_NONE, 0));
    }

    bool is_on = false;
    ABT_xstream stream = ABT_XSTREAM_NULL;
    ABT_pool pool = ABT_POOL_NULL;
    ABT_thread_attr lend = ABT_THREAD_ATTR_NULL;
};

template <class F>
ABT_thread start_with(ABT_pool pool, ABT_thread_attr attr, F &f) {
    ABT_thread thread = ABT_THREAD_NULL;
    EXPECT_EQ(ABT_thread_create(pool, call<F>, &f, attr, &thread), ABT_SUCCESS);
    return thread;
}

} // namespace abt_test
