// SPDX-License-Identifier: Apache-2.0
/* The interface for tools is not there, as in the original's default build: it says so, and ABT_info_query_config too. */
#include "layer.h"

ABT_EXPORT int ABT_tool_register_thread_callback(ABT_tool_thread_callback_fn cb_func, uint64_t event_mask,
                                                 void *user_arg) {
    (void)cb_func, (void)event_mask, (void)user_arg;
    return ABT_ERR_FEATURE_NA;
}

ABT_EXPORT int ABT_tool_query_thread(ABT_tool_context context, uint64_t event, ABT_tool_query_kind query_kind,
                                     void *val) {
    (void)context, (void)event, (void)query_kind, (void)val;
    return ABT_ERR_FEATURE_NA;
}
