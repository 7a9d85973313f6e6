// SPDX-License-Identifier: Apache-2.0
/* See annotate.h. This file is never instrumented itself (CMakeLists.txt): its functions begin on one fiber and end on
 * another. */
#include "context/annotate.h"

#include <pthread.h>

#include "os/memory.h"

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>
#endif
#endif
#ifndef VALGRIND_STACK_REGISTER
#define VALGRIND_STACK_REGISTER(low, high)      ((void)(low), (void)(high), 0U)
#define VALGRIND_STACK_DEREGISTER(id)           (void)(id)
#define VALGRIND_MAKE_MEM_UNDEFINED(low, bytes) ((void)(low), (void)(bytes), 0U)
#define RUNNING_ON_VALGRIND                     0U
#endif

/* The tools' own interfaces (<sanitizer/common_interface_defs.h>, lsan_interface.h, tsan_interface.h, which not every
 * compiler brings along): null where the tool is not in the process. */
#define WEAK __attribute__((weak))
extern void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t size) WEAK;
extern void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *size) WEAK;
extern void __lsan_register_root_region(const void *begin, size_t size) WEAK;
extern void __lsan_unregister_root_region(const void *begin, size_t size) WEAK;
extern void __asan_handle_no_return(void) WEAK;
extern void __asan_unpoison_memory_region(const volatile void *begin, size_t size) WEAK;
extern void *__asan_region_is_poisoned(void *begin, size_t size) WEAK;
extern void *__tsan_get_current_fiber(void) WEAK;
extern void *__tsan_create_fiber(unsigned flags) WEAK;
extern void __tsan_destroy_fiber(void *fiber) WEAK;
extern void __tsan_switch_to_fiber(void *fiber, unsigned flags) WEAK;
extern void __tsan_acquire(void *object) WEAK;
extern void __tsan_release(void *object) WEAK;

bool annotate_on, annotate_holds_signals, watch_on;
static bool asan, lsan, tsan, valgrind; /* r/o after annotate_init */

/* A stack may have been there, whose last frames ASan still knows: it does not see when a stack is unmapped. */
static void forget_frames(void *memory, size_t bytes) {
    if (__asan_region_is_poisoned(memory, bytes) != NULL)
        __asan_unpoison_memory_region(memory, bytes);
}

void annotate_init(void) {
    if (__asan_unpoison_memory_region != NULL && __asan_region_is_poisoned != NULL)
        memory_is_new = forget_frames;
    asan = __sanitizer_start_switch_fiber != NULL && __sanitizer_finish_switch_fiber != NULL;
    lsan = __lsan_register_root_region != NULL && __lsan_unregister_root_region != NULL;
    tsan = __tsan_get_current_fiber != NULL && __tsan_create_fiber != NULL && __tsan_destroy_fiber != NULL &&
           __tsan_switch_to_fiber != NULL && __tsan_acquire != NULL && __tsan_release != NULL;
    valgrind = RUNNING_ON_VALGRIND != 0;
    annotate_on = watch_on = asan || tsan;
    annotate_holds_signals = annotate_on || valgrind;
}

/* --- kernel threads ----------------------------------------------------------------------------------- */

static void find_own_stack(struct annotate_thread *thread) {
    pthread_attr_t attr;
    void *low;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return; /* no memory: ASan goes without the bounds */
    if (pthread_attr_getstack(&attr, &low, &thread->stack.size) == 0)
        thread->stack.low = low;
    pthread_attr_destroy(&attr);
}

void annotate_thread_begin(struct annotate_thread *thread) {
    *thread = (struct annotate_thread){.fiber = NULL};
    if (asan || lsan)
        find_own_stack(thread);
    if (lsan && thread->stack.low != NULL)
        __lsan_register_root_region(thread->stack.low, thread->stack.size);
    if (tsan)
        thread->fiber = __tsan_get_current_fiber();
}

void annotate_thread_end(struct annotate_thread *thread) {
    if (lsan && thread->stack.low != NULL)
        __lsan_unregister_root_region(thread->stack.low, thread->stack.size);
    if (tsan && thread->loop_fiber != NULL)
        __tsan_destroy_fiber(thread->loop_fiber);
    thread->loop_fiber = NULL;
}

/* Never taken back: memory that is no longer mapped, or reused, does no harm to LSan. */
void annotate_stacks_new(struct annotate_stack stacks) {
    if (lsan)
        __lsan_register_root_region(stacks.low, stacks.size);
}

bool annotate_wants_mapped_guards(void) {
    return lsan || valgrind;
}

uint64_t annotate_stack_new(struct annotate_stack stack) {
    return valgrind ? VALGRIND_STACK_REGISTER(stack.low, stack.low + stack.size) : 0;
}

/* What frames have left behind would be out of bounds. */
void annotate_stack_gone(uint64_t id, struct annotate_stack stack) {
    if (!valgrind)
        return;
    VALGRIND_STACK_DEREGISTER(id);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(stack.low, stack.size);
}

/* --- switches ----------------------------------------------------------------------------------------- */

void annotate_leave(struct annotate_left *left, const struct annotate_thread *thread,
                    struct annotate_stack to) {
    if (tsan) {
        left->fiber = __tsan_get_current_fiber();
        if (left->fiber != thread->fiber)
            __tsan_switch_to_fiber(thread->fiber, 0);
    }
    if (asan)
        __sanitizer_start_switch_fiber(&left->fake_stack, to.low, to.size);
}

void annotate_resume(const struct annotate_left *left) {
    if (asan)
        __sanitizer_finish_switch_fiber(left->fake_stack, NULL, NULL);
    if (tsan && left->fiber != __tsan_get_current_fiber())
        __tsan_switch_to_fiber(left->fiber, 0);
}

void annotate_make(struct annotate_thread *thread) {
    if (tsan)
        thread->next_fiber = __tsan_create_fiber(0);
}

/* What other units did on this stack before is ordered by the way that it took from them to this one. */
void annotate_begin(struct annotate_thread *thread, struct annotate_stack stack, bool fresh) {
    if (asan && fresh)
        __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
    if (tsan) {
        if (thread->next_fiber == NULL)
            annotate_make(thread);
        __tsan_switch_to_fiber(thread->next_fiber, 0);
        thread->next_fiber = NULL;
        __tsan_acquire(stack.low);
    }
}

void annotate_end(const struct annotate_thread *thread, struct annotate_stack stack) {
    if (!tsan)
        return;
    void *fiber = __tsan_get_current_fiber();
    __tsan_release(stack.low);
    __tsan_switch_to_fiber(thread->fiber, 0);
    __tsan_destroy_fiber(fiber);
}

void annotate_leave_for_good(struct annotate_stack to) {
    if (asan)
        __sanitizer_start_switch_fiber(NULL, to.low, to.size);
}

void annotate_frames_are_gone(void) {
    if (__asan_handle_no_return != NULL)
        __asan_handle_no_return();
}

void annotate_is_loop(struct annotate_thread *thread) {
    if (tsan)
        thread->loop_fiber = __tsan_get_current_fiber();
}

/* --- order -------------------------------------------------------------------------------------------- */

void annotate_release(void *object) {
    if (tsan)
        __tsan_release(object);
}

void annotate_acquire(void *object) {
    if (tsan)
        __tsan_acquire(object);
}
