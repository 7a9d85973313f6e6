// SPDX-License-Identifier: Apache-2.0
#include "stat/kernel_waits.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "stat/waits.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

// In the kernel's functions that wait for a device, or for memory to become free.
bool is_device_channel(const std::string &channel) {
    static constexpr const char *kParts[] = {"io_schedule", "rq_qos",        "folio_wait", "wait_on_page",
                                             "wait_on_bit", "blk_",          "bio_",       "balance_dirty",
                                             "congestion",  "jbd2_log_wait", "submit",     "throttle",
                                             "reclaim",     "nfs_",          "rpc_"};
    return std::any_of(std::begin(kParts), std::end(kParts),
                       [&channel](const char *part) { return channel.find(part) != std::string::npos; });
}

struct Kind {
    std::string call, file;
    long descriptor; // of what has no name of its own
    bool is_device;
    bool operator<(const Kind &other) const {
        return std::tie(call, file, descriptor, is_device) <
               std::tie(other.call, other.file, other.descriptor, other.is_device);
    }
};

// A thread that ran while its stack was copied has none, and those that are woken all the time mostly do.
void take_known(const std::vector<Frame> &stack, std::vector<Frame> &kept) {
    const auto is_known = [](const std::vector<Frame> &one) {
        return std::any_of(one.begin(), one.end(),
                           [](const Frame &frame) { return frame.is_user && !frame.function.empty(); });
    };
    if (kept.empty() || (!is_known(kept) && is_known(stack)))
        kept = stack;
}

// By socket: threads that wait for it, each at an epoll set of its own.
struct SharedSocket {
    KernelWait wait;
    std::set<pid_t> threads;
    std::set<double> looks;
    unsigned sets = 0;
};

// All threads are looked at at the same time.
double at_once(const KernelWait &wait, const std::set<double> &looks) {
    return looks.empty() ? 0 : static_cast<double>(wait.samples) / static_cast<double>(looks.size());
}

void add_set(const Kind &kind, const KernelWait &wait, const std::set<pid_t> &threads,
             const std::set<double> &looks, std::map<std::string, SharedSocket> &sockets) {
    const std::size_t at = kind.file.find(kSetOf);
    if (!is_epoll_set(kind.file) || at == std::string::npos)
        return;
    const std::string name = kind.file.substr(at + std::strlen(kSetOf));
    SharedSocket &socket = sockets[name];
    if (socket.sets++ == 0)
        socket.wait = wait;
    else
        socket.wait.samples += wait.samples;
    take_known(wait.stack, socket.wait.stack);
    socket.threads.insert(threads.begin(), threads.end());
    socket.looks.insert(looks.begin(), looks.end());
    socket.wait.threads = static_cast<unsigned>(socket.threads.size());
    socket.wait.at_once = at_once(socket.wait, socket.looks);
    socket.wait.file = name + kInSets + std::to_string(socket.sets) + kEpollSets;
}

} // namespace

bool is_epoll_set(const std::string &file) {
    return begins_with(file, "anon_inode:[eventpoll]");
}

std::vector<SetEntry> entries_of_set(const std::string &text) {
    std::vector<SetEntry> entries;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        SetEntry entry{};
        if (std::sscanf(line.c_str(), "tfd: %ld events: %" SCNx32, &entry.descriptor, &entry.events) == 2)
            entries.push_back(entry);
    }
    return entries;
}

std::vector<KernelWait> kernel_waits(const Sampler &sampler,
                                     const std::function<const std::vector<Frame> *(std::size_t)> &stack_of) {
    std::map<Kind, KernelWait> waits;
    std::map<Kind, std::set<pid_t>> threads;
    std::map<Kind, std::set<double>> looks;
    std::map<Kind, std::map<std::string, std::uint64_t>> channels;
    for (std::size_t i = 0; i < sampler.samples.size(); i++) {
        const ProcSample &one = sampler.samples[i];
        if (one.place >= sampler.kernel_places.size() || stack_of(i) == nullptr)
            continue;
        const KernelPlace &place = sampler.kernel_places[one.place];
        const bool is_named = !place.file.empty() && place.file[0] == '/';
        Kind kind{one.system_call >= 0 ? system_call_name(one.system_call) : "", place.file,
                  is_named ? -1 : place.descriptor, is_device_channel(place.channel)};
        KernelWait &wait = waits[kind];
        wait.samples++;
        threads[kind].insert(one.thread);
        looks[kind].insert(one.at);
        if (std::map<std::string, std::uint64_t> &seen = channels[kind];
            ++seen[place.channel] > seen[wait.channel])
            wait.channel = place.channel;
        wait.call = kind.call;
        wait.file = kind.file;
        wait.is_device = kind.is_device;
        take_known(*stack_of(i), wait.stack);
    }
    std::vector<KernelWait> all;
    std::map<std::string, SharedSocket> sockets;
    for (auto &[kind, wait] : waits) {
        wait.threads = static_cast<unsigned>(threads[kind].size());
        wait.at_once = at_once(wait, looks[kind]);
        add_set(kind, wait, threads[kind], looks[kind], sockets);
        all.push_back(std::move(wait));
    }
    for (auto &[name, socket] : sockets)
        if (socket.sets > 1)
            all.push_back(std::move(socket.wait));
    std::sort(all.begin(), all.end(),
              [](const KernelWait &a, const KernelWait &b) { return a.samples > b.samples; });
    return all;
}

} // namespace thrum::stat
