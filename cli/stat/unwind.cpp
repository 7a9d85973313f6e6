// SPDX-License-Identifier: Apache-2.0
//
// Class Unwinder (layers.hpp): from the bytes of a stack to its backtrace, and from the address of a futex word to
// what that belongs to. All of it after the program has ended: its files are still there, its memory is not.
//
// What is known of a waiting thread is its stack pointer and its address. Call-frame information finds the rest,
// except where a function addresses its frame by the frame pointer, and none of the functions that it called has
// saved that. Such a frame is looked for on the stack itself: functions with a frame pointer leave the caller's
// beside the return address.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "backtrace.hpp"
#include "maps.hpp"
#include "native.hpp"
#include "stat/instructions.hpp"
#include "stat/jit_names.hpp"
#include "stat/layers.hpp"
#include "stat/lock_table.hpp"
#include "symbols.hpp"
#include "tools/descriptor.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

using native::kFramePointer, native::kStackPointer;

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::string hexadecimal(std::uint64_t number) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
    return text;
}

// --- whose code and data it is ------------------------------------------------------------------------------

// The folders of libraries that come with the system, and libraries that may come with a compiler or an interpreter.
constexpr const char *kSystemFolders[] = {"/lib/",     "/lib32/",     "/lib64/",
                                          "/usr/lib/", "/usr/lib32/", "/usr/lib64/"};
constexpr const char *kSystemLibraries[] = {"libc.so", "libc-2.",   "libm.so",  "libpthread",  "ld-linux",
                                            "ld-musl", "libstdc++", "libc++",   "libgcc_s",    "libgomp",
                                            "libomp",  "libtbb",    "libthrum", "libjemalloc", "libmimalloc"};
// What is mapped like a file and is none.
constexpr const char *kFilesOfNoName[] = {"/memfd:", "/dev/", "/SYSV", "/anon_hugepage"};
// Sources that are compiled into the program and are not its own.
// The last is where the Rust compiler says that the sources of its library are, wherever they are.
constexpr const char *kSystemSources[] = {"/usr/include/", "/usr/lib/", "/rustc/"};
constexpr const char *kSystemFunctions[] = {"std::", "__gnu_cxx::", "__gthread_"};

// "draw.isra.0" is a draw.
std::string without_clone(const std::string &name) {
    for (const char *clone : {".isra.", ".constprop.", ".part.", ".cold", ".lto_priv."}) {
        const std::size_t at = name.find(clone);
        if (at != std::string::npos && at != 0)
            return without_clone(name.substr(0, at));
    }
    return name;
}

// Names that linkers give to the borders of sections.
bool is_object(const std::string &name) {
    static const std::set<std::string> borders = {"__bss_start",  "_edata",     "edata",       "_end", "end",
                                                  "__data_start", "data_start", "__dso_handle"};
    return !name.empty() && borders.count(name) == 0;
}

// "libc.so.6" is called libc.
std::string stem_of(const std::string &module) {
    return module.substr(0, module.find(".so"));
}

} // namespace

// --- the unwinder ---------------------------------------------------------------------------------------------

struct Unwinder::State {
    explicit State(const Maps &maps)
        : process(maps.process), mappings(mappings_of(maps.text)), symbols(maps.text, process),
          code(mappings, Code::kOwn, process),
          backtracer(
              maps.text, [this](std::uint64_t at, std::uint64_t &word) { return read(at, word); }, process),
          owner(maps.owner) {
        for (const Mapping &mapping : mappings)
            if (mapping.is_executable && mapping.is_of_file() && program.empty())
                program = mapping.path;
    }

    bool read(std::uint64_t address, std::uint64_t &word) const;
    Backtrace unwind(const RawStack &raw);
    Backtrace unwind_from(std::uint64_t frame_pointer, bool is_known, bool *is_whole) const;
    std::uint64_t slot_above(const Backtrace &known) const;
    Backtrace search_frame_pointer(const Backtrace &known);
    bool leads_to(std::uint64_t back, std::uint64_t address);
    Backtrace search_callers(Backtrace known);
    int trust_in(std::uint64_t slot, std::uint64_t function);
    const std::vector<Frame> &frames_at(std::uint64_t address);
    void name_entry(std::uint64_t address, Frame &frame);
    void place_by_mapping(std::uint64_t address, Frame &frame);
    void name_jit(std::uint64_t address, Frame &frame);
    void name_called(std::vector<Frame> &frames, std::uint64_t called, std::uint64_t caller);
    bool is_of_system(const std::string &path) const;
    bool is_stack(const Mapping &mapping) const;
    bool is_arena(const Mapping &mapping) const;
    Lock static_lock(const Symbol &symbol, std::uint64_t futex) const;

