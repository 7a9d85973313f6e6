// SPDX-License-Identifier: Apache-2.0
/* Passes values from any number of threads to any number of others, in order.
 *
 *     thrum::channel<std::string> lines(16); // holds up to 16
 *     thrum::thread reader([&] {
 *         for (const std::string &line : lines) // until it is closed and empty
 *             std::puts(line.c_str());
 *     });
 *     lines.send("hello");
 *     lines.close();
 *
 * Without an argument the channel is unbuffered: a sender waits for a receiver. With thrum::unbounded a sender never waits.
 * Small trivially copyable values are copied as bytes; all others, which may be move-only, are passed by pointer. A value
 * that was not sent stays with the caller:
 *
 *     thrum::channel<std::unique_ptr<int>> numbers(1);
 *     auto number = std::make_unique<int>(6);
 *     while (!numbers.try_send(std::move(number)))
 *         thrum::this_thread::yield(); // still valid for the next try
 */
#ifndef THRUM_HPP_CHANNEL_HPP
#define THRUM_HPP_CHANNEL_HPP

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/block.hpp"
#include "thrum/hpp/detail/offer.hpp"
#include "thrum/hpp/detail/stop.hpp"
#include "thrum/hpp/detail/time.hpp"

namespace thrum {

inline constexpr std::size_t unbounded = THRUM_CHANNEL_UNBOUNDED;

namespace detail {

/* A value in transit: its bytes, or a pointer to where it was moved. The holder of the bytes owns what they point to. */
template <class T>
class parcel {
    struct cargo final : made_in_block {
        explicit cargo(T &&from) : value(std::move(from)) {}
        T value;
    };

  public:
    static constexpr bool is_bytes = std::is_trivially_copyable_v<T> && sizeof(T) <= 64;
    static constexpr std::size_t size = is_bytes ? sizeof(T) : sizeof(cargo *);

    parcel() noexcept = default; /* to be received into, or filled by pack() */
    /* If a constructor throws, nothing is packed. */
    void pack(T &&value) {
        if constexpr (std::is_empty_v<T> && is_bytes)
            std::memset(bytes_, 0, size); /* its constructor writes nothing, and the library copies bytes */
        if constexpr (is_bytes)
            std::construct_at(reinterpret_cast<T *>(bytes_), std::move(value));
        else
            put(new cargo(std::move(value)));
    }
    /* Moves the value back to where it came from. If that throws, only the value is lost. */
    void unpack(T &value) noexcept(gives_back_quietly) {
        if constexpr (!is_bytes) {
            const std::unique_ptr<cargo> held(content());
            if constexpr (std::is_move_assignable_v<T>) {
                value = std::move(held->value);
            } else {
                std::destroy_at(std::addressof(value));
                std::construct_at(std::addressof(value), std::move(held->value));
            }
        }
    }
    /* The same; the optional is empty if this throws. */
    void unpack(std::optional<T> &value) noexcept(std::is_nothrow_move_constructible_v<T>) {
        if constexpr (!is_bytes)
            open(value);
    }
    void open(std::optional<T> &value) noexcept(std::is_nothrow_move_constructible_v<T>) {
        if constexpr (is_bytes) {
            value.emplace(std::move(*std::launder(reinterpret_cast<T *>(bytes_))));
        } else {
            const std::unique_ptr<cargo> held(content());
            value.emplace(std::move(held->value));
        }
    }
    void discard() noexcept {
        if constexpr (!is_bytes)
            delete content();
    }
    void *bytes() noexcept { return bytes_; }

  private:
    static constexpr bool gives_back_quietly =
        std::is_move_assignable_v<T> ? std::is_nothrow_move_assignable_v<T> : true; /* or std::terminate */

    void put(cargo *value) noexcept { std::memcpy(bytes_, &value, sizeof value); }
    cargo *content() const noexcept {
        cargo *value;
        std::memcpy(&value, bytes_, sizeof value);
        return value;
    }

    alignas(is_bytes ? alignof(T) : alignof(cargo *)) std::byte bytes_[size];
};

} // namespace detail

template <class T>
class channel {
    static_assert(
        std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>> && std::is_move_constructible_v<T>,
        "a channel carries movable objects that are neither const nor volatile; send a pointer to others");
    using parcel = detail::parcel<T>;

  public:
    /* Throws std::system_error (EINVAL), std::bad_alloc (also std::bad_array_new_length). */
    explicit channel(std::size_t capacity = 0)
        : storage_(capacity == unbounded ? nullptr : new std::byte[bytes_of(capacity)]) {
        detail::check(thrum_channel_init(&native_, parcel::size, capacity, storage_.get()), "thrum::channel",
                      "elements or a capacity too large for memory");
    }
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;
    ~channel() {
        if constexpr (!parcel::is_bytes)
            for (parcel left; thrum_channel_try_receive(&native_, left.bytes()) == 0;)
                left.discard();
        thrum_channel_destroy(&native_);
    }

