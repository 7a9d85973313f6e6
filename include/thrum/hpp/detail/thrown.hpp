// SPDX-License-Identifier: Apache-2.0
/* Exceptions that have left threads, until those are joined: thread.hpp's.
 *
 * A thread that throws nothing has nothing to do with this: its function's result is null. That of one that has thrown
 * is the address of its place in a list. Only what stands there is believed, as thrum_exit and thrum_cancel leave
 * results of their own.
 *
 * Either the thread, as it throws, finds that it is detached, or who detaches it finds what it has thrown: both look
 * under the lock. Either ends the program, as nobody would ever hear of it. */
#ifndef THRUM_HPP_DETAIL_THROWN_HPP
#define THRUM_HPP_DETAIL_THROWN_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "thrum/thrum.h"

namespace thrum::detail {

struct thrown {
    std::uint64_t id; /* of the thread, as its handle may be another's once it has been joined */
    std::exception_ptr what;
    thrown *next;
};

/* One for all of a program, whatever its libraries hide of theirs. */
class [[gnu::visibility("default")]] thrown_list {
  public:
    /* By the thread, in its catch block. What its function is to return. */
    void *keep() noexcept {
        const thrum_t self = thrum_self();
        auto *place = new (std::nothrow) thrown{thrum_id(self), std::current_exception(), nullptr};
        thrum_mutex_lock(&lock_);
        const bool is_kept = place != nullptr && !thrum_is_detached(self);
        if (is_kept)
            place->next = std::exchange(first_, place);
        thrum_mutex_unlock(&lock_);
        if (!is_kept)
            std::terminate();
        return place;
    }

    /* `result` is that of a thread which has been joined. */
    [[gnu::cold, gnu::noinline]] void rethrow(const void *result) {
        const std::unique_ptr<thrown> place(take([result](const thrown &one) { return &one == result; }));
        if (place != nullptr)
            std::rethrow_exception(place->what);
    }

    /* As thrum_detach. */
    int detach(thrum_t thread) noexcept {
        thrum_mutex_lock(&lock_);
        const bool is_lost =
            first_ != nullptr && *find([id = thrum_id(thread)](const thrown &one) { return one.id == id; });
        const int error = is_lost ? 0 : thrum_detach(thread);
        thrum_mutex_unlock(&lock_);
        if (is_lost)
            std::terminate();
        return error;
    }

  private:
    /* Where it is linked, or the end. Under the lock. */
    template <class Condition>
    thrown **find(Condition condition) noexcept {
        thrown **at = &first_;
        while (*at != nullptr && !condition(**at))
            at = &(*at)->next;
        return at;
    }

    template <class Condition>
    thrown *take(Condition condition) noexcept {
        thrum_mutex_lock(&lock_);
        thrown **at = find(condition), *place = *at;
        if (place != nullptr)
            *at = place->next;
        thrum_mutex_unlock(&lock_);
        return place;
    }

    thrum_mutex_t lock_ = THRUM_MUTEX_INIT;
    thrown *first_ = nullptr;
};

[[gnu::visibility("default")]] inline constinit thrown_list thrown_by_threads;

/* Of a thread that has been joined. */
inline void rethrow(const void *result) {
    if (result != nullptr) [[unlikely]]
        thrown_by_threads.rethrow(result);
}

/* How launch() calls what a thread is to run: what it throws is kept for who joins it. */
struct keeping_what_is_thrown {
    template <class Work>
    static void *call(Work &&work) {
        try {
            std::invoke(std::forward<Work>(work));
        } catch (...) {
            if (std::current_exception() == nullptr) /* it is none: thrum_exit unwinds */
                throw;
            return thrown_by_threads.keep();
        }
        return nullptr;
    }
};

} // namespace thrum::detail

#endif
