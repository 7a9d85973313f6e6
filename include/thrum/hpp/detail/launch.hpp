// SPDX-License-Identifier: Apache-2.0
/* Starts a thread that runs a callable which the thread owns.
 *
 * thrum_spawn passes one pointer. The creator cannot lend a callable in its own frame: the new thread may not have begun
 * when thrum_spawn returns (it is enqueued if the creator is bound to a worker, external, or in a pool). Or it has begun,
 * and the creator, stolen, continues on another worker before the callable was moved away. So there are two ways, and in
 * both the creator does not touch the callable afterwards:
 *
 *   - A trivially copyable callable that fits into a pointer, such as a lambda that captures nothing, `this` or one
 *     reference, is passed as the pointer. No memory is needed.
 *   - Any other callable is moved to the heap (block.hpp), and belongs to the new thread.
 *
 * A creator that stays until the thread has ended can lend its frame: branch.hpp. */
#ifndef THRUM_HPP_DETAIL_LAUNCH_HPP
#define THRUM_HPP_DETAIL_LAUNCH_HPP

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum::detail {

template <class Work>
inline constexpr bool fits_a_pointer = sizeof(Work) <= sizeof(void *) &&
                                       alignof(Work) <= alignof(void *) && std::is_trivially_copyable_v<Work>;

/* How the callable is called: here an exception ends the program; thrown.hpp has the other way. */
struct throwing_nothing {
    template <class Work>
    static void *call(Work &&work) {
        std::invoke(std::forward<Work>(work));
        return nullptr;
    }
};

template <class Work, class How>
void *run_from_pointer(void *arg) {
    alignas(Work) std::byte room[sizeof(Work)];
    std::memcpy(room, &arg, sizeof(Work));
    return How::call(std::move(*std::launder(reinterpret_cast<Work *>(room))));
}

template <class Work>
struct on_heap final : made_in_block {
    template <class Callable>
    explicit on_heap(Callable &&callable) : work(std::forward<Callable>(callable)) {}
    Work work;
};

template <class Work, class How>
void *run_from_heap(void *arg) {
    const std::unique_ptr<on_heap<Work>> held(static_cast<on_heap<Work> *>(arg));
    return How::call(std::move(held->work));
}

/* `handle` and `attr` may be null, and errors are as in thrum_spawn. */
template <class How = throwing_nothing, class Callable>
int launch(thrum_t *handle, const thrum_attr_t *attr, Callable &&callable) {
    using Work = std::decay_t<Callable>;
    if constexpr (fits_a_pointer<Work>) {
        void *arg = nullptr;
        const Work work(std::forward<Callable>(callable));
        std::memcpy(&arg, std::addressof(work), sizeof(Work));
        return thrum_spawn(handle, attr, run_from_pointer<Work, How>, arg);
    } else {
        auto work = std::make_unique<on_heap<Work>>(std::forward<Callable>(callable));
        const int error = thrum_spawn(handle, attr, run_from_heap<Work, How>, work.get());
        if (error == 0)
            static_cast<void>(work.release()); /* it may be gone already */
        return error;
    }
}

/* A callable with its arguments, each copied or moved, as in std::thread. */
template <class F, class... Args>
auto bind(F &&f, Args &&...args) {
    return [f = std::forward<F>(f), ... args = std::forward<Args>(args)]() mutable -> decltype(auto) {
        return std::invoke(std::move(f), std::move(args)...);
    };
}

} // namespace thrum::detail

#endif
