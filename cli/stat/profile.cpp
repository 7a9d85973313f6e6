// SPDX-License-Identifier: Apache-2.0
//
// Where threads burn CPU time: a software perf event on each CPU, which samples the program's registers and stack. It
// needs no counters of the hardware and no privileges where the system allows perf events of one's own programs; where
// not, timer_profile.cpp takes over.
//
// An event that threads inherit can only share memory with us if it is tied to a CPU, so there is one for each.
#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "clock.hpp"
#include "command.hpp"
#include "stat/collect.hpp"
#include "stat/timer_profile.hpp"

namespace thrum::stat {

namespace {

constexpr std::size_t kBufferPages = 128; // with 4 KiB pages what an unprivileged user may lock per CPU
constexpr std::uint32_t kStackBytes = 8192;

// Ascending, as the kernel writes them: frame pointer, stack pointer, program counter.
#if defined(__x86_64__)
constexpr std::uint64_t kRegisters =
    1ULL << PERF_REG_X86_BP | 1ULL << PERF_REG_X86_SP | 1ULL << PERF_REG_X86_IP;
#else
constexpr std::uint64_t kRegisters =
    1ULL << PERF_REG_ARM64_X29 | 1ULL << PERF_REG_ARM64_SP | 1ULL << PERF_REG_ARM64_PC;
#endif

perf_event_attr attributes_for(std::uint64_t period, bool with_kernel) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = period;
    attributes.sample_type =
        PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = kRegisters;
    attributes.sample_stack_user = kStackBytes;
    attributes.disabled = 1;
    attributes.enable_on_exec = 1;
    attributes.inherit = 1;
    attributes.exclude_kernel = with_kernel ? 0 : 1;
    attributes.exclude_hv = 1;
    attributes.mmap = 1; // says when a library was loaded
    attributes.comm = 1;
    attributes.comm_exec = 1; // and when another program takes the process over
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;
    return attributes;
}

int open_event(const perf_event_attr &attributes, pid_t pid, int cpu) {
    perf_event_attr copy = attributes;
    return static_cast<int>(syscall(SYS_perf_event_open, &copy, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

// --- the memory that an event's samples come through ---------------------------------------------------------

class Ring {
  public:
    Ring(int fd, std::size_t page) : fd_(fd), page_(page), data_size_(kBufferPages * 4096) {
        void *at = mmap(nullptr, page_ + data_size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (at != MAP_FAILED)
            at_ = static_cast<char *>(at);
    }
    Ring(Ring &&other) noexcept
        : fd_(std::move(other.fd_)), page_(other.page_), data_size_(other.data_size_), at_(other.at_) {
        other.at_ = nullptr;
    }
    ~Ring() {
        if (at_ != nullptr)
            munmap(at_, page_ + data_size_);
    }
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;
    bool is_mapped() const { return at_ != nullptr; }

    // Hands each record to `visit(header, body)`.
    template <class Visit>
    void drain(const Visit &visit) {
        auto *control = reinterpret_cast<perf_event_mmap_page *>(at_);
        const std::uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
        std::uint64_t tail = control->data_tail;
        std::vector<char> record;
        while (tail < head) {
            perf_event_header header;
            copy(tail, &header, sizeof header);
            if (header.size < sizeof header)
                break;
            record.resize(header.size - sizeof header);
            copy(tail + sizeof header, record.data(), record.size());
            visit(header, record);
            tail += header.size;
        }
        __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
    }

  private:
    void copy(std::uint64_t from, void *to, std::size_t size) const {
        const char *data = at_ + page_;
        const std::size_t begin = from % data_size_, first = std::min(size, data_size_ - begin);
        std::memcpy(to, data + begin, first);
        std::memcpy(static_cast<char *>(to) + first, data, size - first);
    }

    Descriptor fd_;
    std::size_t page_, data_size_;
    char *at_ = nullptr;
};

// Reads the fields of a record one after the other; past the end there are zeros.
class Fields {
  public:
    explicit Fields(const std::vector<char> &bytes) : bytes_(bytes) {}
    template <class Number>
    Number take() {
        Number number{};
        if (at_ + sizeof number <= bytes_.size())
            std::memcpy(&number, bytes_.data() + at_, sizeof number);
        at_ += sizeof number;
        return number;
    }
    const char *skip(std::size_t size) {
        const char *here = at_ + size <= bytes_.size() ? bytes_.data() + at_ : nullptr;
        at_ += size;
        return here;
    }

  private:
    const std::vector<char> &bytes_;
    std::size_t at_ = 0;
};

// --- the layer -----------------------------------------------------------------------------------------

class PerfProfile : public CpuProfile {
  public:
    PerfProfile(double rate, bool with_kernel)
        : period_(static_cast<std::uint64_t>(1e9 / rate)), with_kernel_(with_kernel) {
        source = "perf event";
    }

    void forked(pid_t child) override;
    void poll(double now) override;
    void finish() override;

  private:
    void visit(const perf_event_header &header, const std::vector<char> &record);
    void add_sample(Fields fields);

    std::uint64_t period_;
    bool with_kernel_;
    pid_t child_ = 0;
    double began_ = 0; // on CLOCK_MONOTONIC
    std::vector<Ring> rings_;
    MapReader maps_{observed.maps};
    SampleKeeper keeper_{*this};
    std::uint64_t lost_ = 0, elsewhere_ = 0, without_stack_ = 0;
};

void PerfProfile::forked(pid_t child) {
    const perf_event_attr attributes = attributes_for(period_, with_kernel_);
    const long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE);
    child_ = child;
    began_ = seconds_now();
    maps_.begin(child);
    int error = 0;
    unsigned missing = 0;
    for (int cpu = 0; cpu < cpus; cpu++) {
        const int fd = open_event(attributes, child, cpu);
        if (fd < 0 && errno == ENODEV)
            continue; // offline
        if (fd >= 0) {
            rings_.emplace_back(fd, static_cast<std::size_t>(page));
            if (rings_.back().is_mapped())
                continue;
        }
        error = errno;
        missing++;
        if (fd >= 0)
            rings_.pop_back();
    }
    if (missing > 0)
        warnings.push_back("no CPU profile of " + std::to_string(missing) + " of " + std::to_string(cpus) +
                           " CPUs: " + std::strerror(error));
}

void PerfProfile::poll(double now) {
    began_ = seconds_now() - now;
    for (Ring &ring : rings_)
        ring.drain([this](const perf_event_header &header, const std::vector<char> &record) {
            visit(header, record);
        });
    maps_.poll(now);
}

void PerfProfile::visit(const perf_event_header &header, const std::vector<char> &record) {
    Fields fields(record);
    switch (header.type) {
    case PERF_RECORD_SAMPLE: add_sample(fields); break;
    case PERF_RECORD_LOST:
        fields.take<std::uint64_t>();
        lost_ += fields.take<std::uint64_t>();
        break;
    case PERF_RECORD_MMAP:
        if (fields.take<std::int32_t>() == child_)
            maps_.changed();
        break;
    case PERF_RECORD_COMM:
        if (fields.take<std::int32_t>() != child_ || (header.misc & PERF_RECORD_MISC_COMM_EXEC) == 0)
            break;
        keeper_.clear();
        maps_.another_program();
        break;
    default: break;
    }
}

void PerfProfile::add_sample(Fields fields) {
    const auto process = fields.take<std::int32_t>();
    CpuSample sample;
    sample.thread = fields.take<std::int32_t>();
    sample.at = static_cast<double>(fields.take<std::uint64_t>()) * 1e-9 - began_;
    sample.weight = static_cast<double>(period_) * 1e-9;
    if (process != child_) {
        elsewhere_++;
        return;
    }
    RawStack stack;
    if (fields.take<std::uint64_t>() == PERF_SAMPLE_REGS_ABI_NONE) {
        without_stack_++; // in the kernel, on its way out
        return;
    }
    stack.bp = fields.take<std::uint64_t>();
    stack.sp = fields.take<std::uint64_t>();
    stack.pc = fields.take<std::uint64_t>();
    stack.has_bp = true;
    const auto size = static_cast<std::size_t>(fields.take<std::uint64_t>());
    const auto *bytes = reinterpret_cast<const std::byte *>(fields.skip(size));
    const auto used = static_cast<std::size_t>(size > 0 ? fields.take<std::uint64_t>() : 0);
    if (bytes != nullptr)
        stack.bytes.assign(bytes, bytes + std::min(used, size));
    keeper_.add(sample, std::move(stack));
}

void PerfProfile::finish() {
    poll(seconds_now() - began_);
    how_known.push_back(std::string("CPU profile: a perf event every ") + std::to_string(period_ / 1000000) +
                        " ms of a thread's time on a CPU (threads that run for less are not seen), " +
                        (with_kernel_ ? "the kernel's work for the program included."
                                      : "outside the kernel only: what the kernel does is not in it."));
    if (lost_ > 0)
        warnings.push_back("the CPU profile lost " + std::to_string(lost_) + " samples");
    if (elsewhere_ > 0)
        warnings.push_back(std::to_string(elsewhere_) +
                           " CPU samples were in processes that the program started, and are left out");
    rings_.clear();
}

std::string why_refused(int error) {
    std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
    int paranoid = 0;
    std::string text = std::string("perf events are refused (") + std::strerror(error);
    if (file >> paranoid)
        text += "; kernel.perf_event_paranoid is " + std::to_string(paranoid);
    return text + ")";
}

// 0, or the errno value that such an event fails with.
int try_event(std::uint64_t period, bool with_kernel) {
    const Descriptor event(open_event(attributes_for(period, with_kernel), 0, -1));
    return event.get() >= 0 ? 0 : errno;
}

} // namespace

std::unique_ptr<CpuProfile> make_cpu_profile(const std::string &program, double rate, std::string &why_not) {
    const auto period = static_cast<std::uint64_t>(1e9 / rate);
    if (try_event(period, true) == 0)
        return std::make_unique<PerfProfile>(rate, true);
    const int error = try_event(period, false);
    if (error == 0)
        return std::make_unique<PerfProfile>(rate, false);
    why_not = why_refused(error);
    return make_timer_profile(program, rate, why_not);
}

} // namespace thrum::stat
