// SPDX-License-Identifier: Apache-2.0
#include "stat/kernel_places.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "stat/kernel_waits.hpp"
#include "stat/task_files.hpp"
#include "stat/waits.hpp"
#include "tools/descriptor.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kPlacesMost = 1000;
constexpr std::size_t kPeersMost =
    100; // of these, of threads that wait for what may come: each may have a socket of its own
constexpr double kSetsLater = 0.1; // seconds at least between looks at what an epoll set has

} // namespace

void KernelPlaces::open(pid_t process, int memory) {
    folder_ = "/proc/" + std::to_string(process);
    memory_ = memory;
    sockets_.clear();
}

// Of an epoll set that has one socket alone, which one: kSetOf and its name. Empty otherwise, and if one waiter is told at a time.
// What a set has may change.
const std::string &KernelPlaces::only_socket(long descriptor, double now) {
    const auto [at, is_new] = sockets_.try_emplace(descriptor);
    auto &[read_at, socket] = at->second;
    if (!is_new && now - read_at < kSetsLater)
        return socket;
    read_at = now;
    socket.clear();
    const std::string of = std::to_string(descriptor);
    const Descriptor info(::open((folder_ + "/fdinfo/" + of).c_str(), O_RDONLY | O_CLOEXEC));
    char text[2048], link[64];
    if (!info.is_open() || !read_text(info.get(), text))
        return socket;
    unsigned sockets_there = 0;
    for (const SetEntry &entry : entries_of_set(text)) {
        const ssize_t length =
            readlink((folder_ + "/fd/" + std::to_string(entry.descriptor)).c_str(), link, sizeof link);
        const std::string name(link, length > 0 ? static_cast<std::size_t>(length) : 0);
        if (!begins_with(name, "socket:"))
            continue;
        sockets_there++;
        if ((entry.events & EPOLLIN) != 0 && (entry.events & EPOLLEXCLUSIVE) == 0)
            socket = kSetOf + name;
    }
    if (sockets_there != 1)
        socket.clear();
    return socket;
}

// That its call was given: of several that it polls, none, nor of one that it does not poll for input. -1: it has none.
int KernelPlaces::descriptor_of(const ProcSample &sample) const {
    if (takes_descriptor(sample.system_call))
        return static_cast<int>(sample.arguments[0]);
    pollfd polled{};
    const auto at = static_cast<off_t>(sample.arguments[0]);
    const bool is_one = polls(sample.system_call) && sample.arguments[1] == 1;
    return is_one && pread(memory_, &polled, sizeof polled, at) == sizeof polled &&
                   (polled.events & POLLIN) != 0
               ? polled.fd
               : -1;
}

void KernelPlaces::look(const ThreadList &threads, pid_t thread, ProcSample &sample, double now) {
    const int descriptor = descriptor_of(sample);
    const bool has_file = descriptor >= 0, is_for_peers = sample.state != 'D';
    if (is_for_peers && !(has_file && waits_for_peers(sample.system_call)))
        return;
    KernelPlace place;
    char text[256];
    const Descriptor channel(sample.state == 'D' ? threads.open_file(thread, "wchan") : -1);
    if (channel.is_open() && read_text(channel.get(), text) && std::strcmp(text, "0") != 0)
        place.channel = text;
    if (has_file) {
        place.descriptor = descriptor;
        const std::string link = folder_ + "/fd/" + std::to_string(place.descriptor);
        const ssize_t length = readlink(link.c_str(), text, sizeof text);
        place.file.assign(text, length > 0 ? static_cast<std::size_t>(length) : 0);
        if (is_epoll_set(place.file))
            place.file += only_socket(place.descriptor, now);
        // The kernel tells all that poll a socket; of devices and eventfds several may share one name.
        if (is_for_peers && polls(sample.system_call) && !begins_with(place.file, "socket:"))
            return;
    }
    sample.place = index_of(std::move(place), is_for_peers);
}

// SIZE_MAX: there are too many others.
std::size_t KernelPlaces::index_of(KernelPlace &&place, bool is_for_peers) {
    const auto key = std::tuple(place.descriptor, place.file, place.channel);
    if (const auto known = known_.find(key); known != known_.end())
        return known->second;
    if (all_.size() >= kPlacesMost || (is_for_peers && peers_ >= kPeersMost))
        return SIZE_MAX;
    peers_ += is_for_peers ? 1 : 0;
    known_.emplace(key, all_.size());
    all_.push_back(std::move(place));
    return all_.size() - 1;
}

} // namespace thrum::stat
