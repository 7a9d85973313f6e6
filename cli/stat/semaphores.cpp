// SPDX-License-Identifier: Apache-2.0
//
// A wait for a semaphore ends when a thread raises it, and which one that was no sample shows. But a thread that did not run did
// not raise it. So if its waits end again and again while no other thread runs than those that wait for it by turns, it is one of
// these that raises it. If one alone does not wait while others do, that one has it.
#include "stat/semaphores.hpp"

#include <sys/sem.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <unordered_map>

#include "stat/rules.hpp"

namespace thrum::stat {

namespace {

constexpr std::uint64_t kFewPasses = 20;
constexpr double kByOthers = 0.1; // of the looks that saw it pass on: looks in which other threads had run
constexpr double kOneAlone = 0.4; // of the looks at its waiters: one thread alone did not wait
// Likewise: all waited. That cannot be if none of the others raises it; but a look at all takes its time, in which it passes on.
constexpr double kNoneHasIt = 0.5;
constexpr double kSleeps = 0.5; // of the looks at the one that does not wait
constexpr double kOften =
    0.3; // of the looks it passed on, if its holder computes: one thread's longer work is no lock's

struct Use {
    std::set<pid_t> waiters;
    std::size_t first = 0, last = 0; // samples that waited for it
    PassedOn passed;
    std::set<pid_t> passers;
    std::uint64_t looks = 0, all_wait = 0, by_others = 0, asleep = 0;

    bool is_lock() const;
};

bool Use::is_lock() const {
    const auto all = static_cast<double>(looks), times = static_cast<double>(passed.times),
               alone = static_cast<double>(passed.holders.size());
    return passed.times >= kFewPasses && passers.size() > 1 &&
           static_cast<double>(by_others) <= kByOthers * times && alone >= kOneAlone * all &&
           static_cast<double>(all_wait) <= kNoneHasIt * all &&
           (static_cast<double>(asleep) >= kSleeps * alone || times >= kOften * all);
}

// Looks at one moment, one for each thread that was looked at.
class Sweeps {
  public:
    Sweeps(const std::vector<ProcSample> &samples, const WordOf &word_of);
    std::map<std::uint64_t, PassedOn> locks();

  private:
    void take(std::size_t begin, std::size_t end);
    void take(Use &use, std::uint64_t word, std::size_t begin, std::size_t end);
    bool has_run(std::size_t sample) const;

    const std::vector<ProcSample> &samples_;
    std::vector<std::uint64_t> words_; // by sample
    std::unordered_map<std::uint64_t, Use> uses_;
    std::unordered_map<pid_t, std::size_t> latest_; // look at a thread
};

Sweeps::Sweeps(const std::vector<ProcSample> &samples, const WordOf &word_of) : samples_(samples) {
    for (std::size_t i = 0; i < samples.size(); i++) {
        words_.push_back(word_of(samples[i]));
        if (words_[i] == 0)
            continue;
        Use &use = uses_[words_[i]];
        if (use.waiters.empty())
            use.first = i;
        use.last = i;
        use.waiters.insert(samples[i].thread);
    }
    for (auto at = uses_.begin(); at != uses_.end();)
        at = at->second.waiters.size() < 2 ? uses_.erase(at) : std::next(at);
}

// Since the look before; at the first look that is not known.
bool Sweeps::has_run(std::size_t sample) const {
    const auto before = latest_.find(samples_[sample].thread);
    return before == latest_.end() || samples_[before->second].run_ns != samples_[sample].run_ns ||
           samples_[sample].state == 'R';
}

void Sweeps::take(Use &use, std::uint64_t word, std::size_t begin, std::size_t end) {
    std::size_t waiting = 0, away = 0, holder = begin;
    bool has_passed = false, ran_another = false;
    for (std::size_t i = begin; i < end; i++) {
        const pid_t thread = samples_[i].thread;
        if (use.waiters.count(thread) == 0) {
            ran_another = ran_another || has_run(i);
            continue;
        }
        (words_[i] == word ? waiting : away)++;
        if (words_[i] != word)
            holder = i;
        const auto before = latest_.find(thread);
        if (before != latest_.end() && words_[before->second] == word && has_run(i)) {
            has_passed = true;
            use.passers.insert(thread);
        }
    }
    if (waiting == 0)
        return;
    use.looks++;
    use.all_wait += away == 0;
    use.passed.times += has_passed;
    use.by_others += ran_another;
    if (away != 1)
        return;
    use.passed.holders.push_back(holder);
    use.asleep += samples_[holder].state != 'R' && samples_[holder].system_call >= 0;
}

void Sweeps::take(std::size_t begin, std::size_t end) {
    for (auto &[word, use] : uses_)
        if (use.first < end && use.last >= begin)
            take(use, word, begin, end);
    for (std::size_t i = begin; i < end; i++)
        latest_[samples_[i].thread] = i;
}

std::map<std::uint64_t, PassedOn> Sweeps::locks() {
    std::map<std::uint64_t, PassedOn> found;
    for (std::size_t begin = 0; !uses_.empty() && begin < samples_.size();) {
        std::size_t end = begin;
        while (end < samples_.size() && samples_[end].at <= samples_[begin].at)
            end++;
        take(begin, end);
        begin = end;
    }
    for (auto &[word, use] : uses_)
        if (use.is_lock())
            found.emplace(word, std::move(use.passed));
    return found;
}

constexpr std::uint64_t kOfSet = std::uint64_t{1} << 63; // what no address has

} // namespace

// Wrong where each waiter adds work as often as it takes some, and one piece of work is there at a time: a chain of tasks that a pool
// passes on. Then too one thread at a time gets past it. Threads of a pool whose work comes from elsewhere are none: what brings it
// runs.
std::map<std::uint64_t, PassedOn> semaphores_passed_on(const std::vector<ProcSample> &samples,
                                                       const WordOf &word_of) {
    return Sweeps(samples, word_of).locks();
}

bool is_in_python_lock_call(const std::vector<Frame> &stack) {
    return std::any_of(stack.begin(), stack.end(), [](const Frame &frame) {
        return plain_name(frame.function).rfind("PyThread_acquire_lock", 0) == 0;
    });
}

bool is_in_semaphore_call(const std::vector<Frame> &stack) {
    for (const Frame &frame : stack) {
        const std::string name = plain_name(frame.function);
        if (name.rfind("sem_", 0) == 0 || name.rfind("new_sem_", 0) == 0 ||
            name.find("semaphore") != std::string::npos)
            return true;
        if (frame.is_user && frame.function.rfind("std::", 0) != 0)
            break;
    }
    return is_in_python_lock_call(stack);
}

std::uint64_t set_semaphore(const ProcSample &sample) {
    sembuf operation{};
    std::memcpy(&operation, &sample.arguments[kSemopOperation], sizeof operation);
    const bool is_timed = sample.system_call == SYS_semtimedop && sample.arguments[3] != 0;
    const bool is_semop = sample.system_call == SYS_semop || sample.system_call == SYS_semtimedop;
    const bool waits = is_semop && !is_timed && sample.state == 'S' && operation.sem_op < 0;
    return waits ? kOfSet | (sample.arguments[0] & 0x7fffffff) << 16 | operation.sem_num : 0;
}

Lock lock_of_set(const ProcSample &sample) {
    sembuf operation{};
    std::memcpy(&operation, &sample.arguments[kSemopOperation], sizeof operation);
    Lock lock; // whose text is all that tells it from others
    lock.text =
        "semaphore " + std::to_string(operation.sem_num) + " of set " + std::to_string(sample.arguments[0]);
    return lock;
}

} // namespace thrum::stat
