// SPDX-License-Identifier: Apache-2.0
//
// A wait for a semaphore ends when a thread raises it, and which one that was no sample shows. But a thread that did not run did
// not raise it. So if its waits end again and again while no other thread runs than those that wait for it by turns, it is one of
// these that raises it. If one alone does not wait while others do, that one has it.
//
// A queue whose tasks each add the next one is passed on like that, too. But of its waiters only the one with the task does anything, and
// those of a lock may do something else meanwhile.
#include "stat/semaphores.hpp"

#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
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
// Threads that did something else than wait for it, on average: of one task at a time one. That many more than one, and so many times the
// error of that mean.
constexpr double kMoreThanOne = 0.05, kErrors = 2;
// Of the time since the look before: CPU time of one that does something. Less has one that raised it, and has no CPU to wait for it again.
constexpr double kComputes = 0.03;
// Threads asleep where one alone sleeps with it: of a lock one at most, of tasks as many as there are. And looks at one alone that a
// place takes to be such a one.
constexpr double kOneInside = 1.1, kInside = 0.05;
constexpr double kOften =
    0.3; // of the looks it passed on, if its holder computes: one thread's longer work is no lock's

struct Use {
    std::set<pid_t> waiters;
    std::size_t first = 0, last = 0; // samples that waited for it
    PassedOn passed;
    std::set<pid_t> passers;
    std::uint64_t looks = 0, all_wait = 0, by_others = 0, asleep = 0;
    double busy = 0,
           busy_squared = 0; // threads that did something else than wait for it, the sums of all looks
    struct Sleep {           // looks at those that did not wait for it, and at one that alone did not
        std::uint64_t all = 0, alone = 0;
    };
    std::unordered_map<std::uint64_t, Sleep> sleeps; // by place

    bool is_lock() const;
    bool may_be_tasks() const;
};

bool Use::is_lock() const {
    const auto all = static_cast<double>(looks), times = static_cast<double>(passed.times),
               alone = static_cast<double>(passed.holders.size());
    return passed.times >= kFewPasses && passers.size() > 1 &&
           static_cast<double>(by_others) <= kByOthers * times && alone >= kOneAlone * all &&
           static_cast<double>(all_wait) <= kNoneHasIt * all &&
           (static_cast<double>(asleep) >= kSleeps * alone || times >= kOften * all);
}

bool Use::may_be_tasks() const {
    const auto all = static_cast<double>(looks), alone = static_cast<double>(passed.holders.size());
    double inside = 0, alone_inside = 0;
    for (const auto &[place, sleep] : sleeps) {
        if (place == 0 || static_cast<double>(sleep.alone) < kInside * alone)
            continue;
        inside += static_cast<double>(sleep.all);
        alone_inside += static_cast<double>(sleep.alone);
    }
    const double mean = busy / all, error = std::sqrt((busy_squared / all - mean * mean) / all);
    return mean - 1 < std::max(kMoreThanOne, kErrors * error) || inside > kOneInside * all ||
           alone_inside < kSleeps * alone;
}

// Looks at one moment, one for each thread that was looked at.
class Sweeps {
  public:
    Sweeps(const std::vector<ProcSample> &samples, const WordOf &word_of, const PlaceOf &place_of);
    std::map<std::uint64_t, PassedOn> locks();

  private:
    void take(std::size_t begin, std::size_t end);
    void take(Use &use, std::uint64_t word, std::size_t begin, std::size_t end);
    bool has_run(std::size_t sample) const;
    bool has_computed(std::size_t sample) const;

    const std::vector<ProcSample> &samples_;
    const PlaceOf &place_of_;
    std::vector<std::uint64_t> words_; // by sample
    std::unordered_map<std::uint64_t, Use> uses_;
    std::unordered_map<pid_t, std::size_t> latest_; // look at a thread
};

