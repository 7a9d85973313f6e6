// SPDX-License-Identifier: Apache-2.0
//
// Does it compile? Each template of <thrum/thrum.hpp> with each kind of type that it should take: values for what carries
// them, callables for what runs them, clocks and numbers for what measures time. Nothing here is called: that the
// compiler has made it is the test.
#include <thrum/thrum.hpp>

#include <any>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace values {

// A namespace of a user's, whose functions have the names of ours: an argument of it must not find them.
template <class... Args>
void bind(Args &&...) = delete;
template <class... Args>
void check(Args &&...) = delete;
template <class... Args>
void element(Args &&...) = delete;
template <class... Args>
void for_each(Args &&...) = delete;
template <class... Args>
void launch(Args &&...) = delete;
template <class... Args>
void parallel_invoke(Args &&...) = delete;
template <class... Args>
void tell_waited(Args &&...) = delete;
template <class... Args>
void wait_until(Args &&...) = delete;
template <class... Args>
void nanoseconds_of(Args &&...) = delete;
template <class... Args>
void instant_of(Args &&...) = delete;
template <class... Args>
void invoke(Args &&...) = delete;

enum class Colour : unsigned char { kRed };
struct Empty {};
struct Pod {
    int a;
    char b[3];
};
struct MoveOnlyBytes { // is bytes, cannot be copied
    explicit MoveOnlyBytes(int) {}
    MoveOnlyBytes(const MoveOnlyBytes &) = delete;
    MoveOnlyBytes(MoveOnlyBytes &&) = default;
    MoveOnlyBytes &operator=(MoveOnlyBytes &&) = default;
};
struct MoveOnly {
    MoveOnly(MoveOnly &&) noexcept {}
    MoveOnly &operator=(MoveOnly &&) noexcept { return *this; }
    ~MoveOnly() {}
};
struct ConstructibleOnly { // neither assigned nor made of nothing
    explicit ConstructibleOnly(std::string text) : held(std::move(text)) {}
    const std::string held;
};
struct ConstBytes {
    const int value;
};
struct WithReference {
    int &place;
};
struct Throwing {
    Throwing(const Throwing &) {}
    Throwing(Throwing &&) {}
    Throwing &operator=(Throwing &&) { return *this; }
};
struct CopyOnly { // an rvalue is copied
    CopyOnly(const CopyOnly &) {}
    CopyOnly &operator=(const CopyOnly &) { return *this; }
};
struct alignas(256) Aligned {
    std::string text;
};
struct alignas(64) AlignedBytes {
    char byte;
};
struct Large {
    std::array<long, 100> numbers;
};
struct Greedy { // can be made of anything
    template <class T>
    Greedy(T &&) {} // NOLINT
    Greedy(const Greedy &) = default;
    Greedy(Greedy &&) = default;
    Greedy &operator=(const Greedy &) = default;
};
struct Sly { // hides its address, and cannot be made by new
    Sly *operator&() const = delete;
    static void *operator new(std::size_t) = delete;
    static void operator delete(void *) = delete;
    Sly(Sly &&) noexcept {}
    Sly &operator=(Sly &&) noexcept { return *this; }
    void operator,(int) const = delete;
};
struct Final final {
    std::unique_ptr<int> held;
};
struct Base {
    virtual ~Base() = default;
    int number = 0;
};

// With external linkage, so that the optimiser sees it: no warning where a value writes no bytes.
void signal_by(thrum::channel<Empty> &channel, std::optional<Empty> &offered);
void signal_by(thrum::channel<Empty> &channel, std::optional<Empty> &offered) {
    channel.send({});
    thrum::when_any(channel.sending(offered));
}

} // namespace values

