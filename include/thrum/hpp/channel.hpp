// SPDX-License-Identifier: Apache-2.0
/* Values from any number of threads to any number of others, in order.
 *
 *     thrum::channel<std::string> lines(16); // holds up to 16
 *     thrum::thread reader([&] {
 *         for (const std::string &line : lines) // until it is closed, and empty
 *             std::puts(line.c_str());
 *     });
 *     lines.send("hello");
 *     lines.close();
 *
 * Without an argument it holds nothing: who sends waits for who receives; thrum::unbounded, and nobody waits to send.
 * What is small and can be copied as bytes travels so; of everything else, which may be move-only, a pointer does. A
 * value that was not sent is still the caller's:
 *
 *     thrum::channel<std::unique_ptr<int>> numbers(1);
 *     auto number = std::make_unique<int>(6);
 *     while (!numbers.try_send(std::move(number)))
 *         thrum::this_thread::yield(); // it is there for the next try
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
#include <type_traits>
#include <utility>

#include "thrum/hpp/detail/time.hpp"

namespace thrum {

inline constexpr std::size_t unbounded = THRUM_CHANNEL_UNBOUNDED;

namespace detail {

/* A value as it travels: its bytes, or a pointer to it that is owned by whoever has the bytes. */
template <class T>
class parcel {
  public:
    static constexpr bool is_bytes = std::is_trivially_copyable_v<T> && sizeof(T) <= 64;
    static constexpr std::size_t size = is_bytes ? sizeof(T) : sizeof(T *);

    parcel() noexcept = default; /* for one that is to be received, or filled by pack() */
    void pack(T &&value) {
        if constexpr (is_bytes)
            std::construct_at(reinterpret_cast<T *>(bytes_), std::move(value));
        else
            put(new T(std::move(value)));
    }
    /* Back to where it came from. */
    void unpack(T &value) {
        if constexpr (!is_bytes) {
            const std::unique_ptr<T> held(content());
            if constexpr (std::is_move_assignable_v<T>) {
                value = std::move(*held);
            } else {
                std::destroy_at(std::addressof(value));
                std::construct_at(std::addressof(value), std::move(*held));
            }
        }
    }
    T open() {
        if constexpr (is_bytes)
            return *std::launder(reinterpret_cast<T *>(bytes_));
        else
            return std::move(*std::unique_ptr<T>(content()));
    }
    void discard() noexcept {
        if constexpr (!is_bytes)
            delete content();
    }
    void *bytes() noexcept { return bytes_; }

  private:
    void put(T *value) noexcept { std::memcpy(bytes_, &value, sizeof value); }
    T *content() const noexcept {
        T *value;
        std::memcpy(&value, bytes_, sizeof value);
        return value;
    }

    alignas(is_bytes ? alignof(T) : alignof(T *)) std::byte bytes_[size];
};

} // namespace detail

template <class T>
class channel {
    using parcel = detail::parcel<T>;

  public:
    /* Throws std::system_error (EINVAL), std::bad_alloc (also std::bad_array_new_length). */
    explicit channel(std::size_t capacity = 0)
        : storage_(capacity == unbounded ? nullptr : new std::byte[bytes_of(capacity)]) {
        detail::check(thrum_channel_init(&native_, parcel::size, capacity, storage_.get()), "thrum::channel");
    }
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;
    ~channel() {
        if constexpr (!parcel::is_bytes)
            for (parcel left; thrum_channel_try_receive(&native_, left.bytes()) == 0;)
                left.discard();
        thrum_channel_destroy(&native_);
    }