Sweeps::Sweeps(const std::vector<ProcSample> &samples, const WordOf &word_of, const PlaceOf &place_of)
    : samples_(samples), place_of_(place_of) {
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

bool Sweeps::has_computed(std::size_t sample) const {
    const auto before = latest_.find(samples_[sample].thread);
    if (before == latest_.end())
        return false;
    const ProcSample &now = samples_[sample], &then = samples_[before->second];
    return now.run_ns > then.run_ns &&
           static_cast<double>(now.run_ns - then.run_ns) * 1e-9 >= kComputes * (now.at - then.at);
}

void Sweeps::take(Use &use, std::uint64_t word, std::size_t begin, std::size_t end) {
    std::size_t waiting = 0, away = 0, holder = begin;
    std::size_t computing = 0;
    bool has_passed = false, ran_another = false;
    std::vector<std::uint64_t> asleep; // places
    for (std::size_t i = begin; i < end; i++) {
        const pid_t thread = samples_[i].thread;
        if (use.waiters.count(thread) == 0) {
            ran_another = ran_another || has_run(i);
            continue;
        }
        (words_[i] == word ? waiting : away)++;
        if (words_[i] != word) {
            holder = i;
            if (samples_[i].state != 'R' && samples_[i].system_call >= 0)
                asleep.push_back(place_of_(samples_[i]));
            else
                computing += has_computed(i);
        }
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
    const double busy =
        static_cast<double>(std::max(asleep.size() + computing, std::min<std::size_t>(away, 1)));
    use.busy += busy;
    use.busy_squared += busy * busy;
    for (const std::uint64_t place : asleep) {
        use.sleeps[place].all++;
        use.sleeps[place].alone += away == 1;
    }
    if (away != 1)
        return;
    use.passed.holders.push_back(holder);
    use.asleep += asleep.size();
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
    for (auto &[word, use] : uses_) {
        if (!use.is_lock())
            continue;
        use.passed.may_be_tasks = use.may_be_tasks();
        found.emplace(word, std::move(use.passed));
    }
    return found;
}

constexpr std::uint64_t kOfSet = std::uint64_t{1} << 63; // what no address has

} // namespace

// Wrong where a waiter that has a task adds the next one, and tasks sleep elsewhere by turns: more than one at a time, but seldom in the
// same place. Threads of a pool whose work comes from elsewhere are none: what brings it runs.
std::map<std::uint64_t, PassedOn> semaphores_passed_on(const std::vector<ProcSample> &samples,
                                                       const WordOf &word_of, const PlaceOf &place_of) {
    return Sweeps(samples, word_of, place_of).locks();
}

bool is_in_python_lock_call(const std::vector<Frame> &stack) {
    return std::any_of(stack.begin(), stack.end(), [](const Frame &frame) {
        return plain_name(frame.function).rfind("PyThread_acquire_lock", 0) == 0;
    });
}

namespace {

bool ends_with(const std::string &text, const char *end) {
    const std::size_t length = std::strlen(end);
    return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

// Of the innermost function in Python; empty: not known.
std::string python_file(const std::vector<Frame> &stack) {
    const auto found = std::find_if(stack.begin(), stack.end(),
                                    [](const Frame &frame) { return ends_with(frame.file, ".py"); });
    return found != stack.end() ? found->file : "";
}

} // namespace

bool is_python_work(const std::vector<Frame> &stack) {
    const std::string file = python_file(stack);
    const bool is_of_queue = std::any_of(stack.begin(), stack.end(), [](const Frame &frame) {
        return frame.module.find("/_queue.") != std::string::npos ||
               plain_name(frame.function).rfind("_queue_SimpleQueue_", 0) == 0;
    });
    return is_in_python_lock_call(stack) &&
           (is_of_queue || ends_with(file, "/threading.py") || ends_with(file, "/queue.py") ||
            ends_with(file, "/concurrent/futures/thread.py"));
}

bool is_python_own_lock(const std::vector<Frame> &stack) {
    return is_in_python_lock_call(stack) && !is_python_work(stack) && !python_file(stack).empty();
}

namespace {

std::vector<std::string> own_calls(const std::vector<Frame> &stack) { // the outermost first
    std::vector<std::string> calls;
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame)
        if (frame->is_user && frame->function.rfind("std::", 0) != 0)
            calls.push_back(frame->function);
    return calls;
}

} // namespace

bool is_raised_by_tasks(const std::vector<Frame> &wait, const std::vector<std::vector<Frame>> &posts) {
    const std::vector<std::string> waits = own_calls(wait);
    const auto deeper = std::count_if(posts.begin(), posts.end(), [&](const std::vector<Frame> &post) {
        const std::vector<std::string> raises = own_calls(post);
        const auto at = std::mismatch(waits.begin(), waits.end(), raises.begin(), raises.end());
        return at.first != waits.begin() && waits.end() - at.first < raises.end() - at.second;
    });
    return 2 * static_cast<std::size_t>(deeper) > posts.size();
}

bool is_raised_where_taken(const std::vector<Frame> &wait, const std::vector<std::vector<Frame>> &posts) {
    const std::vector<std::string> waits = own_calls(wait);
    const auto same = std::count_if(posts.begin(), posts.end(), [&](const std::vector<Frame> &post) {
        return !waits.empty() && own_calls(post) == waits;
    });
    return 2 * static_cast<std::size_t>(same) > posts.size();
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

void read_operation(int memory, ProcSample &sample) {
    sembuf operation{};
    const auto address = static_cast<off_t>(sample.arguments[kSemopOperation]);
    if (pread(memory, &operation, sizeof operation, address) != sizeof operation)
        operation = {};
    sample.arguments[kSemopOperation] = 0;
    std::memcpy(&sample.arguments[kSemopOperation], &operation, sizeof operation);
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