namespace {

template <class... Ts>
struct List {};
// Each is a kind of its own for at least one template: compilers take most of a second for each.
using Travelling =
    List<bool, void *, int (*)(int), values::Colour, values::Empty, values::MoveOnlyBytes, values::MoveOnly,
         values::ConstructibleOnly, values::ConstBytes, values::WithReference, values::Throwing,
         values::CopyOnly, values::Aligned, values::AlignedBytes, values::Large, values::Greedy, values::Sly,
         values::Base, std::string, std::any, std::unique_ptr<int>, std::optional<std::string>,
         std::vector<std::unique_ptr<int>>, thrum::future<int>>;
using Resulting = List<bool, values::MoveOnlyBytes, values::MoveOnly, values::ConstructibleOnly,
                       values::WithReference, values::Throwing, values::Aligned, values::Greedy, values::Sly,
                       std::any, std::unique_ptr<int>, std::optional<std::string>>;

constexpr auto kSpan = std::chrono::milliseconds(1);
const auto kMoment = std::chrono::system_clock::time_point();

// --- what carries values ----------------------------------------------------------------------------------

template <class T>
void channels(T &value, std::optional<T> &offered) {
    thrum::channel<T> channel(1), other(thrum::unbounded);
    channel.send(std::move(value));
    channel.try_send(std::move(value));
    channel.send_for(std::move(value), kSpan);
    channel.send_until(std::move(value), kMoment);
    if constexpr (std::copy_constructible<T> &&
                  !std::ranges::range<T>) { // one of unique_ptrs says that it can be copied
        const T copied(std::move(value));
        channel.send(copied);
        channel.try_send(copied);
        channel.send_for(copied, kSpan);
        channel.send_until(copied, kMoment);
    }
    std::optional<T> received(channel.receive());
    channel.try_receive();
    channel.receive_for(kSpan);
    channel.receive_until(kMoment);
    channel.receive(std::stop_token());
    channel.send(std::move(value), std::stop_token());
    for (T &one : channel)
        static_cast<void>(std::addressof(one));
    static_assert(std::ranges::input_range<thrum::channel<T>>);
    thrum::when_any(channel.sending(offered), other.sending(offered), other.receiving(received));
    thrum::when_any_for(kSpan, channel.sending(offered));
    thrum::when_any_until(kMoment, channel.receiving(received));
    typename thrum::channel<T>::sending_t sends[] = {channel.sending(offered), other.sending(offered)};
    typename thrum::channel<T>::receiving_t receives[] = {channel.receiving(received),
                                                          other.receiving(received)};
    thrum::when_any(std::span(sends));
    thrum::when_any_for(kSpan, std::span(receives));
    thrum::when_any(thrum::only_if(true, channel.sending(offered)),
                    thrum::only_if(true, other.receiving(received)), thrum::only_if(true, sends[0]));
    std::vector<thrum::only_if<typename thrum::channel<T>::sending_t>> switched;
    switched.emplace_back(true, channel.sending(offered));
    thrum::when_any(std::span(switched));
    thrum::when_all_until(kMoment, channel.receiving(received), sends[0]);
    static_cast<void>([](auto &from, auto &into, auto &out) -> thrum::task<> {
        co_await from.receiving(into);
        co_await from.sending(out);
    }(channel, received, offered));
}

template <class T>
thrum::task<T> a_task(T value) {
    co_return std::move(value);
}
template <class T>
thrum::task<T> awaits_it(T value) {
    thrum::promise<T> promise;
    promise.set_value(co_await a_task<T>(std::move(value)));
    co_return co_await promise.get_future();
}

template <class T>
void results(T &value) {
    thrum::promise<T> promise;
    promise.set_value(std::move(value));
    promise.set_exception(nullptr);
    thrum::future<T> future = promise.get_future();
    future.wait();
    future.wait_for(kSpan);
    future.wait_until(kMoment);
    thrum::when_any(future);
    thrum::when_all(future);
    future.wait(std::stop_token());
    static_cast<void>(future.get());
    const thrum::shared_future<T> shared = promise.get_future().share();
    [[maybe_unused]] const T &held = shared.get();
    thrum::when_all_for(kSpan, shared);
    static_cast<void>(shared.then([](thrum::shared_future<T> one) { return one; }).get());
    static_cast<void>(promise.get_future().then([](thrum::future<T> one) { return one.get(); }).get());
    static_cast<void>([](thrum::shared_future<T> one) -> thrum::task<> {
        [[maybe_unused]] const T &value_of_it = co_await one;
    }(shared));
    thrum::packaged_task<T(T &)> task([](T &one) { return T(std::move(one)); });
    static_cast<void>(task.get_future());
    task(value);
    task.reset();
    static_cast<void>(thrum::async([](T one) { return T(std::move(one)); }, std::move(value)).get());
    static_cast<void>(thrum::async(awaits_it<T>(std::move(value))).get());
    thrum::thread([](T &&) {}, std::move(value)).join();
    static_cast<void>(thrum::branch([&value] { return T(std::move(value)); }).join());
    thrum::task_group().run([held = T(std::move(value))]() mutable {});
    const std::span<T> several;
    thrum::for_each(several, [](T &) {});
    if constexpr (std::is_move_assignable_v<T>)
        static_cast<void>(thrum::reduce(
            0, 10, T(std::move(value)), [](T a, T) { return a; },
            [&value](int) { return T(std::move(value)); }));
}

template <class... Ts>
void with_channels(List<Ts...>) {
    (static_cast<void>(channels<Ts>), ...);
}
template <class... Ts>
void with_results(List<Ts...>) {
    (static_cast<void>(results<Ts>), ...);
}
[[maybe_unused]] void all_values() {
    with_channels(Travelling());
    with_results(Resulting());
}

// Those of values that are none.
[[maybe_unused]] void without_values(thrum::promise<void> nothing, thrum::promise<int &> reference,
                                     int &number) {
    nothing.set_value();
    reference.set_value(number);
    nothing.get_future().get();
    reference.get_future().get()++;
    thrum::promise<const int> constant;
    constant.set_value(1);
    thrum::promise<values::Pod> from_braces;
    from_braces.set_value({1, {}});
    static_cast<void>(constant.get_future().get());
    const auto awaits = [](thrum::future<void> done, thrum::future<int &> place) -> thrum::task<int &> {
        co_await done;
        co_return co_await place;
    };
    thrum::async(awaits(nothing.get_future(), reference.get_future())).get()++;
    static_cast<void>(thrum::async([]() -> thrum::task<values::Pod> { co_return {1, {}}; }()).get());
    thrum::async([]() -> thrum::task<> { co_return; }()).get();
}

// --- what is run ------------------------------------------------------------------------------------------

int function(int n) {
    return n;
}
void plain() {}
struct Object {
    int member = 0;
    int method(int) { return 0; }
    int constant() const noexcept { return 0; }
    int by_rvalue() && { return 0; }
};
struct ByValue {
    int operator()() const { return 0; }
};
struct ByRvalue {
    void operator()() && {}
};
struct MoveOnlyCall {
    std::unique_ptr<int> held;
    void operator()() {}
};
struct FinalCall final {
    void operator()() noexcept {}
};
struct alignas(128) AlignedCall {
    void operator()() {}
};
struct OverloadedCall {
    void operator()() {}
    void operator()(std::stop_token) {}
    void operator()(int) {}
};

template <class F, class... Args>
void runs(F &&f, Args &&...args) {
    thrum::thread(std::forward<F>(f), std::forward<Args>(args)...).join();
    static_cast<void>(
        thrum::async(thrum::attributes(), std::forward<F>(f), std::forward<Args>(args)...).get());
}

template <class F>
void runs_alone(F &&f) {
    runs(std::forward<F>(f));
    thrum::task_group().run(std::forward<F>(f));
    if constexpr (std::is_invocable_v<std::decay_t<F> &>)
        thrum::packaged_task<void()>(std::forward<F>(f))();
    thrum::executor().execute(std::forward<F>(f));
    thrum::parallel_invoke(std::forward<F>(f), std::forward<F>(f));
    static_cast<void>(thrum::branch(std::nothrow, std::forward<F>(f)).join());
    thrum::once_flag once;
    thrum::call_once(once, std::forward<F>(f));
}

[[maybe_unused]] void all_run(Object &object, ByValue &by_value, MoveOnlyCall &moved) {
    runs(function, 1);
    runs(std::mem_fn(&Object::constant), Object());
    runs(&Object::method, &object, 1);
    runs(&Object::method, std::ref(object), 1);
    runs(&Object::method, std::make_unique<Object>(), 1);
    runs(&Object::by_rvalue, Object());
    runs(&Object::member, &object);
    runs(OverloadedCall(), 1);
    runs([](values::Greedy, const std::string &) {}, values::Empty(), "text");
    runs([](int &n) { n++; }, std::ref(object.member));
    runs([](auto &&...) {}, values::Pod(), values::Colour::kRed);
    runs_alone(plain);
    runs_alone([held = std::make_unique<int>()] { return *held; });
    runs_alone([n = 0]() mutable noexcept -> int { return n++; });
    runs_alone(std::function<int()>());
    runs_alone(std::ref(by_value));
    runs_alone(by_value);
    runs_alone(std::move(moved));
    runs_alone(ByRvalue());
    runs_alone(FinalCall());
    runs_alone(AlignedCall());
    runs_alone(OverloadedCall());
    thrum::thread([](std::stop_token, values::Final) {}, values::Final()).join();
    const thrum::barrier<FinalCall> barrier(1);
    const thrum::barrier lambda(1, [&object]() noexcept { object.member++; });
}

// What cannot be called is refused where it is given, in the first line of the compiler's message.
template <class F>
concept can_run = requires(thrum::scope &scope, const thrum::attributes &how, F f) {
    scope.run(f);
    scope.run(how, f);
};
template <class F>
concept can_execute = requires(thrum::executor executor, F f) {
    executor.execute(f);
};
template <class F>
concept can_be_invoked = requires(F f) {
    thrum::parallel_invoke(f, plain);
    thrum::parallel_invoke(plain, f);
    thrum::parallel_invoke(plain, plain, f);
};
struct NeedsANumber {
    void operator()(int) const {}
};
static_assert(can_run<OverloadedCall> && !can_run<NeedsANumber> && !can_run<int>);
static_assert(can_execute<OverloadedCall> && !can_execute<NeedsANumber> && !can_execute<int>);
static_assert(can_be_invoked<OverloadedCall> && !can_be_invoked<NeedsANumber> && !can_be_invoked<int>);

// --- loops ------------------------------------------------------------------------------------------------

[[maybe_unused]] void loops(std::vector<values::Pod> pods, std::array<int, 3> few, const std::string &text,
                            int *begin) {
    thrum::for_each(pods, [](values::Pod &) {});
    thrum::for_each(few, [](const int &) {});
    thrum::for_each(text, [](char) {});
    thrum::for_each(std::vector<bool>(3), [](auto) {});
    thrum::for_each(begin, begin + 3, [](int &) {});
    thrum::for_each('a', 'z', [](char) {});
    thrum::for_each(0U, 7U, function);
    thrum::for_each(0L, 7L, [held = std::make_unique<int>()](long) mutable {});
    static_cast<void>(thrum::reduce(text.begin(), text.end(), std::string(), std::plus<>(),
                                    [](char c) { return std::string(1, c); }));
    static_cast<void>(thrum::reduce(begin, begin + 3, 0L));
    static_cast<void>(thrum::reduce(few, 0L));
    static_cast<void>(thrum::reduce(
        std::span(begin, 3), values::Pod(), [](auto a, auto) { return a; },
        [](int) { return values::Pod(); }));
    thrum::inclusive_scan(begin, begin + 3, few.begin());
    thrum::inclusive_scan(0U, 7U, begin, std::plus<>(), 1L, 2);
    thrum::inclusive_scan(pods.begin(), pods.end(), pods.begin(), [](auto a, auto) { return a; });
    std::vector<std::string> parts;
    thrum::exclusive_scan(parts.begin(), parts.end(), parts.data(), std::string());
    std::vector<bool> bits;
    thrum::exclusive_scan(begin, begin, bits.begin(), false, std::logical_or<>());
    static_cast<void>(thrum::reduce(
        std::uint8_t{0}, std::uint8_t{3}, values::Colour(), [](auto a, auto) { return a; },
        [](int) { return values::Colour(); }));
}

// --- what waits -------------------------------------------------------------------------------------------

// A number of a user's, with what std::chrono wants of one.
struct Number {
    constexpr Number(long n = 0) : value(n) {} // NOLINT
    constexpr explicit operator long double() const { return static_cast<long double>(value); }
    constexpr auto operator<=>(const Number &) const = default;
    constexpr Number operator+(Number other) const { return value + other.value; }
    constexpr Number operator-(Number other) const { return value - other.value; }
    constexpr Number operator*(Number other) const { return value * other.value; }
    constexpr Number operator/(Number other) const { return value / other.value; }
    long value;
};

} // namespace