    pid_t process;
    std::vector<Mapping> mappings;
    Symbols symbols;
    Code code;
    const RawStack *stack = nullptr; // the one that is being unwound
    Backtracer backtracer;
    pid_t owner;
    std::optional<JitNames> jit; // read when it is first asked for
    std::string program;         // its path
    std::map<std::uint64_t, std::vector<Frame>> known_frames;
    std::set<std::uint64_t> stacks; // where mappings begin that a stack pointer was seen in
    struct Known {
        bool names = false, lines = false;
    };
    std::set<std::string> others;         // files that are not those that were mapped
    std::map<std::string, Known> modules; // of the program and its own libraries, as far as they were seen
};

bool Unwinder::State::read(std::uint64_t address, std::uint64_t &word) const {
    const std::size_t size = stack != nullptr ? stack->bytes.size() : 0;
    if (size < kWord || address < stack->sp || address - stack->sp > size - kWord)
        return false;
    std::memcpy(&word, stack->bytes.data() + (address - stack->sp), kWord);
    return true;
}

Backtrace Unwinder::State::unwind_from(std::uint64_t frame_pointer, bool is_known, bool *is_whole) const {
    std::uint64_t registers[64] = {}, known = std::uint64_t{1} << kStackPointer;
    registers[kStackPointer] = stack->sp;
    registers[kFramePointer] = frame_pointer;
    known |= std::uint64_t{is_known} << kFramePointer;
    return backtracer.from_registers(registers, known, stack->pc, Backtracer::At::kInstruction, is_whole);
}

Backtrace Unwinder::State::unwind(const RawStack &raw) {
    stack = &raw;
    if (const Mapping *mapping = mapping_at(mappings, raw.sp))
        stacks.insert(mapping->start);
    bool is_whole = false;
    Backtrace found = unwind_from(raw.bp, raw.has_bp, &is_whole);
    if (found.empty() && raw.pc != 0)
        found = {raw.pc};
    if (!is_whole && !raw.has_bp && !raw.bytes.empty())
        found = search_frame_pointer(found);
    if (!is_whole && !found.empty() && !raw.bytes.empty() && !symbols.is_unwindable(found.back()))
        found = search_callers(found);
    stack = nullptr;
    return found;
}

// How likely it is that a frame of the function that begins at `function` has the caller's frame pointer at this slot and
// the return address behind it; 0: not at all.
int Unwinder::State::trust_in(std::uint64_t slot, std::uint64_t function) {
    constexpr std::uint64_t kFrameMost = 1 << 20;
    std::uint64_t saved = 0, back = 0, target = 0;
    if (!read(slot, saved) || !read(slot + kWord, back) || !code.is_behind_call(back, target))
        return 0;
    const int plausible = saved > slot && saved - slot < kFrameMost && saved % kWord == 0 ? 1 : 0;
    if (const std::uint64_t word = code.word_of_call(back); word != 0) {
        const std::optional<Import> import = symbols.import_at(word, function);
        // One that jumps to it is in the same library. A call of another library's function left this behind.
        if (import)
            return (import->is_same ? 8 : 6) + plausible;
        target = symbols.pointer_at(word); // in the same file, as rustc calls
        if (target == 0)
            return 1 + plausible;
    }
    if (target == 0)
        return 4 + plausible;
    if (target == function)
        return 8 + plausible;
    const Symbol &other = symbols.at(target);
    return (other.function.empty() || other.offset != 0 ? 4 : 1) + plausible;
}

// Below where the last known frame was called from there are no frames that are not known.
std::uint64_t Unwinder::State::slot_above(const Backtrace &known) const {
    const std::size_t end = stack->sp + stack->bytes.size();
    const std::uint64_t first = (stack->sp + kWord - 1) / kWord * kWord;
    std::uint64_t word = 0;
    for (std::uint64_t at = first; known.size() > 1 && at < end; at += kWord)
        if (read(at, word) && word == known.back() + 1)
            return at + kWord;
    return first;
}

