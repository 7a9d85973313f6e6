// SPDX-License-Identifier: Apache-2.0
#include "backtrace.hpp"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>

#include <cstdlib>

#include "elf.hpp"

namespace thrum {

namespace {

enum { kFramesMax = 64 };

// What a thread that no kernel thread runs has in its registers.
struct SwitchedOut {
    const std::uint64_t *registers;
    std::uint64_t known, pc;
};

std::string demangled(const char *symbol) {
    int status = 0;
    char *text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    std::string name = status == 0 ? text : symbol;
    std::free(text);
    return name;
}

std::string base_name(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

std::string function_at(Dwfl *dwfl, Dwarf_Addr address) {
    Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
    const char *symbol = module != nullptr ? dwfl_module_addrname(module, address) : nullptr;
    return symbol != nullptr ? demangled(symbol) : "";
}

// "file:line", or the module's name.
std::string place_of(Dwfl *dwfl, Dwarf_Addr address) {
    Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
    if (module == nullptr)
        return "";
    if (Dwfl_Line *line = dwfl_module_getsrc(module, address)) {
        int number = 0;
        const char *file = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
        if (file != nullptr)
            return base_name(file) + ":" + std::to_string(number);
    }
    const char *name =
        dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    return name != nullptr ? base_name(name) : "";
}

struct Frames {
    Dwfl *dwfl;
    bool is_running; // the first address is not that behind a call
    std::vector<std::string> lines;
};

int add_frame(Dwfl_Frame *frame, void *context) {
    auto &frames = *static_cast<Frames *>(context);
    Dwarf_Addr pc;
    bool exact = false;
    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    const bool behind_call = !exact || (frames.lines.empty() && !frames.is_running);
    const Dwarf_Addr address = behind_call ? pc - 1 : pc;
    const std::string function = function_at(frames.dwfl, address), place = place_of(frames.dwfl, address);
    frames.lines.push_back((function.empty() ? "?" : function) + (place.empty() ? "" : " (" + place + ")"));
    return frames.lines.size() < kFramesMax ? DWARF_CB_OK : DWARF_CB_ABORT;
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

std::string Backtracer::function(std::uint64_t address) const {
    return state_->switched_out ? function_at(state_->switched_out.get(), address) : "";
}

std::vector<std::string> Backtracer::frames(const std::uint64_t *registers, std::uint64_t known,
                                            std::uint64_t pc) const {
    Frames frames{state_->switched_out.get(), false, {}};
    state_->target.thread = {registers, known, pc};
    if (state_->can_unwind)
        dwfl_getthread_frames(frames.dwfl, state_->target.pid, add_frame, &frames);
    return frames.lines;
}

std::vector<std::string> Backtracer::frames_of_thread(pid_t tid) const {
    if (!state_->running) {
        state_->running = modules_of(state_->target.pid);
        if (state_->running)
            dwfl_linux_proc_attach(state_->running.get(), state_->target.pid, false);
    }
    Frames frames{state_->running.get(), true, {}};
    if (frames.dwfl != nullptr)
        dwfl_getthread_frames(frames.dwfl, tid, add_frame, &frames);
    return frames.lines;
}

} // namespace thrum
