// SPDX-License-Identifier: Apache-2.0
#include "stat/python.hpp"

#include <algorithm>
#include <cstring>

#include "elf.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::uint64_t kVersion = 0x030b; // of which the fields below are

// Where fields of CPython 3.11 are, in bytes.
namespace at {
constexpr std::uint64_t kInterpreters = 40;                  // _PyRuntimeState: interpreters.head
constexpr std::uint64_t kNextInterpreter = 0, kThreads = 16; // PyInterpreterState: next, threads.head
constexpr std::uint64_t kNextThread = 8, kInterpreter = 16;  // PyThreadState: next, interp
constexpr std::uint64_t kCFrame = 56, kNativeThread = 160;   // and cframe, native_thread_id
constexpr std::uint64_t kCurrentFrame = 8;                   // _PyCFrame: current_frame
constexpr std::uint64_t kType = 8, kSize = 16;               // PyVarObject: ob_type, ob_size
constexpr std::uint64_t kTypeName = 24;                      // PyTypeObject: tp_name
constexpr std::uint64_t kFirstLine = 72, kFile = 112, kQualifiedName = 128,
                        kLines = 136;               // PyCodeObject: co_...
constexpr std::uint64_t kInstructions = 184;        // and co_code_adaptive
constexpr std::uint64_t kLength = 16, kForm = 32;   // PyASCIIObject: length, state
constexpr std::uint64_t kAscii = 48, kCompact = 72; // characters behind it, and behind PyCompactUnicodeObject
constexpr std::uint64_t kBytes = 32;                // PyBytesObject: ob_sval
} // namespace at

// _PyInterpreterFrame: f_func, f_globals, f_builtins, f_locals, f_code, frame_obj, previous, prev_instr.
struct InterpreterFrame {
    std::uint64_t function, globals, builtins, locals, code, object, previous, instruction;
};

constexpr std::size_t kInterpretersMost = 64, kThreadsMost = 20000, kFramesMost = 200;
constexpr std::uint64_t kTextMost = 4096, kTableMost = 1 << 20;

void append_utf8(std::string &text, std::uint32_t character) {
    const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (character < 0x80) {
        add(character);
    } else if (character < 0x800) {
        add(0xc0 | character >> 6);
        add(0x80 | (character & 0x3f));
    } else if (character < 0x10000) {
        add(0xe0 | character >> 12);
        add(0x80 | (character >> 6 & 0x3f));
        add(0x80 | (character & 0x3f));
    } else {
        add(0xf0 | (character >> 18 & 7));
        add(0x80 | (character >> 12 & 0x3f));
        add(0x80 | (character >> 6 & 0x3f));
        add(0x80 | (character & 0x3f));
    }
}

// A number of the table of lines: six bits a byte, the lowest first; another byte follows one with bit 6 set.
unsigned long take_number(const std::vector<unsigned char> &table, std::size_t &next) {
    unsigned long number = 0;
    for (unsigned shift = 0; next < table.size() && shift < 60; shift += 6) {
        const unsigned char byte = table[next++];
        number |= static_cast<unsigned long>(byte & 0x3f) << shift;
        if ((byte & 0x40) == 0)
            break;
    }
    return number;
}

// By how much the line differs from the one before; `form`: how that is written, behind `next`.
long line_step(const std::vector<unsigned char> &table, unsigned form, std::size_t next) {
    constexpr unsigned kOneLine = 10, kNoColumns = 13, kLong = 14;
    if (form == kNoColumns || form == kLong) {
        const unsigned long number = take_number(table, next);
        const long size = static_cast<long>(number >> 1);
        return (number & 1) != 0 ? -size : size;
    }
    return form >= kOneLine && form < kNoColumns ? static_cast<long>(form - kOneLine) : 0;
}

bool is_library_file(const std::string &path) {
    return begins_with(path, "<") || path.find("/lib/python3") != std::string::npos ||
           path.find("-packages/") != std::string::npos;
}

bool is_interpreter(const std::string &module) {
    return begins_with(module, "python3") || begins_with(module, "libpython3");
}

} // namespace

// Entries begin with a byte whose highest bit is set: form (4 bits), and of how many units less one (3 bits).
int python_line(const std::vector<unsigned char> &table, int first_line, long unit) {
    constexpr unsigned kNone = 15;
    long line = first_line, end = 0;
    for (std::size_t next = 0; next < table.size();) {
        const unsigned head = table[next++], form = head >> 3 & 15;
        line += line_step(table, form, next);
        end += static_cast<long>(head & 7) + 1;
        if (unit < end)
            return form == kNone ? 0 : static_cast<int>(line);
        while (next < table.size() && (table[next] & 0x80) == 0)
            next++;
    }
    return first_line;
}

std::optional<Python> Python::find(pid_t pid, const std::vector<Mapping> &mappings, Read read,
                                   std::string &why_not) {
    for (const Mapping &mapping : mappings) {
        const std::string module = file_name(mapping.path);
        if (mapping.offset != 0 || !mapping.is_of_file() || !is_interpreter(module))
            continue;
        const auto image = elf::Image::from_process(pid, mapping.start);
        const auto runtime = image ? image->find_symbol("_PyRuntime") : std::nullopt;
        if (!runtime)
            continue;
        const auto version = image->find_symbol("Py_Version"); // from 3.11 on
        std::uint64_t number = 0;
        if (version && !read(version->address, &number, sizeof number))
            continue;
        if (number >> 16 == kVersion)
            return Python(runtime->address, module, std::move(read));
        why_not = "the functions of the Python program are unknown: they can be read in Python 3.11 only, "
                  "this is " +
                  (number != 0 ? std::to_string(number >> 24) + "." + std::to_string(number >> 16 & 0xff)
                               : "an older one");
    }
    return std::nullopt;
}