// Is this address behind a call of the function that `address` is in, perhaps by way of a jump?
bool Unwinder::State::leads_to(std::uint64_t back, std::uint64_t address) {
    constexpr std::uint64_t kFunctionMost = 4096; // bytes, of one without a name
    std::uint64_t target = 0;
    if (!code.is_behind_call(back, target))
        return false;
    if (const std::uint64_t word = code.word_of_call(back); word != 0) {
        if (symbols.import_at(word, address))
            return true;
        target = symbols.pointer_at(word);
    }
    const Symbol &symbol = symbols.at(address);
    for (int jumps = 0; target != 0 && jumps < 2; jumps++) {
        const bool is_near = target <= address && address - target < kFunctionMost;
        if (symbol.function.empty() ? is_near && symbols.at(target).function.empty()
                                    : target == address - symbol.offset)
            return true;
        target = code.target_of_jump(target);
    }
    return false;
}

// Functions without call-frame information, such as musl's: the caller of each is where the stack has an address behind a
// call of it. Call-frame information does the rest from the first function that has some.
Backtrace Unwinder::State::search_callers(Backtrace known) {
    constexpr std::uint64_t kFrameMost = 2048; // bytes
    constexpr std::size_t kFramesMost = 32;
    const std::size_t end = stack->sp + stack->bytes.size();
    std::uint64_t slot = slot_above(known), back = 0;
    while (known.size() < kFramesMost && !symbols.is_unwindable(known.back())) {
        const std::uint64_t limit = std::min<std::uint64_t>(end, slot + kFrameMost);
        while (slot < limit && !(read(slot, back) && leads_to(back, known.back())))
            slot += kWord;
        if (slot >= limit)
            return known;
        known.push_back(back - 1);
        slot += kWord;
    }
    std::uint64_t registers[64] = {}, which = std::uint64_t{1} << kStackPointer;
    registers[kStackPointer] = slot;
    registers[kFramePointer] = stack->bp; // which those functions may have left alone
    which |= std::uint64_t{stack->has_bp && stack->bp >= slot && stack->bp < end} << kFramePointer;
    const Backtrace rest = backtracer.from_registers(registers, which, back, Backtracer::At::kBehindCall);
    known.insert(known.end(), rest.begin() + (rest.empty() ? 0 : 1), rest.end());
    return known;
}

Backtrace Unwinder::State::search_frame_pointer(const Backtrace &known) {
    constexpr int kTriesMost = 24;
    const std::size_t end = stack->sp + stack->bytes.size();
    const Symbol &symbol = symbols.at(known.back());
    const std::uint64_t function = known.back() - (symbol.function.empty() ? 0 : symbol.offset);
    std::uint64_t slot = slot_above(known);
    if (const auto size = symbol.function.empty() ? std::nullopt : code.size_of_frame(function);
        size && trust_in(slot + *size, function) > 0)
        return unwind_from(slot + *size, true, nullptr);
    Backtrace best = known;
    int best_trust = 0, tries = 0;
    for (; slot < end && tries < kTriesMost; slot += kWord) {
        const int trust = trust_in(slot, function);
        if (trust <= best_trust - 2) // it cannot become better than what there is
            continue;
        if (trust == 0)
            continue;
        tries++;
        bool is_whole = false;
        const Backtrace found = unwind_from(slot, true, &is_whole);
        const int whole_trust = trust + (is_whole ? 2 : 0);
        if (found.size() > known.size() && whole_trust > best_trust) {
            best = found;
            best_trust = whole_trust;
        }
    }
    return best;
}

bool Unwinder::State::is_of_system(const std::string &path) const {
    return path != program && (begins_with_any(path, kSystemFolders) || path.empty() || path[0] != '/' ||
                               begins_with_any(file_name(path), kSystemLibraries));
}

const std::vector<Frame> &Unwinder::State::frames_at(std::uint64_t address) {
    const auto [at, is_new] = known_frames.try_emplace(address);
    if (!is_new)
        return at->second;
    const bool is_system = is_of_system(symbols.at(address).path);
    for (const Symbol &symbol :
         is_system ? std::vector<Symbol>{symbols.at(address)} : symbols.with_inlined(address)) {
        Frame frame;
        frame.function = without_clone(short_name(symbol));
        frame.file = symbol.file;
        frame.line = symbol.line;
        frame.module = symbol.module;
        frame.offset = symbol.linked;
        frame.begin = symbol.begin;
        frame.is_user = !is_system && !begins_with_any(symbol.source, kSystemSources) &&
                        !begins_with_any(frame.function, kSystemFunctions) && !lock_table().is_runtime(frame);
        if (!is_system) {
            modules[symbol.module].names |= !symbol.function.empty();
            modules[symbol.module].lines |= symbol.line != 0;
        }
        at->second.push_back(std::move(frame));
    }
    if (symbols.at(address).module.empty())
        place_by_mapping(address, at->second.front());
    else if (symbols.at(address).function.empty())
        name_entry(address, at->second.front());
    return at->second;
}

