// SPDX-License-Identifier: Apache-2.0
// From C++: threads that run lambdas, and an exception that a thread passes to its joiner.
// c++ lambda.cpp $(pkg-config --cflags --libs thrum)
#include <exception>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <thrum/thrum.h>

template <class Work>
class Thread {
  public:
    explicit Thread(Work work) : work_(std::move(work)) {
        if (const int error = thrum_spawn(&handle_, nullptr, run, this); error != 0)
            throw std::system_error(error, std::generic_category(), "thrum_spawn");
    }
    Thread(const Thread &) = delete; // the new thread knows our address
    ~Thread() {
        if (handle_ != nullptr)
            thrum_join(handle_, nullptr);
    }
    void join() {
        thrum_join(std::exchange(handle_, nullptr), nullptr);
        if (thrown_)
            std::rethrow_exception(thrown_);
    }

  private:
    static void *run(void *self) {
        auto *thread = static_cast<Thread *>(self);
        try {
            thread->work_();
        } catch (...) {
            thread->thrown_ = std::current_exception();
        }
        return nullptr;
    }

    Work work_;
    std::exception_ptr thrown_;
    thrum_t handle_ = nullptr;
};

int main() {
    std::vector<long> numbers(100000);
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto middle = numbers.begin() + 50000;
    long low = 0, high = 0;
    {
        Thread first([&] { low = std::accumulate(numbers.begin(), middle, 0L); });
        Thread second([&] { high = std::accumulate(middle, numbers.end(), 0L); });
    }
    std::cout << "the sum is " << low + high;
    try {
        Thread([&] { numbers.at(100000) = 1; }).join();
    } catch (const std::out_of_range &) {
        std::cout << "; what was thrown in a thread is caught here\n";
    }
}
