// SPDX-License-Identifier: Apache-2.0
#include "stat/scheduling.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace thrum::stat {

namespace {

// As the kernel's, in its first version. Newer headers of libc have one of their own, older ones none.
struct Attributes {
    std::uint32_t size = sizeof(Attributes), policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0, deadline = 0, period = 0;
};

// Each step of nice is a factor of 1.25 of the CPU time. Five make three times as much.
constexpr int kMuchNicer = 5;

struct Known {
    Scheduling::Policy policy;
    const char *name, *key;
    int rank; // threads of a higher one run first
};

constexpr Known kPolicies[] = {
    {Scheduling::kOther, "", "other", 1},           {Scheduling::kFifo, "SCHED_FIFO", "fifo", 2},
    {Scheduling::kRoundRobin, "SCHED_RR", "rr", 2}, {Scheduling::kBatch, "", "batch", 1},
    {Scheduling::kIdle, "SCHED_IDLE", "idle", 0},   {Scheduling::kDeadline, "SCHED_DEADLINE", "deadline", 3},
};

const Known *find(const Scheduling &scheduling) {
    for (const Known &known : kPolicies)
        if (known.policy == scheduling.policy)
            return &known;
    return nullptr;
}

} // namespace

Scheduling scheduling_of(pid_t thread) {
    Attributes attributes;
    Scheduling found;
    if (syscall(SYS_sched_getattr, thread, &attributes, sizeof attributes, 0) != 0)
        return found;
    found.policy = static_cast<std::int8_t>(attributes.policy);
    found.nice = static_cast<std::int8_t>(attributes.nice);
    found.real_time = static_cast<std::uint8_t>(attributes.priority);
    return found;
}

bool is_outranked(const Scheduling &one, const Scheduling &other) {
    const Known *its = find(one), *others = find(other);
    if (its == nullptr || others == nullptr || its->rank != others->rank)
        return its != nullptr && others != nullptr && its->rank < others->rank;
    switch (its->policy) {
    case Scheduling::kFifo:
    case Scheduling::kRoundRobin: return one.real_time < other.real_time;
    case Scheduling::kOther:
    case Scheduling::kBatch: return one.nice - other.nice >= kMuchNicer;
    default: return false;
    }
}

std::string name_of(const Scheduling &scheduling) {
    const Known *known = find(scheduling);
    if (known == nullptr)
        return "";
    const std::string name = known->name;
    if (name.empty())
        return "nice " + std::to_string(scheduling.nice);
    return known->rank == 2 ? name + " " + std::to_string(scheduling.real_time) : name;
}

std::string policy_of(const Scheduling &scheduling) {
    const Known *known = find(scheduling);
    return known != nullptr ? known->key : "";
}

} // namespace thrum::stat