    /* These return false if the channel is closed, also during the wait; the others also at the deadline. Then `value` is
     * unchanged, as it is if the thread ends while it waits. On an unbounded channel they may throw std::bad_alloc. */
    bool send(T &&value) { return send_by(value, thrum_channel_send); }
    bool try_send(T &&value) { return send_by(value, thrum_channel_try_send); }
    template <class Rep, class Period>
    bool send_for(T &&value, const std::chrono::duration<Rep, Period> &span) {
        return send_by(value, [end = detail::deadline_after(span)](auto *to, const void *from) {
            return thrum_channel_send_until(to, from, end);
        });
    }
    template <class Clock, class Duration>
    bool send_until(T &&value, const std::chrono::time_point<Clock, Duration> &deadline) {
        return send_by(value, [&deadline](auto *to, const void *from) {
            return detail::wait_until(
                deadline, [=](std::uint64_t ns) { return thrum_channel_send_until(to, from, ns); });
        });
    }
    /* False also if a stop is requested first. */
    bool send(T &&value, const std::stop_token &stop) {
        return send_by(value, [&stop](auto *to, void *from) {
            return detail::wait_unless_stopped(stop, {THRUM_WAIT_SEND, 0, to, from, {}});
        });
    }
    /* These send a copy. */
    bool send(const T &value, const std::stop_token &stop) requires std::copy_constructible<T> {
        return send(T(value), stop);
    }
    bool send(const T &value) requires std::copy_constructible<T> { return send(T(value)); }
    bool try_send(const T &value) requires std::copy_constructible<T> { return try_send(T(value)); }
    template <class Rep, class Period>
    bool send_for(const T &value,
                  const std::chrono::duration<Rep, Period> &span) requires std::copy_constructible<T> {
        return send_for(T(value), span);
    }
    template <class Clock, class Duration>
    bool
    send_until(const T &value,
               const std::chrono::time_point<Clock, Duration> &deadline) requires std::copy_constructible<T> {
        return send_until(T(value), deadline);
    }

    /* Empty if the channel is closed and empty; the others also if no value came in time. */
    std::optional<T> receive() { return receive_by(thrum_channel_receive); }
    /* Likewise if a stop is requested first; then nothing was received. */
    std::optional<T> receive(const std::stop_token &stop) {
        return receive_by([&stop](auto *from, void *to) {
            return detail::wait_unless_stopped(stop, {THRUM_WAIT_RECEIVE, 0, from, to, {}});
        });
    }
    std::optional<T> try_receive() { return receive_by(thrum_channel_try_receive); }
    template <class Rep, class Period>
    std::optional<T> receive_for(const std::chrono::duration<Rep, Period> &span) {
        return receive_by([end = detail::deadline_after(span)](auto *from, void *to) {
            return thrum_channel_receive_until(from, to, end);
        });
    }
    template <class Clock, class Duration>
    std::optional<T> receive_until(const std::chrono::time_point<Clock, Duration> &deadline) {
        return receive_by([&deadline](auto *from, void *to) {
            return detail::wait_until(
                deadline, [=](std::uint64_t ns) { return thrum_channel_receive_until(from, to, ns); });
        });
    }

    /* Ends sending. False: it was closed already. */
    bool close() noexcept {
        closed_.store(true, std::memory_order_relaxed);
        return thrum_channel_close(&native_) == 0;
    }
    bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
    /* The number of values that it holds now. */
    std::size_t size() const noexcept { return thrum_channel_count(&native_); }

    /* Receives lazily, when dereferenced or compared with the end: std::views::take(4) of a channel receives four
     * values. */
    class iterator {
      public:
        using iterator_concept = std::input_iterator_tag;
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        iterator() noexcept = default;
        explicit iterator(channel *from) noexcept : from_(from) {}
        iterator(const iterator &) = default;
        iterator(iterator &&) = default;
        iterator &operator=(const iterator &) = default;
        iterator &operator=(iterator &&other) noexcept(std::is_nothrow_move_constructible_v<T>) {
            from_ = other.from_;
            is_known_ = other.is_known_;
            value_.reset(); /* T may have no assignment */
            if (other.value_)
                value_.emplace(std::move(*other.value_));
            return *this;
        }

        T &operator*() const {
            look();
            return *value_;
        }
        iterator &operator++() {
            look(); /* a value that was not asked for is skipped */
            value_.reset();
            is_known_ = false;
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const {
            look();
            return !value_;
        }

      private:
        void look() const {
            if (!is_known_)
                from_->receive_into(value_, thrum_channel_receive);
            is_known_ = true;
        }

        channel *from_ = nullptr;
        mutable std::optional<T> value_;
        mutable bool is_known_ = false;
    };
    iterator begin() noexcept { return iterator(this); }
    std::default_sentinel_t end() const noexcept { return {}; }