// In the procedure linkage table there is one entry for each function of other files, which is called through it: no symbol's
// code, but on the way to that function.
void Unwinder::State::name_entry(std::uint64_t address, Frame &frame) {
    if (!begins_with(symbols.section_at(address), ".plt"))
        return;
    std::uint64_t word = 0;
    for (const std::uint64_t size : {8, 16}) // bytes of an entry, and where they begin
        word = word != 0 ? word : code.word_of_entry(address / size * size);
    Symbol symbol;
    symbol.function = word != 0 ? symbols.name_at(word) : "";
    frame.function = without_clone(short_name(symbol));
    frame.is_user = frame.function.empty() && frame.is_user;
}

// Code that the program has made, if it tells its names: that is its own.
void Unwinder::State::name_jit(std::uint64_t address, Frame &frame) {
    if (owner == 0)
        return;
    if (!jit)
        jit.emplace(owner);
    const std::optional<JitName> name = jit->at(address);
    if (!name)
        return;
    frame.function = name->function;
    frame.file = name->file;
    frame.line = name->line;
    frame.offset = name->offset;
    frame.module = kMadeCode;
    frame.is_user = !name->is_runtimes && !lock_table().is_runtime(frame);
}

// Of the kernel's code, of what was made as the program went along, and where the file is not there that was mapped.
void Unwinder::State::place_by_mapping(std::uint64_t address, Frame &frame) {
    const Mapping *mapping = mapping_at(mappings, address);
    frame.module = mapping != nullptr && !mapping->path.empty() ? mapping->path : "(unknown)";
    if (mapping == nullptr || !mapping->is_of_file() || mapping->inode == 0 ||
        begins_with_any(mapping->path, kFilesOfNoName)) {
        if (mapping != nullptr && mapping->is_executable && mapping->path[0] != '[')
            frame.module = kMadeCode;
        name_jit(address, frame);
        return;
    }
    if (const Descriptor file(open_mapped(*mapping, process)); file.is_open())
        return;
    others.insert(mapping->path);
    frame.module = file_name(mapping->path.substr(0, mapping->path.find(" (deleted)")));
    frame.offset = address - mapping->start + mapping->offset;
    frame.is_user = !is_of_system(mapping->path);
}

// A library's function by the name that its caller knows: it may have others. And one that jumps to a function inside
// instead of calling that, as localtime() does, has left nothing on the stack but the call.
void Unwinder::State::name_called(std::vector<Frame> &frames, std::uint64_t called, std::uint64_t caller) {
    if (frames.empty() || frames.back().is_user || symbols.at(called).path == symbols.at(caller).path)
        return;
    const std::uint64_t word = code.word_of_call(caller + 1);
    const auto import = word != 0 ? symbols.import_at(word, called) : std::nullopt;
    if (!import)
        return;
    Symbol symbol;
    symbol.function = import->function;
    Frame frame;
    frame.function = without_clone(short_name(symbol));
    frame.module = frames.back().module;
    if (import->is_same || frame.function == frames.back().function)
        frames.back().function = frame.function;
    else
        frames.push_back(std::move(frame));
}

// --- what a futex word belongs to -----------------------------------------------------------------------------

// As the C library makes them for threads: 64 MiB at a border of that size, of which the first part can be used.
bool Unwinder::State::is_arena(const Mapping &mapping) const {
    constexpr std::uint64_t kArena = 64 << 20;
    return mapping.path.empty() && mapping.start % kArena == 0 && mapping.end - mapping.start <= kArena;
}

// One that a stack pointer was seen in, or that has a guard below it.
bool Unwinder::State::is_stack(const Mapping &mapping) const {
    constexpr std::uint64_t kGuardMost = 1 << 20;
    if (begins_with(mapping.path, "[stack") || stacks.count(mapping.start) != 0)
        return true;
    const Mapping *below = mapping_at(mappings, mapping.start - 1);
    return mapping.path.empty() && below != nullptr && below->path.empty() && !below->is_readable &&
           !below->is_writable && below->end - below->start <= kGuardMost;
}

