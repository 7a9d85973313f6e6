// SPDX-License-Identifier: Apache-2.0
#include "backtrace.hpp"

#include <elfutils/libdwfl.h>
#include <elfutils/version.h>

#include <cstdlib>

#include "elf.hpp"
#include "inspect/inspect.h"
#include "modules.hpp"

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
    std::uint64_t stack_pointer = 0; // of the innermost
};

// elfutils tells it from 0.188 on.
std::uint64_t stack_pointer_of([[maybe_unused]] Dwfl_Frame *frame) {
    Dwarf_Word value = 0;
#if _ELFUTILS_PREREQ(0, 188)
    if (dwfl_frame_reg(frame, inspect_stack_register(), &value) != 0)
        value = 0;
#endif
    return value;
}

int add_frame(Dwfl_Frame *frame, void *context) {
    auto &frames = *static_cast<Frames *>(context);
    Dwarf_Addr pc;
    bool exact = false;
    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    if (frames.addresses.empty())
        frames.stack_pointer = stack_pointer_of(frame);
    const bool behind_call = !exact || (frames.addresses.empty() && !frames.is_running);
    frames.addresses.push_back(behind_call ? pc - 1 : pc);
    return frames.addresses.size() < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// --- a process whose threads are its user-level threads, one at a time ------------------------------------

struct Target {
    pid_t pid;
    ReadWord read;
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
    return static_cast<Target *>(context)->read(address, *result);
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

// At a thread's start, call-frame information says that there is no caller. (The unwinder ends there without an
// error, and also where it lacks a register.)
bool is_beginning(Dwfl *dwfl, Dwarf_Addr address) {
    Dwarf_Addr bias = 0;
    Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
    Dwarf_CFI *information = module != nullptr ? dwfl_module_eh_cfi(module, &bias) : nullptr;
    Dwarf_Frame *found = nullptr;
    if (information == nullptr || dwarf_cfi_addrframe(information, address - bias, &found) != 0)
        return false;
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(found, std::free);
    Dwarf_Op space[3], *rule = nullptr;
    std::size_t length = 0;
    const int return_address = dwarf_frame_info(found, nullptr, nullptr, nullptr);
    return return_address >= 0 && dwarf_frame_register(found, return_address, space, &rule, &length) == 0 &&
           length == 0 && rule == space;
}

DwflSession modules_of(pid_t pid) {
    DwflSession session(dwfl_begin(&kModuleFiles));
    if (session && dwfl_linux_proc_report(session.get(), pid) == 0)
        dwfl_report_end(session.get(), nullptr, nullptr);
    return session;
}

ReadWord reader_of(pid_t pid) {
    return [pid](std::uint64_t address, std::uint64_t &word) {
        return elf::read_process(pid, address, &word, sizeof word);
    };
}

} // namespace

struct Backtracer::State {
    State(pid_t pid, ReadWord read, DwflSession modules)
        : target{pid, std::move(read), {}}, switched_out(std::move(modules)) {
        Dwfl *dwfl = switched_out.get();
        can_unwind = dwfl != nullptr && dwfl_attach_state(dwfl, nullptr, pid, &kThreads, &target);
    }

    Target target;
    DwflSession switched_out, running;
    bool can_unwind = false;
};

Backtracer::Backtracer(pid_t pid) : state_(new State(pid, reader_of(pid), modules_of(pid))) {}

Backtracer::Backtracer(const std::string &maps, ReadWord read, std::optional<pid_t> process)
    : state_(new State(1, std::move(read), session_of(maps, process))) {}

Backtracer::~Backtracer() = default;

Backtrace Backtracer::from_registers(const std::uint64_t *registers, std::uint64_t known, std::uint64_t pc,
                                     At at, bool *is_whole) const {
    Frames frames{at == At::kInstruction, {}};
    state_->target.thread = {registers, known, pc};
    Dwfl *dwfl = state_->switched_out.get();
    if (state_->can_unwind)
        dwfl_getthread_frames(dwfl, state_->target.pid, add_frame, &frames);
    if (is_whole != nullptr)
        *is_whole = frames.addresses.size() == kFramesMax ||
                    (!frames.addresses.empty() && is_beginning(dwfl, frames.addresses.back()));
    return frames.addresses;
}

Stopped Backtracer::of_thread(pid_t tid) const {
    if (!state_->running) {
        state_->running = modules_of(state_->target.pid);
        if (state_->running)
            dwfl_linux_proc_attach(state_->running.get(), state_->target.pid, false);
    }
    Frames frames{true, {}};
    if (state_->running)
        dwfl_getthread_frames(state_->running.get(), tid, add_frame, &frames);
    return {std::move(frames.addresses), frames.stack_pointer};
}

} // namespace thrum
