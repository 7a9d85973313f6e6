// SPDX-License-Identifier: Apache-2.0
#include "stat/perf_events.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "native.hpp"

namespace thrum::stat {

namespace {

constexpr std::uint32_t kStackBytes = 8192;

constexpr const char *kFolders[] = {"/sys/kernel/tracing/events/", "/sys/kernel/debug/tracing/events/"};

// As root, where it is not mounted, as in many containers: a mount of our own, in no folder, which is gone with this process.
int mount_tracefs() {
    constexpr long kFsopen = 430, kFsconfig = 431, kFsmount = 432; // the same on all processors
    constexpr unsigned kCreate = 6, kCloseOnExec = 1;
    const Descriptor context(static_cast<int>(syscall(kFsopen, "tracefs", kCloseOnExec)));
    if (!context.is_open() || syscall(kFsconfig, context.get(), kCreate, nullptr, nullptr, 0) != 0)
        return -1;
    return static_cast<int>(syscall(kFsmount, context.get(), kCloseOnExec, 0));
}

} // namespace

perf_event_attr event_of_program(std::uint32_t type, std::uint64_t config) {
    perf_event_attr attributes{};
    attributes.type = type;
    attributes.size = sizeof attributes;
    attributes.config = config;
    attributes.disabled = 1;
    attributes.enable_on_exec = 1;
    attributes.inherit = 1;
    return attributes;
}

int open_event(const perf_event_attr &attributes, pid_t pid, int cpu) {
    perf_event_attr copy = attributes;
    return static_cast<int>(syscall(SYS_perf_event_open, &copy, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

std::uint64_t tracepoint_number(const std::string &name) {
    std::uint64_t number = 0;
    for (const std::string folder : kFolders)
        if (std::ifstream(folder + name + "/id") >> number)
            return number;
    static const Descriptor tracefs(mount_tracefs());
    const Descriptor id(openat(tracefs.get(), ("events/" + name + "/id").c_str(), O_RDONLY | O_CLOEXEC));
    char text[32] = "";
    if (tracefs.is_open() && id.is_open() && read(id.get(), text, sizeof text - 1) > 0)
        number = std::strtoull(text, nullptr, 10);
    return number;
}

bool is_tracefs_mounted() {
    return std::any_of(std::begin(kFolders), std::end(kFolders),
                       [](const char *folder) { return access(folder, F_OK) == 0; });
}

void ask_for_stacks(perf_event_attr &attributes) {
    attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = native::kPerfRegisters;
    attributes.sample_stack_user = kStackBytes;
}

std::optional<RawStack> take_stack(Fields &fields) {
    RawStack stack;
    if (fields.take<std::uint64_t>() == PERF_SAMPLE_REGS_ABI_NONE)
        return std::nullopt;
    stack.registers.resize(native::kPerfCount);
    for (std::uint64_t &one : stack.registers)
        one = fields.take<std::uint64_t>();
    stack.bp = stack.registers[native::kPerfFrame];
    stack.sp = stack.registers[native::kPerfStack];
    stack.pc = stack.registers[native::kPerfProgram];
    stack.has_bp = true;
    const auto size = static_cast<std::size_t>(fields.take<std::uint64_t>());
    const auto *bytes = reinterpret_cast<const std::byte *>(fields.skip(size));
    const auto used = static_cast<std::size_t>(size > 0 ? fields.take<std::uint64_t>() : 0);
    if (bytes != nullptr)
        stack.bytes.assign(bytes, bytes + std::min(used, size));
    return stack;
}

// --- rings --------------------------------------------------------------------------------------------

Ring::Ring(int fd)
    : fd_(fd), page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), data_size_(kPages * 4096) {
    void *at = mmap(nullptr, page_ + data_size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (at != MAP_FAILED)
        at_ = static_cast<char *>(at);
}

Ring::Ring(Ring &&other) noexcept
    : fd_(std::move(other.fd_)), page_(other.page_), data_size_(other.data_size_),
      at_(std::exchange(other.at_, nullptr)) {}

Ring::~Ring() {
    if (at_ != nullptr)
        munmap(at_, page_ + data_size_);
}

void Ring::copy(std::uint64_t from, void *to, std::size_t size) const {
    const char *data = at_ + page_;
    const std::size_t begin = from % data_size_, first = std::min(size, data_size_ - begin);
    std::memcpy(to, data + begin, first);
    std::memcpy(static_cast<char *>(to) + first, data, size - first);
}

} // namespace thrum::stat