template <>
struct std::common_type<Number, long double> {
    using type = long double;
};
template <>
struct std::common_type<long double, Number> {
    using type = long double;
};

namespace values {

template <class Rep, class Period>
struct Clock {
    using rep = Rep;
    using period = Period;
    using duration = std::chrono::duration<Rep, Period>;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;
    static time_point now() { return time_point(); }
};

} // namespace values

namespace {

template <class Span>
void waits_for(const Span &span) {
    thrum::mutex mutex;
    thrum::shared_mutex shared;
    thrum::condition_variable condition;
    std::unique_lock lock(mutex, span);
    const std::shared_lock reads(shared, span);
    static_cast<void>(shared.try_lock_for(span));
    condition.wait_for(lock, span);
    condition.wait_for(lock, span, [] { return true; });
    condition.wait_for(lock, std::stop_token(), span, [] { return true; });
    const thrum::event event;
    event.wait_for(span);
    thrum::counting_semaphore<1000>(0).try_acquire_for(span);
    thrum::when_any_for(span, event);
    thrum::when_all_for(span, event);
    thrum::latch(0).wait_for(span);
    thrum::barrier<> barrier(1);
    barrier.wait_for(barrier.arrive(), span);
    thrum::task_group().wait_for(span);
    thrum::condition_variable_any any;
    std::shared_lock shares(shared);
    any.wait_for(shares, span);
    any.wait_for(lock, std::stop_token(), span, [] { return true; });
    thrum::this_thread::sleep_for(span);
    thrum::this_thread::sleep_for(std::stop_token(), span);
    static_cast<void>(thrum::sleeping_for(span));
}

template <class Moment>
void waits_until(const Moment &moment) {
    thrum::recursive_mutex mutex;
    thrum::shared_mutex shared;
    thrum::condition_variable condition;
    std::unique_lock lock(mutex, moment);
    const std::shared_lock reads(shared, moment);
    static_cast<void>(shared.try_lock_until(moment));
    condition.wait_until(lock, moment);
    condition.wait_until(lock, moment, [] { return true; });
    condition.wait_until(lock, std::stop_token(), moment, [] { return true; });
    const thrum::event event;
    event.wait_until(moment);
    thrum::binary_semaphore(0).try_acquire_until(moment);
    const thrum::latch latch(1);
    thrum::when_any_until(moment, event, latch);
    thrum::when_all_until(moment, event, latch);
    latch.wait_until(moment);
    thrum::barrier<> barrier(1);
    barrier.wait_until(barrier.arrive(), moment);
    thrum::task_group().wait_until(moment);
    thrum::condition_variable_any any;
    any.wait_until(lock, moment, [] { return true; });
    any.wait_until(lock, std::stop_token(), moment, [] { return true; });
    thrum::this_thread::sleep_until(moment);
    thrum::this_thread::sleep_until(std::stop_token(), moment);
    const thrum::scope scope(moment);
    const thrum::scheduled_call call(moment, [] {});
    thrum::blocking_until(moment, [] {});
    static_cast<void>(thrum::sleeping_until(moment));
    static_cast<void>(thrum::awaiting_any_until(moment, event, latch));
    thrum::mutex awaited;
    std::unique_lock held(awaited);
    static_cast<void>(condition.waiting_until(held, moment));
    static_cast<void>(condition.waiting_until(held, moment, [] { return true; }));
    static_cast<void>(condition.waiting_until(held, std::stop_token(), moment, [] { return true; }));
}

[[maybe_unused]] void times() {
    using namespace std::chrono;
    waits_for(nanoseconds());
    waits_for(duration<double>());
    waits_for(duration<std::uint8_t, std::ratio<7, 3>>());
    waits_for(duration<Number, std::milli>());
    waits_until(steady_clock::time_point());
    waits_until(time_point<steady_clock, duration<double>>());
    waits_until(system_clock::time_point());
    waits_until(time_point<system_clock, days>());
    waits_until(values::Clock<float, std::ratio<1, 60>>::time_point());
    waits_until(values::Clock<unsigned, std::ratio<604800>>::time_point());
}

} // namespace