std::uint64_t Python::word_at(std::uint64_t address) const {
    std::uint64_t word = 0;
    return address % sizeof word == 0 && read_(address, &word, sizeof word) ? word : 0;
}

// The interpreter's state for a thread; 0: it has none.
std::uint64_t Python::search_state(pid_t thread) const {
    std::size_t interpreters = 0, threads = 0;
    for (std::uint64_t interpreter = word_at(runtime_ + at::kInterpreters);
         interpreter != 0 && interpreters++ < kInterpretersMost;
         interpreter = word_at(interpreter + at::kNextInterpreter))
        for (std::uint64_t state = word_at(interpreter + at::kThreads);
             state != 0 && threads++ < kThreadsMost; state = word_at(state + at::kNextThread)) {
            if (word_at(state + at::kInterpreter) != interpreter) // it has just been freed
                return 0;
            if (word_at(state + at::kNativeThread) == static_cast<std::uint64_t>(thread))
                return state;
        }
    return 0;
}

std::uint64_t Python::state_of(pid_t thread) {
    std::uint64_t &state = states_[thread];
    if (state == 0 || word_at(state + at::kNativeThread) != static_cast<std::uint64_t>(thread))
        state = search_state(thread);
    return state;
}

bool Python::is_code(std::uint64_t type) {
    if (type == 0 || code_type_ != 0)
        return type != 0 && type == code_type_;
    char name[5] = "";
    const std::uint64_t text = word_at(type + at::kTypeName);
    if (text != 0 && read_(text, name, sizeof name) && std::memcmp(name, "code", sizeof name) == 0)
        code_type_ = type;
    return code_type_ != 0;
}

std::optional<std::string> Python::text_at(std::uint64_t address) const {
    const std::uint64_t length = word_at(address + at::kLength);
    std::uint32_t form = 0;
    if (length > kTextMost || !read_(address + at::kForm, &form, sizeof form))
        return std::nullopt;
    const unsigned width = form >> 2 & 7;
    const bool is_compact = (form >> 5 & 1) != 0, is_ascii = (form >> 6 & 1) != 0;
    if (!is_compact || (width != 1 && width != 2 && width != 4))
        return std::nullopt;
    std::vector<unsigned char> bytes(length * width);
    if (!bytes.empty() &&
        !read_(address + (is_ascii ? at::kAscii : at::kCompact), bytes.data(), bytes.size()))
        return std::nullopt;
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += width) {
        std::uint32_t character = 0;
        std::memcpy(&character, bytes.data() + i, width);
        append_utf8(text, character);
    }
    return text;
}

std::optional<std::vector<unsigned char>> Python::bytes_at(std::uint64_t address) const {
    const std::uint64_t size = word_at(address + at::kSize);
    std::vector<unsigned char> bytes(std::min(size, kTableMost));
    if (size > kTableMost || (size > 0 && !read_(address + at::kBytes, bytes.data(), bytes.size())))
        return std::nullopt;
    return bytes;
}

const Python::Code *Python::code_at(std::uint64_t address) {
    unsigned char object[at::kInstructions];
    if (address == 0 || !read_(address, object, sizeof object))
        return nullptr;
    const auto word = [&object](std::uint64_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, object + offset, sizeof value);
        return value;
    };
    if (!is_code(word(at::kType)))
        return nullptr;
    Code &code = codes_[address];
    if (code.name == word(at::kQualifiedName) && code.file == word(at::kFile) &&
        code.lines == word(at::kLines))
        return &code;
    const auto name = text_at(word(at::kQualifiedName)), file = text_at(word(at::kFile));
    const auto table = bytes_at(word(at::kLines));
    if (!name || !file || !table)
        return nullptr;
    code.name = word(at::kQualifiedName);
    code.file = word(at::kFile);
    code.lines = word(at::kLines);
    std::memcpy(&code.first_line, object + at::kFirstLine, sizeof code.first_line);
    code.table = *table;
    code.frame.function = *name;
    code.frame.file = file_name(*file);
    code.frame.module = module_;
    code.frame.is_user = !is_library_file(*file);
    return &code;
}

std::vector<Frame> Python::frames(pid_t thread) {
    std::vector<Frame> found;
    const std::uint64_t state = state_of(thread), c_frame = state != 0 ? word_at(state + at::kCFrame) : 0;
    std::uint64_t address = c_frame != 0 ? word_at(c_frame + at::kCurrentFrame) : 0;
    while (address != 0 && found.size() < kFramesMost) {
        InterpreterFrame frame;
        const bool is_read = read_(address, &frame, sizeof frame);
        const Code *code = is_read ? code_at(frame.code) : nullptr;
        if (code == nullptr)
            return {}; // it has run on meanwhile
        address = frame.previous;
        const long unit =
            (static_cast<long>(frame.instruction) - static_cast<long>(frame.code + at::kInstructions)) / 2;
        found.push_back(code->frame);
        found.back().line = python_line(code->table, code->first_line, unit);
    }
    return found;
}

std::vector<Frame> with_python(std::vector<Frame> stack, const std::vector<Frame> &python) {
    if (python.empty())
        return stack;
    const auto evaluates = std::find_if(stack.begin(), stack.end(), [](const Frame &frame) {
        return begins_with(frame.function, "_PyEval_EvalFrame");
    });
    if (evaluates != stack.end())
        stack.erase(evaluates + 1, stack.end());
    for (Frame &frame : stack)
        frame.is_user = frame.is_user && !is_interpreter(frame.module);
    stack.insert(stack.end(), python.begin(), python.end());
    return stack;
}

} // namespace thrum::stat
