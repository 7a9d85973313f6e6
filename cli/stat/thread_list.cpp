// SPDX-License-Identifier: Apache-2.0
#include "stat/thread_list.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "stat/task_files.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kFew = 64;
constexpr std::size_t kPortion = 256; // threads of the list that are read at once, or some more
constexpr std::size_t kPortionBytes = 32 * kPortion;
constexpr double kShare = 0.2; // of the budget

// How many files may stay open: others of this process need some as well.
std::size_t descriptors_to_keep() {
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min<rlim_t>(limit.rlim_cur / 2, 4096) : 0;
}

} // namespace

ThreadList::ThreadList(std::vector<ProcThread> &all) : all_(all), descriptors_left_(descriptors_to_keep()) {}

void ThreadList::open(pid_t process) {
    const std::string path = "/proc/" + std::to_string(process) + "/task";
    folder_ = Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    is_listing_ = false;
}

// --- their files ---------------------------------------------------------------------------------------------

int ThreadList::open_file(pid_t id, const char *name) const {
    const std::string path = std::to_string(id) + "/" + name;
    return openat(folder_.get(), path.c_str(), O_RDONLY | O_CLOEXEC);
}

bool ThreadList::read_file(const Watched &thread, Descriptor &kept, const char *name, char (&text)[256]) {
    if (kept.is_open())
        return read_text(kept.get(), text);
    Descriptor fd(open_file(thread.id, name));
    if (!fd.is_open() || !read_text(fd.get(), text))
        return false;
    if (descriptors_left_ > 0) {
        descriptors_left_--;
        kept = std::move(fd);
    }
    return true;
}

char ThreadList::state_of(pid_t id) const {
    char text[256];
    Descriptor fd(open_file(id, "stat"));
    return fd.is_open() && read_text(fd.get(), text) ? parse_state(text) : 'X';
}

// --- those that are known ------------------------------------------------------------------------------------

Watched *ThreadList::find(pid_t id) {
    const auto known = index_.find(id);
    return known == index_.end() ? nullptr : &watched_[known->second];
}

bool ThreadList::are_few() const {
    return watched_.size() <= kFew;
}

Watched ThreadList::newcomer(pid_t id, double now) {
    Watched thread;
    thread.id = id;
    thread.thread = all_.size();
    thread.status_at = watched_.size() < kFew ? now : now + Watched::kStatusFirst; // for its name
    ProcThread known;
    known.id = id;
    known.begin = known.end = now;
    known.was_there = first_was_there_ && listings_ == 1; // as far as it can be told without a look at it
    all_.push_back(std::move(known));
    return thread;
}

void ThreadList::miss(const Watched &thread, double now) {
    std::optional<double> &gone = all_[thread.thread].gone;
    gone = gone.value_or(now);
}

void ThreadList::note_end(Watched &thread, int error, double now) {
    if (error == EMFILE || error == ENFILE)
        return;
    miss(thread, now);
    thread.is_gone = state_of(thread.id) != 'Z';
    someone_is_gone_ = someone_is_gone_ || thread.is_gone;
}

void ThreadList::forget(Watched &thread, double now) {
    miss(thread, now);
    descriptors_left_ += (thread.system_call.is_open() ? 1 : 0) + (thread.schedstat.is_open() ? 1 : 0);
    index_.erase(thread.id);
}

// --- the list ------------------------------------------------------------------------------------------------

void ThreadList::note(pid_t id, double now) {
    const auto [known, is_new] = index_.try_emplace(id, watched_.size());
    const std::size_t place = known->second;
    if (is_new) {
        watched_.push_back(newcomer(id, now));
    } else if (watched_[place].is_gone) { // another one with its number
        forget(watched_[place], now);
        watched_[place] = newcomer(id, now);
        index_[id] = place;
    }
    watched_[place].listed = listings_;
}

// A thread that was not met in the list may still exist: an end during the reading moves others to a place that was
// passed already. So the list was incomplete if some threads in it were unknown before, and it is read once more.
void ThreadList::end(double now) {
    is_listing_ = false;
    std::vector<Watched> left;
    for (Watched &thread : watched_) {
        const bool is_there =
            thread.listed == listings_ ||
            (!thread.is_gone && faccessat(folder_.get(), std::to_string(thread.id).c_str(), F_OK, 0) == 0);
        if (is_there)
            left.push_back(std::move(thread));
        else
            forget(thread, now);
    }
    watched_ = std::move(left);
    for (std::size_t i = 0; i < watched_.size(); i++)
        index_[watched_[i].id] = i;
    if (read_count())
        was_whole_ = count_ >= count_then_;
    someone_is_gone_ = someone_is_gone_ || !was_whole_;
}

void ThreadList::read_portion(double now) {
    if (!is_listing_) {
        is_listing_ = true;
        count_then_ = are_all_known_ ? 0 : count_;
        someone_is_gone_ = false;
        listings_++;
        lseek(folder_.get(), 0, SEEK_SET);
    }
    for (std::size_t count = 0; count < kPortion; count += ids_.size()) {
        if (!read_ids(folder_.get(), ids_, kPortionBytes)) {
            end(now);
            break;
        }
        for (const pid_t id : ids_)
            note(id, now);
    }
}

bool ThreadList::read_count() {
    const std::optional<std::size_t> count = count_ids(folder_.get());
    count_ = count.value_or(count_);
    most_ = std::max(most_, static_cast<unsigned>(count_));
    return count.has_value();
}

void ThreadList::read_on(double now, const Allowance &allowance) {
    if (!read_count())
        return;
    const bool is_due = is_listing_ || count_ != watched_.size() || someone_is_gone_;
    if (is_due && (now >= next_portion_at_ || portion_cost_ <= allowance.left() / 2)) {
        const double begin = thread_cpu_time();
        read_portion(now);
        portion_cost_ = thread_cpu_time() - begin;
        next_portion_at_ = now + portion_cost_ / (kShare * allowance.share());
    }
    are_all_known_ = was_whole_ && count_ <= watched_.size();
}

void ThreadList::find_listed(const std::function<bool(pid_t)> &is_it) {
    is_listing_ = false;
    lseek(folder_.get(), 0, SEEK_SET);
    while (read_ids(folder_.get(), ids_, kPortionBytes))
        if (std::any_of(ids_.begin(), ids_.end(), is_it))
            break;
}

} // namespace thrum::stat
