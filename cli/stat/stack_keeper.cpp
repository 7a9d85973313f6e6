// SPDX-License-Identifier: Apache-2.0
#include "stat/stack_keeper.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace thrum::stat {

namespace {

constexpr std::size_t kStackBytes = 16 << 10;  // of a thread's stack, from the stack pointer on
constexpr std::size_t kBytesMost = 256u << 20; // of all that are kept

} // namespace

void StackKeeper::open(pid_t pid, int memory) {
    pid_ = pid;
    memory_ = memory;
}

bool StackKeeper::is_code(std::uint64_t word) const {
    return !code_.empty() && word >= code_.front().start && word < code_.back().end &&
           mapping_at(code_, word) != nullptr;
}

// The stack's pages one by one, so that behind its end nothing more is copied, rather than nothing at all.
void StackKeeper::copy_bytes(std::uint64_t sp, std::vector<std::byte> &bytes) {
    static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    bytes.resize(kStackBytes);
    ssize_t got = -1;
    if (!use_memory_) {
        iovec pieces[kStackBytes / 4096 + 1];
        std::size_t count = 0;
        for (std::uint64_t at = sp; at < sp + kStackBytes; count++) {
            const std::uint64_t end = std::min(at / page * page + page, sp + kStackBytes);
            pieces[count] = {reinterpret_cast<void *>(at), end - at}; // NOLINT: an address of the other's
            at = end;
        }
        const iovec whole{bytes.data(), bytes.size()};
        got = process_vm_readv(pid_, &whole, 1, pieces, count, 0);
        // Refused in some containers, and of a process whose first thread has ended.
        use_memory_ = got < 0 && (errno == EPERM || errno == ENOSYS || errno == ESRCH);
    }
    if (use_memory_)
        got = pread(memory_, bytes.data(), bytes.size(), static_cast<off_t>(sp));
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
}

RawStack StackKeeper::copy(std::uint64_t sp, std::uint64_t pc) {
    RawStack stack;
    stack.pc = pc;
    stack.sp = sp;
    copy_bytes(sp, stack.bytes);
    return stack;
}

std::size_t StackKeeper::add(RawStack stack) {
    constexpr std::uint64_t kPrime = 0x9e3779b97f4a7c15;
    std::uint64_t hash = (stack.pc ^ observed_.maps.size()) * kPrime;
    std::size_t used = 0;
    // The present address is not known yet: so neither are its callers.
    const bool is_known = is_code(stack.pc);
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= stack.bytes.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word;
        std::memcpy(&word, stack.bytes.data() + at, sizeof word);
        if (is_known && !is_code(word))
            continue;
        used = at + 2 * sizeof word;
        hash = (hash ^ (hash >> 29) ^ word ^ at) * kPrime;
    }
    const auto known = known_.find(hash);
    if (known != known_.end())
        return known->second;
    if (bytes_ + used > kBytesMost)
        return SIZE_MAX;
    stack.bytes.resize(std::min(used, stack.bytes.size()));
    stack.bytes.shrink_to_fit();
    bytes_ += stack.bytes.size();
    observed_.stacks.push_back(std::move(stack));
    known_[hash] = observed_.stacks.size() - 1;
    return observed_.stacks.size() - 1;
}

} // namespace thrum::stat