Lock Unwinder::State::static_lock(const Symbol &symbol, std::uint64_t futex) const {
    Lock lock;
    lock.address = futex;
    lock.module = symbol.module;
    lock.offset = symbol.linked;
    std::string at = symbols.section_at(futex);
    const bool is_system = is_of_system(symbol.path);
    if (is_object(symbol.function)) {
        lock.symbol = short_name(symbol);
        lock.offset = symbol.offset;
        at +=
            (at.empty() ? "" : " ") + lock.symbol + (lock.offset != 0 ? "+" + hexadecimal(lock.offset) : "");
    } else if (!is_system) { // as a debugger would take it
        lock.kind = LockKind::kGlobal;
        lock.text = lock.module + "+" + hexadecimal(lock.offset) + " (" + (at.empty() ? "" : at + ", ") +
                    "a global of the program of unknown name)";
        return lock;
    } else {
        at += "+" + hexadecimal(lock.offset);
    }
    if (is_system) {
        lock.kind = LockKind::kLibrary;
        lock.text = lock.module + " " + at + " (static lock inside " + stem_of(lock.module) + ")";
    } else {
        lock.kind = LockKind::kGlobal;
        lock.text = lock.module + " " + at + " (global of the program)";
    }
    return lock;
}

Unwinder::Unwinder(const Maps &maps) : state_(std::make_unique<State>(maps)) {}

Unwinder::~Unwinder() = default;

std::vector<Frame> Unwinder::frames(const RawStack &stack) const {
    Backtrace addresses;
    if (stack.addresses.empty())
        addresses = state_->unwind(stack);
    else // each is behind a call
        for (const std::uint64_t address : stack.addresses)
            addresses.push_back(address - 1);
    std::vector<Frame> frames;
    std::uint64_t called = 0;
    for (const std::uint64_t address : addresses) {
        if (called != 0)
            state_->name_called(frames, called, address);
        const std::vector<Frame> &here = state_->frames_at(address);
        frames.insert(frames.end(), here.begin(), here.end());
        called = address;
    }
    for (Frame &frame : frames) { // a C library that is linked in has no lines where the program has some
        const auto module = state_->modules.find(frame.module);
        const bool has_lines = module != state_->modules.end() && module->second.lines;
        frame.is_user = frame.is_user && (frame.line != 0 || !has_lines);
    }
    return frames;
}

Lock Unwinder::lock(std::uint64_t futex) const {
    const Symbol &symbol = state_->symbols.at(futex);
    if (!symbol.module.empty())
        return state_->static_lock(symbol, futex);
    Lock lock;
    lock.address = futex;
    const Mapping *mapping = mapping_at(state_->mappings, futex);
    if (mapping == nullptr) {
        lock.text = "memory that is no longer mapped";
    } else if (mapping->path == "[heap]" || state_->is_arena(*mapping)) {
        lock.kind = LockKind::kHeap;
        lock.text = "heap";
    } else if (state_->is_stack(*mapping)) {
        lock.kind = LockKind::kStack;
        lock.text = "a thread's stack";
    } else {
        lock.kind = LockKind::kMapping;
        lock.text = mapping->is_of_file() ? "mapping of " + mapping->path : "memory from mmap";
    }
    lock.text += " (" + hexadecimal(futex) + ")";
    return lock;
}

std::optional<Operand> Unwinder::operand(const RawStack &stack) const {
    constexpr std::uint64_t kFunctionMost = 1 << 16, kLongest = 16; // bytes: of an instruction
    const Symbol &symbol = state_->symbols.at(stack.pc);
    const std::uint64_t offset = !symbol.function.empty() ? symbol.offset
                                 : symbol.begin != 0      ? symbol.linked - symbol.begin
                                                          : kFunctionMost;
    if (offset >= kFunctionMost || stack.registers.empty())
        return std::nullopt;
    std::vector<std::uint8_t> bytes(offset + kLongest);
    if (!state_->code.read(stack.pc - offset, bytes.data(), bytes.size()))
        return std::nullopt;
    return find_operand(bytes, stack.pc - offset, stack.pc, stack.registers);
}

std::vector<std::string> Unwinder::missing() const {
    std::vector<std::string> sentences;
    for (const auto &[module, known] : state_->modules)
        if (!known.lines)
            sentences.push_back("no debugging information: " + module + "; " +
                                (known.names ? "lines of its own code" : "functions and lines") +
                                " are unknown");
    for (const std::string &path : state_->others)
        sentences.push_back("the file mapped as " + path +
                            " was not found (it was replaced, or belongs to a container): functions and "
                            "lines in it are unknown");
    return sentences;
}

} // namespace thrum::stat
