// SPDX-License-Identifier: Apache-2.0
#include "stat/sample_sites.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>

#include "stat/python.hpp"
#include "stat/waits.hpp"

namespace thrum::stat {

SampleSites::SampleSites(const Sampler &sampler, const std::map<std::uint64_t, Posts> &posts,
                         LockWaits &locks)
    : sampler_(sampler), locks_(locks), places_(sampler.observed.maps) {
    for (const ProcThread &thread : sampler.threads)
        ids_.insert(thread.id);
    seen_.reserve(sampler.samples.size());
    find_passed_on();
    find_semaphore_locks(posts);
    see_all();
}

// A semaphore is a lock where the threads that wait for it are those that raise it. Of a queue's, others do that: the thread that adds work
// does not wait for some. One that is hardly ever seen waiting may be lucky: where the function that waits also raises it, half of them
// will do. Where each thread adds work as often as it takes some, tasks do it, in functions below that which takes them.
// Wrong where these are inlined, and the functions are not known.
void SampleSites::find_semaphore_locks(const std::map<std::uint64_t, Posts> &posts) {
    constexpr double kSame = 0.8, kSameThere = 0.5; // of the threads that raise it
    struct Waits {
        std::set<pid_t> threads;
        const std::vector<Frame> *stack = nullptr;
    };
    std::map<std::uint64_t, Waits> waits;
    for (const ProcSample &one : sampler_.samples)
        if (one.system_call == SYS_futex && posts.count(one.arguments[0]) != 0) {
            Waits &its = waits[one.arguments[0]];
            its.threads.insert(one.thread);
            if (its.stack == nullptr && one.stack != kNone)
                its.stack = &frames_of(one);
        }
    for (const auto &[address, its] : waits) {
        const Posts &of_it = posts.at(address);
        const auto common =
            std::count_if(of_it.threads.begin(), of_it.threads.end(),
                          [&threads = its.threads](pid_t one) { return threads.count(one) != 0; });
        const std::vector<Frame> stack = its.stack != nullptr ? *its.stack : std::vector<Frame>();
        const double all = static_cast<double>(of_it.threads.size()),
                     same = is_raised_where_taken(stack, of_it.stacks) ? kSameThere : kSame;
        if (common > 0 && all > 1 && static_cast<double>(common) >= same * all)
            semaphore_locks_[address].may_be_tasks = is_raised_by_tasks(stack, of_it.stacks);
    }
}

// Where nothing is known of their posts, as of threads that hardly run.
void SampleSites::find_passed_on() {
    std::set<std::uint64_t> words; // by stack: a thread that ran while that was copied has none
    const auto is_own = [](const ProcSample &one) { // not of other processes, and it does not end by itself
        return one.system_call == SYS_futex && (one.arguments[1] & FUTEX_PRIVATE_FLAG) != 0 &&
               one.arguments[3] == 0;
    };
    std::set<std::uint64_t> python, work; // of Python's: locks, and what is none
    for (const ProcSample &one : sampler_.samples) {
        if (!is_own(one) || one.stack == kNone)
            continue;
        const std::vector<Frame> &stack = frames_of(one);
        if (is_in_semaphore_call(stack))
            (is_python_work(stack) ? work : words).insert(one.arguments[0]);
        if (is_python_own_lock(stack))
            python.insert(one.arguments[0]);
    }
    for (const std::uint64_t word : work) // memory is used again
        words.erase(word);
    std::map<std::string, std::uint64_t> places;
    std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> place_of_stack;
    semaphore_locks_ = semaphores_passed_on(
        sampler_.samples,
        [&](const ProcSample &one) {
            return is_own(one) && words.count(one.arguments[0]) != 0 ? one.arguments[0] : set_semaphore(one);
        },
        [&](const ProcSample &one) {
            const auto [at, is_new] = place_of_stack.try_emplace({one.stack, one.python});
            if (is_new && one.stack != kNone)
                at->second =
                    places.try_emplace(key_of(frames_of(one), true), places.size() + 1).first->second;
            return at->second;
        });
    for (const std::uint64_t word : python)
        if (const auto known = semaphore_locks_.find(word); known != semaphore_locks_.end())
            known->second.may_be_tasks = false;
}

const PassedOn &SampleSites::passed_on(std::size_t lock) const {
    static const PassedOn none;
    const auto known = passed_on_by_lock_.find(lock);
    return known != passed_on_by_lock_.end() ? semaphore_locks_.at(known->second) : none;
}

const std::vector<Frame> &SampleSites::frames_of(const ProcSample &sample) {
    const Observed &observed = sampler_.observed;
    const auto [at, is_new] = known_frames_.try_emplace({sample.stack, sample.python});
    if (is_new)
        at->second = sample.stack < observed.stacks.size()
                         ? places_.frames(observed.stacks[sample.stack], places_.era_of(sample.at))
                         : Places::unknown();
    if (is_new && sample.python < observed.python.size())
        at->second = with_python(std::move(at->second), observed.python[sample.python]);
    return at->second;
}

Seen SampleSites::look_up(const ProcSample &sample) {
    const std::vector<Frame> &stack = frames_of(sample);
    const std::size_t era = places_.era_of(sample.at);
    Seen seen;
    seen.doing = doing_of(sample, stack, ids_);
    std::size_t lock = kNone;
    if (seen.doing == Doing::kLockWait || seen.doing == Doing::kIdleWait) {
        const bool is_futex = sample.system_call == SYS_futex;
        Lock found = is_futex ? places_.lock(sample.arguments[0], era) : Lock();
        const std::uint64_t word = is_futex ? sample.arguments[0] : set_semaphore(sample);
        const auto semaphore = word != 0 ? semaphore_locks_.find(word) : semaphore_locks_.end();
        if (word != 0 && !is_futex)
            found = lock_of_set(sample);
        found.is_semaphore = semaphore != semaphore_locks_.end();
        found.may_be_tasks = found.is_semaphore && semaphore->second.may_be_tasks;
        const bool is_python = is_futex && is_python_lock(stack, found);
        if (is_python || found.is_semaphore)
            seen.doing = Doing::kLockWait;
        if ((is_futex || found.is_semaphore) && seen.doing == Doing::kLockWait)
            lock = locks_.add(is_python ? as_python_lock(found) : as_parked(found, stack), era);
        if (found.is_semaphore && !is_python)
            passed_on_by_lock_.emplace(lock, word);
    }
    const auto [at, is_new] =
        known_sites_.try_emplace({seen.doing, key_of(stack, true), lock}, sites_.size());
    if (is_new) {
        sites_.emplace_back();
        sites_.back().stack = stack;
        sites_.back().doing = seen.doing;
        sites_.back().lock = lock;
        sites_.back().is_message = true;
    }
    Site &site = sites_[at->second];
    site.is_message = site.is_message && is_for_message(sample);
    seen.site = at->second;
    return seen;
}

// The same wait is looked up once.
Seen SampleSites::see(const ProcSample &sample) {
    if (sample.state == 'R')
        return {};
    const std::uint64_t *arguments = sample.arguments;
    const bool is_other = sample.state != 'S';
    const auto [at, is_new] =
        known_.try_emplace({sample.stack, sample.python, is_other ? -sample.state : sample.system_call,
                            arguments[0], arguments[1], arguments[2]});
    if (is_new)
        at->second = look_up(sample);
    sites_[at->second.site].samples++;
    return at->second;
}

SampleSites::Wait SampleSites::wait_of(const ProcSample &sample) const {
    return {places_.era_of(sample.at), sample.arguments[0], sample.arguments[1]};
}

// A thread that ran on while its stack was copied did wait, and the word tells for what. The place is taken from the
// wait for the same word that was seen before it; of the first ones, from the one that comes first.
void SampleSites::see_all() {
    std::map<Wait, std::pair<std::size_t, std::size_t>> stacks; // with Python's
    const auto is_placed = [](const ProcSample &one) { return one.stack != kNone; };
    const auto is_futex = [](const ProcSample &one) { return one.system_call == SYS_futex; };
    std::map<Wait, pid_t> holders;
    for (const ProcSample &one : sampler_.samples) {
        if (is_futex(one) && is_placed(one))
            stacks.try_emplace(wait_of(one), one.stack, one.python);
        if (is_futex(one) && ids_.count(one.holder) != 0)
            holders.try_emplace(wait_of(one), one.holder);
    }
    for (const ProcSample &one : sampler_.samples) {
        ProcSample placed = one;
        const auto same = is_futex(one) ? stacks.find(wait_of(one)) : stacks.end();
        if (same != stacks.end() && is_placed(one))
            same->second = {one.stack, one.python};
        else if (same != stacks.end())
            std::tie(placed.stack, placed.python) = same->second;
        if (const auto holder = holders.find(wait_of(one)); is_futex(one) && holder != holders.end())
            placed.holder =
                holder->second; // the same wait is looked up once: what is known of the word counts
        seen_.push_back(see(placed));
    }
}

} // namespace thrum::stat
