// SPDX-License-Identifier: Apache-2.0
/* Exceptions that have left threads, kept until the threads are joined; for thread.hpp.
 *
 * A thread that throws nothing does not use this: its function's result is null. The result of a thread that has thrown is
 * the address of its entry in a list. Only addresses found in the list are trusted, since thrum_exit and thrum_cancel leave
 * other results.
 *
 * Either the throwing thread finds that it is detached, or the detaching thread finds the exception: both look under the
 * lock. Either ends the program, since the exception would be lost otherwise. */
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
    std::uint64_t id; /* of the thread; its handle may be reused once it has been joined */
    std::exception_ptr what;
    thrown *next;
};

/* One list for the whole program, even if its libraries hide their symbols. */
class [[gnu::visibility("default")]] thrown_list {
  public:
    /* Called by the thread in its catch block. Returns the result for its function. */
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

    /* `result` is the result of a joined thread. */
    [[gnu::cold, gnu::noinline]] void rethrow(const void *result) {
        const std::unique_ptr<thrown> place(take([result](const thrown &one) { return &one == result; }));
        if (place != nullptr)
            std::rethrow_exception(place->what);
    }

    /* As thrum_detach. */
    int detach(thrum_t thread) noexcept {
        thrum_mutex_lock(&lock_);
        const thrown *lost = first_ != nullptr
                                 ? *find([id = thrum_id(thread)](const thrown &one) { return one.id == id; })
                                 : nullptr;
        const int error = lost != nullptr ? 0 : thrum_detach(thread);
        thrum_mutex_unlock(&lock_);
        if (lost != nullptr)
            end_by(lost->what);
        return error;
    }

  private:
    /* In a handler, so that std::terminate's own handler can say which exception it is. */
    [[noreturn, gnu::cold]] static void end_by(const std::exception_ptr &what) noexcept {
        try {
            std::rethrow_exception(what);
        } catch (...) {
            std::terminate();
        }
    }

    /* The link to the entry, or to the end of the list. Under the lock. */
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

    thrum_mutex_t lock_ = THRUM_MUTEX_INITIALIZER;
    thrown *first_ = nullptr;
};

[[gnu::visibility("default")]] inline constinit thrown_list thrown_by_threads;

/* `result` is the result of a joined thread. */
inline void rethrow(const void *result) {
    if (result != nullptr) [[unlikely]]
        thrown_by_threads.rethrow(result);
}

/* How launch() calls a thread's callable: an exception is kept for the joiner. */
struct keeping_what_is_thrown {
    template <class Work>
    static void *call(Work &&work) {
        try {
            std::invoke(std::forward<Work>(work));
        } catch (...) {
            if (std::current_exception() == nullptr) /* not an exception: thrum_exit unwinds */
                throw;
            return thrown_by_threads.keep();
        }
        return nullptr;
    }
};

} // namespace thrum::detail

#endif