    /* For when_any: receives into `value`, which is left empty if the channel is closed. */
    class receiving_t {
      public:
        receiving_t(channel *from, std::optional<T> *value) noexcept : from_(from), value_(value) {}
        receiving_t(const receiving_t &other) noexcept : from_(other.from_), value_(other.value_) {}
        receiving_t &operator=(const receiving_t &) = delete;
        thrum_wait_t waiting() noexcept {
            return {THRUM_WAIT_RECEIVE, 0, &from_->native_, parcel_.bytes(), {}};
        }
        void waited(int error) {
            if (error == 0)
                parcel_.open(*value_);
            else
                value_->reset();
        }

      private:
        channel *from_;
        std::optional<T> *value_;
        parcel parcel_;
    };
    receiving_t receiving(std::optional<T> &value) noexcept { return {this, &value}; }

    /* For when_any: sends what is in `value`, which is empty afterwards. Where when_any returns or throws without having sent
     * it, it is back in `value`. (The channel was closed, another object was ready, or the deadline came.) Several operands
     * of one when_any may offer the same `value`: it is sent once. */
    class sending_t : public detail::offer {
      public:
        sending_t(channel *to, std::optional<T> *value) noexcept : offer(value), to_(to), value_(value) {}
        sending_t(const sending_t &other) noexcept : sending_t(other.to_, other.value_) {}
        sending_t &operator=(const sending_t &) = delete;
        ~sending_t() {
            if (is_packed_) /* waiting() was not called by when_any */
                detail::quietly([this] { unwaited(); });
        }
        /* Throws std::bad_optional_access, std::bad_alloc, and what T's move constructor throws. */
        thrum_wait_t waiting() {
            sending_t &first = of_first();
            if (!first.is_packed_)
                first.parcel_.pack(std::move(value_->value()));
            first.is_packed_ = true;
            return {THRUM_WAIT_SEND, 0, &to_->native_, first.parcel_.bytes(), {}};
        }
        /* This operand has sent the value: no operand puts it back any more. */
        void sent() noexcept { of_first().is_packed_ = false; }
        void unwaited() noexcept(std::is_nothrow_move_constructible_v<T>) {
            first_ = this;
            if (std::exchange(is_packed_, false))
                parcel_.unpack(*value_);
        }
        void waited(int error) {
            if (error == 0) {
                is_packed_ = false;
                value_->reset();
            } else {
                unwaited();
            }
            if (error == ENOMEM)
                throw std::bad_alloc();
        }

      private:
        sending_t &of_first() const noexcept { return static_cast<sending_t &>(*first_); }

        channel *to_;
        std::optional<T> *value_;
        parcel parcel_;
        bool is_packed_ = false; /* the value is in this one's parcel, and has not been sent */
    };
    sending_t sending(std::optional<T> &value) noexcept { return {this, &value}; }

  private:
    static std::size_t bytes_of(std::size_t capacity) {
        if (capacity > static_cast<std::size_t>(PTRDIFF_MAX) / parcel::size)
            throw std::bad_array_new_length();
        return capacity * parcel::size;
    }

    struct take_back_unless_sent { /* where its thread ends while it waits */
        parcel *unsent;
        T *value;
        ~take_back_unless_sent() {
            if (unsent != nullptr)
                detail::quietly([this] { unsent->unpack(*value); });
        }
    };

    template <class Send>
    bool send_by(T &value, Send send_native) {
        parcel sent;
        sent.pack(std::move(value));
        take_back_unless_sent guard{&sent, std::addressof(value)};
        const int error = send_native(&native_, sent.bytes());
        guard.unsent = nullptr;
        if (error == 0)
            return true;
        sent.unpack(value);
        if (error == ENOMEM)
            throw std::bad_alloc();
        return false;
    }
    template <class Receive>
    void receive_into(std::optional<T> &value, Receive receive_native) {
        parcel received;
        value.reset();
        if (receive_native(&native_, received.bytes()) == 0)
            received.open(value);
    }
    template <class Receive>
    std::optional<T> receive_by(Receive receive_native) {
        std::optional<T> value;
        receive_into(value, receive_native);
        return value;
    }

    mutable thrum_channel_t native_;
    std::unique_ptr<std::byte[]> storage_;
    std::atomic<bool> closed_{false};
};

} // namespace thrum

/* As a range, a channel is as long as what will be sent to it. size() is what it holds now. A view that took this for the
 * range's length, as std::views::take does, would end early. */
template <class T>
inline constexpr bool std::ranges::disable_sized_range<thrum::channel<T>> = true;

#endif
