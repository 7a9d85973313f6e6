// SPDX-License-Identifier: Apache-2.0
/* A value of each thread's own, which moves with it from worker to worker; thread_local is a kernel thread's.
 *
 *     static thrum::local<std::string> line;
 *     thrum::thread writer([] {
 *         line.get() = "mine";
 *         thrum::this_thread::yield(); // it may continue on another worker
 *         std::puts(line.get().c_str());
 *     });
 *
 * The value is destroyed at the end of its thread. For ULTs: on other kernel threads get() and emplace() throw std::system_error
 * (EPERM), and find() finds nothing. There
 * can be THRUM_KEYS_MAX such objects. When one is destroyed, no thread may have a value in it. */
#ifndef THRUM_HPP_LOCAL_HPP
#define THRUM_HPP_LOCAL_HPP

#include <cerrno>
#include <memory>
#include <utility>

#include "thrum/hpp/detail/error.hpp"
#include "thrum/thrum.h"

namespace thrum {

template <class T>
class local {
  public:
    /* Throws std::system_error: EAGAIN there are THRUM_KEYS_MAX. */
    local() {
        detail::check(thrum_key_create(&key_, [](void *value) { delete static_cast<T *>(value); }),
                      "thrum::local", "there are THRUM_KEYS_MAX already");
    }
    local(const local &) = delete;
    local &operator=(const local &) = delete;
    ~local() { thrum_key_delete(key_); }

    /* The caller's; null: it has none. */
    T *find() const noexcept { return static_cast<T *>(thrum_key_get(key_)); }
    /* The caller's, which is T() at first. */
    T &get() {
        T *const value = find();
        return value != nullptr ? *value : emplace();
    }
    /* Replaces the caller's. */
    template <class... Args>
    T &emplace(Args &&...args) {
        auto made = std::make_unique<T>(std::forward<Args>(args)...);
        T *const before = find();
        set(made.get()); /* may throw: then the caller keeps what it had */
        const std::unique_ptr<T> replaced(before);
        return *made.release();
    }
    void reset() {
        const std::unique_ptr<T> before(find());
        if (before != nullptr)
            set(nullptr);
    }

  private:
    void set(T *value) {
        static constexpr detail::reason reasons[] = {
            {EPERM, "the caller is a kernel thread, and no thread of libthrum"},
            {ENOMEM, "no memory for the thread's values"},
        };
        detail::check(thrum_key_set(key_, value), "thrum::local", reasons);
    }

    thrum_key_t key_ = 0;
};

} // namespace thrum

#endif