    /* These are false where it is closed, or closed while they wait; the others also where the time is up. Then `value`
     * is as it was, also where its thread ends while it waits. Without a bound: std::bad_alloc. */
    bool send(T &&value) { return send_by(value, thrum_channel_send); }
    bool try_send(T &&value) { return send_by(value, thrum_channel_try_send); }
    template <class Rep, class Period>
    bool send_for(T &&value, const std::chrono::duration<Rep, Period> &span) {
        return send_by(value, [end = detail::moment_after(span)](auto *to, const void *from) {
            return thrum_channel_send_until(to, from, end);
        });
    }
    template <class Clock, class Duration>
    bool send_until(T &&value, const std::chrono::time_point<Clock, Duration> &moment) {
        return send_by(value, [&moment](auto *to, const void *from) {
            return detail::wait_until(
                moment, [=](std::uint64_t ns) { return thrum_channel_send_until(to, from, ns); });
        });
    }
    /* Of a copy. */
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
               const std::chrono::time_point<Clock, Duration> &moment) requires std::copy_constructible<T> {
        return send_until(T(value), moment);
    }

    /* Nothing where it is closed and empty; with the others, also where nothing has come. */
    std::optional<T> receive() { return receive_by(thrum_channel_receive); }
    std::optional<T> try_receive() { return receive_by(thrum_channel_try_receive); }
    template <class Rep, class Period>
    std::optional<T> receive_for(const std::chrono::duration<Rep, Period> &span) {
        return receive_by([end = detail::moment_after(span)](auto *from, void *to) {
            return thrum_channel_receive_until(from, to, end);
        });
    }
    template <class Clock, class Duration>
    std::optional<T> receive_until(const std::chrono::time_point<Clock, Duration> &moment) {
        return receive_by([&moment](auto *from, void *to) {
            return detail::wait_until(
                moment, [=](std::uint64_t ns) { return thrum_channel_receive_until(from, to, ns); });
        });
    }

    /* Nothing more can be sent. False: it was closed already. */
    bool close() noexcept {
        closed_.store(true, std::memory_order_relaxed);
        return thrum_channel_close(&native_) == 0;
    }
    bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
    /* How many it holds now. */
    std::size_t size() const noexcept { return thrum_channel_count(&native_); }

    class iterator {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        explicit iterator(channel *from) : from_(from), value_(from->receive()) {}
        T &operator*() const noexcept { return *value_; }
        iterator &operator++() {
            value_ = from_->receive();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(std::default_sentinel_t) const noexcept { return !value_; }

      private:
        channel *from_;
        mutable std::optional<T> value_;
    };
    iterator begin() { return iterator(this); }
    std::default_sentinel_t end() const noexcept { return {}; }

    /* For when_any: receives into `value`, which is empty where the channel is closed. */
    class receiving_t {
      public:
        receiving_t(channel *from, std::optional<T> *value) : from_(from), value_(value) {}
        thrum_wait_t waiting() noexcept {
            return {THRUM_WAIT_RECEIVE, 0, &from_->native_, parcel_.bytes(), {}};
        }
        void waited(int error) {
            value_->reset();
            if (error == 0)
                value_->emplace(parcel_.open());
        }

      private:
        channel *from_;
        std::optional<T> *value_;
        parcel parcel_;
    };
    receiving_t receiving(std::optional<T> &value) noexcept { return {this, &value}; }

    /* For when_any: sends what is in `value`, which is empty once it was sent; it is not where the channel is closed, or
     * another was ready. */
    class sending_t {
      public:
        sending_t(channel *to, std::optional<T> *value) noexcept : to_(to), value_(value) {}
        sending_t(const sending_t &) = delete;
        ~sending_t() { take_back(); }
        thrum_wait_t waiting() {
            if (!packed_)
                parcel_.pack(std::move(value_->value()));
            packed_ = true;
            return {THRUM_WAIT_SEND, 0, &to_->native_, parcel_.bytes(), {}};
        }
        void waited(int error) {
            if (error == ENOMEM)
                throw std::bad_alloc(); /* the value goes back at our end */
            if (error != 0)
                return take_back();
            packed_ = false;
            value_->reset();
        }

      private:
        void take_back() {
            if (std::exchange(packed_, false))
                parcel_.unpack(**value_);
        }

        channel *to_;
        std::optional<T> *value_;
        parcel parcel_;
        bool packed_ = false; /* the value is in the parcel, and ours */
    };
    sending_t sending(std::optional<T> &value) noexcept { return {this, &value}; }

  private:
    static std::size_t bytes_of(std::size_t capacity) {
        if (capacity > static_cast<std::size_t>(PTRDIFF_MAX) / parcel::size)
            throw std::bad_array_new_length();
        return capacity * parcel::size;
    }

    struct take_back_unless_sent { /* also where its thread ends while it waits */
        parcel *unsent;
        T *value;
        ~take_back_unless_sent() {
            if (unsent != nullptr)
                unsent->unpack(*value);
        }
    };

    template <class Send>
    bool send_by(T &value, Send send_native) {
        parcel sent;
        sent.pack(std::move(value));
        take_back_unless_sent guard{&sent, std::addressof(value)};
        const int error = send_native(&native_, sent.bytes());
        if (error == 0)
            guard.unsent = nullptr;
        else if (error == ENOMEM)
            throw std::bad_alloc();
        return error == 0;
    }
    template <class Receive>
    std::optional<T> receive_by(Receive receive_native) {
        parcel received;
        if (receive_native(&native_, received.bytes()) != 0)
            return std::nullopt;
        return received.open();
    }

    mutable thrum_channel_t native_;
    std::unique_ptr<std::byte[]> storage_;
    std::atomic<bool> closed_{false};
};

} // namespace thrum

#endif
