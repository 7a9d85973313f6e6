// SPDX-License-Identifier: Apache-2.0
#include "stat/process_tree.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "process.hpp"

namespace thrum::stat {

namespace {

constexpr double kPeriod = 0.05; // seconds
constexpr std::size_t kProcessesMost =
    4096; // that are kept; of the rest only the CPU time is known, by their parents

std::set<pid_t> present_processes() {
    std::set<pid_t> found;
    DIR *folder = opendir("/proc");
    if (folder == nullptr)
        return found;
    while (const dirent *entry = readdir(folder))
        if (const int pid = std::atoi(entry->d_name); pid > 0)
            found.insert(pid);
    closedir(folder);
    return found;
}

} // namespace

void ProcessTree::forked(pid_t child) {
    root_ = child;
    others_ = present_processes();
    others_.erase(child);
    add(child, process::stat(child).value_or(process::Stat()), 0);
}

void ProcessTree::attach(pid_t pid) {
    root_ = pid;
    is_attached_ = true;
    add(pid, process::stat(pid).value_or(process::Stat()), 0);
    look(0);
}

void ProcessTree::poll(double now) {
    if (now < next_)
        return;
    allowance_.begin(now);
    if (allowance_.left() > 0)
        look(now);
    allowance_.end();
    next_ = now + kPeriod;
}

bool ProcessTree::is_ours(pid_t parent) const {
    return ours_.count(parent) != 0;
}

void ProcessTree::add(pid_t pid, const process::Stat &stat, double now) {
    Seen seen;
    seen.process.id = pid;
    seen.process.parent = pid == root_ ? 0 : stat.parent;
    seen.process.name = stat.name;
    seen.process.begin = seen.process.end = now;
    seen.process.threads = stat.threads;
    // What was there before it was looked at; of a child that was executed by us there is nothing of its own.
    seen.before = is_attached_ && now <= 0 ? stat.cpu() : 0;
    seen.process.cpu = stat.cpu() - seen.before;
    ours_[pid] = seen;
}

// A number that was in use before may be another process by now, which its parent tells.
void ProcessTree::look_at_new(const std::set<pid_t> &present, double now) {
    for (auto at = others_.begin(); at != others_.end();)
        at = present.count(*at) != 0 ? std::next(at) : others_.erase(at);
    std::map<pid_t, process::Stat> fresh;
    for (const pid_t pid : present)
        if (others_.count(pid) == 0 && !is_ours(pid))
            if (const auto stat = process::stat(pid))
                fresh[pid] = *stat;
    for (bool has_found = true; has_found;) { // a child's number may be below its parent's
        has_found = false;
        for (auto at = fresh.begin(); at != fresh.end();) {
            if (!is_ours(at->second.parent) || ours_.size() >= kProcessesMost) {
                ++at;
                continue;
            }
            add(at->first, at->second, now);
            at = fresh.erase(at);
            has_found = true;
        }
    }
    for (const auto &[pid, stat] : fresh)
        others_.insert(pid);
}

// Also where it executed another program: the name is the latest.
void ProcessTree::update(Seen &seen, double now) {
    const auto stat = process::stat(seen.process.id);
    if (!stat || stat->state == 'X') {
        seen.is_gone = true;
        return;
    }
    seen.process.name = stat->name;
    seen.process.cpu = std::max(seen.process.cpu, stat->cpu() - seen.before);
    seen.process.threads = std::max(seen.process.threads, stat->threads);
    seen.is_gone = stat->has_ended();
    if (!seen.is_gone)
        seen.process.end = now;
}

void ProcessTree::look(double now) {
    look_at_new(present_processes(), now);
    for (auto at = ours_.begin(); at != ours_.end();) {
        update(at->second, now);
        // A zombie's children are still its own: it is kept until its number is free.
        const bool is_over = at->second.is_gone && at->first != root_ && !process::stat(at->first);
        if (is_over)
            gone_.push_back(at->second.process);
        at = is_over ? ours_.erase(at) : std::next(at);
    }
}

void ProcessTree::each_living(const std::function<void(const Process &)> &visit) const {
    for (const auto &[pid, seen] : ours_)
        if (pid != root_ && !seen.is_gone)
            visit(seen.process);
}

std::vector<Process> ProcessTree::processes() const {
    std::vector<Process> list = gone_;
    for (const auto &[pid, seen] : ours_)
        if (pid != root_)
            list.push_back(seen.process);
    std::stable_sort(list.begin(), list.end(),
                     [](const Process &a, const Process &b) { return a.cpu > b.cpu; });
    if (const auto root = ours_.find(root_); root != ours_.end())
        list.insert(list.begin(), root->second.process);
    return list;
}

} // namespace thrum::stat
