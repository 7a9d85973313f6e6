// SPDX-License-Identifier: Apache-2.0
//
// See tasks.hpp.
#include "tasks.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <thread>
#include <utility>

#include "common.hpp"
#include "crew.hpp"

namespace casestudy {

namespace {

// --- what a task does -------------------------------------------------------------------------------------

const std::set<std::string> kActions = {"sleep",   "kernel", "poll", "bell",
                                        "compute", "write",  "few",  "direct"};

struct Action {
    std::string name;
    double amount;
    std::string folder; // for files
};

Action action_of(const std::string &text) {
    const std::size_t colon = text.find(':'), second = text.find(':', colon + 1);
    if (colon == std::string::npos)
        throw bench::Failure("an action is NAME:AMOUNT, not '" + text + "'", bench::Failure::kUsage);
    return {text.substr(0, colon), std::strtod(text.c_str() + colon + 1, nullptr),
            second != std::string::npos ? text.substr(second + 1) : ""};
}

// Each step needs the one before it, and the last may be read: no compiler leaves the loop out.
void compute(double times) {
    std::uint64_t x = 1;
    for (auto i = static_cast<std::uint64_t>(times); i > 0; i--)
        x = x * 6364136223846793005 + 1442695040888963407;
    __asm__ volatile("" : : "r"(x));
}

// Anywhere, also where an exception could not leave.
[[noreturn]] void give_up(const std::string &what, int error) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), std::strerror(error));
    _exit(1);
}

// The file has no name when it is written, so that nothing is left whatever happens.
void write_to_disk(const std::string &folder, double kibibytes) {
    std::string path = folder + "/thrum-casestudy-XXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0)
        give_up(folder, errno);
    unlink(path.c_str());
    const std::vector<char> bytes(static_cast<std::size_t>(kibibytes) * 1024, 'x');
    const bool good =
        write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) && fdatasync(file) == 0;
    const int error = errno;
    close(file);
    if (!good)
        give_up(folder, error);
}

// --- the clock thread -------------------------------------------------------------------------------------

// Rings bells when it is time; the next moment is on top. What a runtime without timers of its own puts beside it.
class Clock {
  public:
    Clock() : thread_([this] { tick(); }) {}
    ~Clock() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            over_ = true;
        }
        changed_.notify_one();
        thread_.join();
    }
    void set(std::uint64_t moment, Bell *bell) {
        const std::lock_guard<std::mutex> lock(mutex_);
        alarms_.push({moment, bell});
        if (alarms_.top().second == bell)
            changed_.notify_one();
    }

  private:
    using Alarm = std::pair<std::uint64_t, Bell *>;

    void tick() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (!over_) {
            const auto next = std::chrono::steady_clock::time_point( // CLOCK_MONOTONIC
                std::chrono::nanoseconds(alarms_.empty() ? 0 : alarms_.top().first));
            if (alarms_.empty()) {
                changed_.wait(lock);
            } else if (now_ns() < alarms_.top().first) {
                changed_.wait_until(lock, next);
            } else {
                alarms_.top().second->ring();
                alarms_.pop();
            }
        }
    }

    std::mutex mutex_; // held for moments only, so that a ULT may take it
    std::condition_variable changed_;
    std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms_;
    bool over_ = false;
    std::thread thread_;
};

// --- a task -----------------------------------------------------------------------------------------------

class Tasks {
  public:
    Tasks(Crew &crew, const std::vector<std::string> &actions, unsigned count) : crew_(crew), late_(count) {
        for (const std::string &action : actions) {
            actions_.push_back(action_of(action));
            if (kActions.count(actions_.back().name) == 0)
                throw bench::Failure("there is no action '" + action + "'", bench::Failure::kUsage);
        }
    }
    void run(unsigned number) {
        for (const Action &action : actions_)
            if (!compute_or_write(action))
                late_[number] += sleep(action);
    }
    const std::vector<double> &late() const { return late_; } // ms, beyond what was asked for

  private:
    bool compute_or_write(const Action &action) {
        if (action.name == "compute")
            compute(action.amount);
        else if (action.name == "write")
            crew_.block([&] { write_to_disk(action.folder, action.amount); });
        else if (action.name == "few")
            crew_.block_few([&] { write_to_disk(action.folder, action.amount); });
        else if (action.name == "direct")
            write_to_disk(action.folder, action.amount);
        else
            return false;
        return true;
    }
    double sleep(const Action &action) {
        const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(action.amount * 1e9);
        if (action.name == "sleep") {
            crew_.sleep_until(end);
        } else if (action.name == "kernel") {
            crew_.block([&] { sleep_in_kernel_until(end); });
        } else if (action.name == "poll") {
            while (now_ns() < end)
                crew_.yield();
        } else if (action.name == "bell") {
            const std::unique_ptr<Bell> bell = crew_.bell();
            // Not before the crew is there: in a process that has threads, thrum_init takes the kernel some 10 ms.
            std::call_once(clock_made_, [this] { clock_ = std::make_unique<Clock>(); });
            clock_->set(end, bell.get());
            bell->wait();
        }
        return static_cast<double>(now_ns() - end) / 1e6;
    }

    Crew &crew_;
    std::vector<Action> actions_;
    std::vector<double> late_;
    std::unique_ptr<Clock> clock_;
    std::once_flag clock_made_;
};

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

} // namespace

void work(const std::vector<std::string> &words) {
    if (words.size() < 3)
        throw bench::Failure("--work takes CREW SIZE TASKS ACTION...", bench::Failure::kUsage);
    const auto count = static_cast<unsigned>(std::strtoul(words[2].c_str(), nullptr, 10));
    const std::unique_ptr<Crew> crew =
        make_crew(words[0], static_cast<unsigned>(std::strtoul(words[1].c_str(), nullptr, 10)));
    Tasks tasks(*crew, std::vector<std::string>(words.begin() + 3, words.end()), count);
    alarm(1800); // a benchmark that hangs has failed
    std::printf("begin\n");
    std::fflush(stdout);
    const std::uint64_t begun = now_ns();
    const double cpu = cpu_seconds();
    crew->run(count, [&](unsigned number) { tasks.run(number); });
    const double used = cpu_seconds() - cpu, seconds = static_cast<double>(now_ns() - begun) / 1e9;
    double sum = 0, most = 0;
    for (const double late : tasks.late()) {
        sum += late;
        most = std::max(most, late);
    }
    std::printf("%.9f %.9f %.6f %.6f\n", seconds, used, sum / count, most);
}

} // namespace casestudy
