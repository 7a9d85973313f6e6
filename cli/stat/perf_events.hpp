// SPDX-License-Identifier: Apache-2.0
//
// What the layers have in common that ask the kernel for perf events (profile.cpp, switches.cpp, call_events.cpp,
// hardware.cpp): events of a program that is about to be executed, and the memory that their records come through.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic.h"
#include "stat/observed.hpp"
#include "tools/descriptor.hpp"

namespace thrum::stat {

// Of a program and all its threads and processes, from its execve(2) on.
perf_event_attr event_of_program(std::uint32_t type, std::uint64_t config);

// -1, and errno, where the kernel refuses it. `cpu` -1: on all of them, for events that are read and have no memory.
int open_event(const perf_event_attr &attributes, pid_t pid, int cpu);

// The number that a tracepoint is asked for by ("sched/sched_switch"); 0: there is none, or it may not be read.
std::uint64_t tracepoint_number(const std::string &name);
bool is_tracefs_mounted();

// Asks for the registers and the stack at each sample, as take_stack() reads them.
void ask_for_stacks(perf_event_attr &attributes);

// The memory that an event's records come through. An event that threads inherit can only share memory with us if it is
// tied to a CPU, so there is one for each.
class Ring {
  public:
    static constexpr std::size_t kPages = 128; // with 4 KiB pages what an unprivileged user may lock per CPU

    explicit Ring(int fd);
    Ring(Ring &&other) noexcept;
    ~Ring();
    Ring(const Ring &) = delete;
    Ring &operator=(const Ring &) = delete;
    bool is_mapped() const { return at_ != nullptr; }
    int event() const { return fd_.get(); }

    // Hands each record to `visit(header, body)`.
    template <class Visit>
    void drain(const Visit &visit) {
        auto *control = reinterpret_cast<perf_event_mmap_page *>(at_);
        const std::uint64_t head =
            load_acquire(&control->data_head); // pairs with the kernel's release: the records
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
        store_release(&control->data_tail, head); // the kernel may write over what was read
    }

  private:
    void copy(std::uint64_t from, void *to, std::size_t size) const;

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
    bool is_at_end() const { return at_ >= bytes_.size(); }

  private:
    const std::vector<char> &bytes_;
    std::size_t at_ = 0;
};

// Registers and stack of a sample; nothing where the thread had none, in the kernel and on its way out.
std::optional<RawStack> take_stack(Fields &fields);

} // namespace thrum::stat
