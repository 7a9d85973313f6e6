// SPDX-License-Identifier: Apache-2.0
#include "backtrace.hpp"

#include <elfutils/libdwfl.h>

#include "elf.hpp"

namespace thrum {

namespace {

enum { kFramesMax = 64 };

// What a thread that no kernel thread runs has in its registers.
struct SwitchedOut {
    const std::uint64_t *registers;
    std::uint64_t known, pc;
};

struct Frames {
    bool is_running; // the first address is not that behind a call
    Backtrace addresses;
};

int add_frame(Dwfl_Frame *frame, void *context) {
    auto &frames = *static_cast<Frames *>(context);
    Dwarf_Addr pc;
    bool exact = false;
    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    const bool behind_call = !exact || (frames.addresses.empty() && !frames.is_running);
    frames.addresses.push_back(behind_call ? pc - 1 : pc);
    return frames.addresses.size() < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// --- a process whose threads are its user-level threads, one at a time ------------------------------------

struct Target {
    pid_t pid;
    SwitchedOut thread;
};

pid_t next_thread(Dwfl *, void *context, void **thread_context) {
    if (*thread_context != nullptr)
        return 0;
    *thread_context = context;
    return static_cast<Target *>(context)->pid;
}

bool get_thread(Dwfl *, pid_t, void *context, void **thread_context) {
    *thread_context = context;
    return true;
}

bool read_memory(Dwfl *, Dwarf_Addr address, Dwarf_Word *result, void *context) {
    return elf::read_process(static_cast<Target *>(context)->pid, address, result, sizeof *result);
}

bool set_registers(Dwfl_Thread *thread, void *context) {
    const SwitchedOut &state = static_cast<Target *>(context)->thread;
    for (int i = 0; i < 64; i++) {
        if ((state.known >> i & 1) == 0)
            continue;
        const Dwarf_Word word = state.registers[i];
        if (!dwfl_thread_state_registers(thread, i, 1, &word))
            return false;
    }
    dwfl_thread_state_register_pc(thread, state.pc);
    return true;
}

constexpr Dwfl_Thread_Callbacks kThreads = {next_thread,   get_thread, read_memory,
                                            set_registers, nullptr,    nullptr};

char *debug_path = nullptr; // where the distribution has it
constexpr Dwfl_Callbacks kFiles = {dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr,
                                   &debug_path};

struct End {
    void operator()(Dwfl *dwfl) const { dwfl_end(dwfl); }
};
using Session = std::unique_ptr<Dwfl, End>;

Session modules_of(pid_t pid) {
    Session session(dwfl_begin(&kFiles));
    if (session && dwfl_linux_proc_report(session.get(), pid) == 0)
        dwfl_report_end(session.get(), nullptr, nullptr);
    return session;
}

} // namespace

struct Backtracer::State {
    Target target;
    Session switched_out, running;
    bool can_unwind = false;
};

Backtracer::Backtracer(pid_t pid) : state_(new State{{pid, {}}, modules_of(pid), nullptr}) {
    Dwfl *dwfl = state_->switched_out.get();
    state_->can_unwind = dwfl != nullptr && dwfl_attach_state(dwfl, nullptr, pid, &kThreads, &state_->target);
}

Backtracer::~Backtracer() = default;

Backtrace Backtracer::from_registers(const std::uint64_t *registers, std::uint64_t known,
                                     std::uint64_t pc) const {
    Frames frames{false, {}};
    state_->target.thread = {registers, known, pc};
    if (state_->can_unwind)
        dwfl_getthread_frames(state_->switched_out.get(), state_->target.pid, add_frame, &frames);
    return frames.addresses;
}

Backtrace Backtracer::of_thread(pid_t tid) const {
    if (!state_->running) {
        state_->running = modules_of(state_->target.pid);
        if (state_->running)
            dwfl_linux_proc_attach(state_->running.get(), state_->target.pid, false);
    }
    Frames frames{true, {}};
    if (state_->running)
        dwfl_getthread_frames(state_->running.get(), tid, add_frame, &frames);
    return frames.addresses;
}

} // namespace thrum
