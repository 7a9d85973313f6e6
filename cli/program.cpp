// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <endian.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <vector>

#include "elf.hpp"
#include "tools/descriptor.hpp"
#include "tools/failure.hpp"
#include "tools/text.hpp"
#include "tools/words.hpp"

extern char **environ;

namespace thrum {

namespace {

constexpr int kMaxInterpreters = 8;     // the kernel follows 5 scripts; env starts the count anew
constexpr std::size_t kFirstLine = 256; // as much of a script's first line as the kernel looks at
constexpr const char *kDefaultPath = "/bin:/usr/bin"; // execvp's where PATH is unset

bool starts_with(const std::string &text, const std::string &start) {
    return text.compare(0, start.size(), start) == 0;
}

// 0, or the errno value that executing this file would fail with.
int executable_error(const std::string &path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    if (!S_ISREG(status.st_mode))
        return EACCES;
    return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// The folders of a PATH; an empty one means the present folder.
std::vector<std::string> split_path(const std::string &path) {
    std::vector<std::string> folders;
    std::size_t from = 0;
    for (std::size_t to; (to = path.find(':', from)) != std::string::npos; from = to + 1)
        folders.push_back(path.substr(from, to - from));
    folders.push_back(path.substr(from));
    return folders;
}

bool exists(const std::string &path) {
    return access(path.c_str(), F_OK) == 0;
}

// What execvp would start for a name without a slash, or where it fails: the error. A file that is there
// but may not be executed does not end the search; it decides the error, though. A folder that may not be
// searched is passed over.
int search_path(const std::string &name, std::string &found) {
    const char *path = std::getenv("PATH");
    int error = ENOENT;
    for (std::string candidate : split_path(path != nullptr ? path : kDefaultPath)) {
        candidate += (candidate.empty() ? "" : "/") + name;
        const int why_not = executable_error(candidate);
        if (why_not != 0 && (why_not != EACCES || !exists(candidate)))
            continue;
        found = candidate;
        if (why_not == 0)
            return 0;
        error = EACCES;
    }
    return error;
}

// 0 and the program's path, or the error.
int locate(const std::string &name, std::string &found) {
    if (name.empty())
        return ENOENT;
    if (name.find('/') == std::string::npos)
        return search_path(name, found);
    found = name;
    return executable_error(name);
}

// --- scripts -------------------------------------------------------------------------------------

struct Interpreter {
    std::string path;
    std::string argument; // the rest of the line, which the kernel passes on as one argument
};

// The "#!" line as the kernel reads it (fs/binfmt_script.c).
std::optional<Interpreter> read_interpreter(int fd) {
    std::array<char, kFirstLine> bytes;
    const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
    if (got < 2 || bytes[0] != '#' || bytes[1] != '!')
        return std::nullopt;
    std::string line(bytes.data() + 2, static_cast<std::size_t>(got) - 2);
    line = line.substr(0, line.find_first_of(std::string("\n\0", 2)));
    const char *blank = " \t";
    const std::size_t begin = line.find_first_not_of(blank);
    if (begin == std::string::npos)
        return std::nullopt;
    const std::size_t end = line.find_first_of(blank, begin);
    Interpreter interpreter{line.substr(begin, end - begin), ""};
    const std::size_t rest = line.find_first_not_of(blank, end);
    if (end != std::string::npos && rest != std::string::npos)
        interpreter.argument = line.substr(rest, line.find_last_not_of(blank) + 1 - rest);
    return interpreter;
}

// The program that "#!/usr/bin/env ARGUMENT" starts: "prog", or "-S [NAME=VALUE]... prog args". Empty
// where env is given options that are not followed.
std::string program_of_env(const std::string &argument) {
    std::istringstream words;
    for (const char *option : {"--split-string=", "--split-string ", "-S"}) {
        if (starts_with(argument, option)) {
            words.str(argument.substr(std::strlen(option)));
            break;
        }
    }
    if (words.str().empty())
        return starts_with(argument, "-") ? std::string() : argument;
    for (std::string word; words >> word;) {
        if (starts_with(word, "-"))
            return "";
        if (word.find('=') == std::string::npos)
            return word;
    }
    return "";
}

// --- what the loader makes of LD_PRELOAD ------------------------------------------------------------

// File capabilities that make the kernel start the program in secure mode.
bool has_file_capabilities(const std::string &path) {
    vfs_ns_cap_data data{};
    const ssize_t got = getxattr(path.c_str(), "security.capability", &data, sizeof data);
    if (got < static_cast<ssize_t>(XATTR_CAPS_SZ_1))
        return false;
    return (le32toh(data.magic_etc) & VFS_CAP_FLAGS_EFFECTIVE) != 0 || data.data[0].permitted != 0 ||
           data.data[1].permitted != 0;
}

// Why LD_PRELOAD cannot reach a program, which is its subject, and what to do about it. Empty: it can.
struct Refusal {
    std::string why, remedy;
};

Inspection refuse(const std::string &subject, const Refusal &refusal) {
    return {subject + " " + refusal.why, refusal.remedy, ""};
}

// In a program that changes its user, group or capabilities the loader ignores LD_PRELOAD. The
// kernel's rule is about the real ids: root may run a set-user-ID-root program under thrum.
Refusal secure_mode_refusal(const std::string &path) {
    struct stat status;
    struct statvfs mount;
    if (stat(path.c_str(), &status) != 0)
        return {};
    if (statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0)
        return {};
    const std::string consequence = ", so the loader ignores LD_PRELOAD in it",
                      remedy = "run it without thrum, or run a plain copy of it";
    const bool may_change_ids = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
    if (may_change_ids && (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid())
        return {"is set-user-ID (to uid " + std::to_string(status.st_uid) + ")" + consequence, remedy};
    constexpr mode_t group = S_ISGID | S_IXGRP; // without S_IXGRP it meant mandatory locking
    if (may_change_ids && (status.st_mode & group) == group && status.st_gid != getgid())
        return {"is set-group-ID (to gid " + std::to_string(status.st_gid) + ")" + consequence, remedy};
    if (getuid() != 0 && has_file_capabilities(path))
        return {"has file capabilities" + consequence, remedy};
    return {};
}

Refusal foreign_refusal(const elf::Identity &identity) {
    const std::string wanted = elf::machine_name(elf::native_machine()), remedy = "run it without thrum";
    if (identity.machine != elf::native_machine() && identity.is_64_bit)
        return {"is built for " + elf::machine_name(identity.machine) + ", but this thrum supports " +
                    wanted + " programs",
                remedy};
    if (!identity.is_64_bit)
        return {"is a 32-bit program (" + elf::machine_name(identity.machine) +
                    "), but this thrum supports 64-bit " + wanted + " programs",
                "build it as 64-bit, or " + remedy};
    return {"is big-endian, but this thrum supports " + wanted + " programs", remedy};
}

// The loader itself, started as a program ("ld-linux-x86-64.so.2 ./prog"), has no interpreter and yet
// heeds LD_PRELOAD.
bool is_glibc_loader(const elf::Image &image) {
    return starts_with(image.soname(), "ld-linux");
}

Refusal loader_refusal(const elf::Image &image, const std::string &loader) {
    if (loader.empty() && !is_glibc_loader(image))
        return {"is statically linked, so LD_PRELOAD cannot reach it",
                "link it dynamically, or run it without thrum"};
    if (starts_with(file_name(loader), "ld-musl"))
        return {"is linked against musl (its loader is " + loader +
                    "), but the libraries of thrum are for glibc",
                "build it against glibc, or run it without thrum"};
    return {};
}

// --- sanitizers ------------------------------------------------------------------------------------

struct SanitizerSign {
    const char *sign;
    const char *name;
};

// Shared run-time libraries, by the start of their name: gcc's, then clang's. UBSan's alone is not
// among them: it keeps no account of threads.
constexpr SanitizerSign kSanitizerLibraries[] = {
    {"libasan.so", "AddressSanitizer"},       {"libtsan.so", "ThreadSanitizer"},
    {"liblsan.so", "LeakSanitizer"},          {"libhwasan.so", "HWAddressSanitizer"},
    {"libclang_rt.asan", "AddressSanitizer"}, {"libclang_rt.tsan", "ThreadSanitizer"},
    {"libclang_rt.lsan", "LeakSanitizer"},    {"libclang_rt.hwasan", "HWAddressSanitizer"},
    {"libclang_rt.msan", "MemorySanitizer"},
};

// Run-time libraries linked into the program itself (clang's default), which exports their entry points.
// gcc's -static-libasan hides those, but not the pthread_create that it puts before any preloaded one.
constexpr SanitizerSign kSanitizerSymbols[] = {
    {"__asan_init", "AddressSanitizer"},          {"__tsan_init", "ThreadSanitizer"},
    {"__msan_init", "MemorySanitizer"},           {"__lsan_init", "LeakSanitizer"},
    {"__hwasan_init", "HWAddressSanitizer"},      {"__dfsan_init", "DataFlowSanitizer"},
    {"pthread_create", "its own pthread_create"},
};

std::string exclusive_part(const elf::Image &image) {
    for (const std::string &library : image.needed()) {
        for (const SanitizerSign &known : kSanitizerLibraries)
            if (starts_with(library, known.sign))
                return std::string(known.name) + " (" + library + ")";
        if (starts_with(library, "libclang_rt.") && !starts_with(library, "libclang_rt.ubsan"))
            return "a run-time library of clang's (" + library + ")";
    }
    for (const SanitizerSign &known : kSanitizerSymbols)
        if (image.find_symbol(known.sign))
            return std::string(known.name) + " (linked in)";
    return "";
}

// --- one program -------------------------------------------------------------------------------------

// `subject` is what the lines call it: its path, or "the interpreter X of Y".
Inspection inspect_elf(const elf::Identity &identity, int fd, const std::string &path,
                       const std::string &subject) {
    if (!identity.is_native())
        return refuse(subject, foreign_refusal(identity));
    const auto image = elf::Image::from_file(fd);
    if (!image)
        return {};
    const std::string loader = image->interpreter();
    for (const Refusal &refusal : {loader_refusal(*image, loader), secure_mode_refusal(path)})
        if (!refusal.why.empty())
            return refuse(subject, refusal);
    if (!loader.empty() && access(loader.c_str(), F_OK) != 0)
        throw Failure(kNotFound, subject + ": its loader " + loader + " does not exist");
    return {"", "", exclusive_part(*image)};
}

// A program may be executable and yet not readable, as some set-user-ID ones are.
Inspection inspect_unreadable(const std::string &path, const std::string &subject) {
    const Refusal secure = secure_mode_refusal(path);
    return secure.why.empty() ? Inspection{} : refuse(subject, secure);
}

std::string interpreter_of(const std::string &interpreter, const std::string &script) {
    std::string text = "the interpreter ";
    return text.append(interpreter).append(" of ").append(script);
}

// The usual reason why an interpreter is missing is a script with DOS line ends.
std::string missing_interpreter(const std::string &path) {
    if (path.back() != '\r')
        return "its interpreter " + path + " does not exist";
    return "its interpreter " + path.substr(0, path.size() - 1) +
           "\\r does not exist; the script's lines end in carriage returns";
}

// Empty where `path` is no script, or where it is not known what it will start.
std::string next_program(int fd, const std::string &path) {
    const auto interpreter = read_interpreter(fd);
    if (!interpreter)
        return "";
    if (executable_error(interpreter->path) == ENOENT)
        throw Failure(kNotFound, path + ": " + missing_interpreter(interpreter->path));
    if (file_name(interpreter->path) != "env")
        return interpreter->path;
    std::string found;
    return locate(program_of_env(interpreter->argument), found) == 0 ? found : interpreter->path;
}

} // namespace

std::string find_program(const std::string &name) {
    std::string found = name;
    const int error = locate(name, found);
    if (error == 0)
        return found;
    const bool searched = name.find('/') == std::string::npos;
    if (error == ENOENT && searched)
        throw Failure(kNotFound, "there is no program '" + name + "' in PATH");
    if (error == EACCES && exists(found))
        throw Failure(kNotExecutable, found + " is not executable");
    throw Failure(error == ENOENT ? kNotFound : kNotExecutable, found + ": " + std::strerror(error));
}

// ENOENT of a file that is there: what it asks for is not.
Failure not_executed(const std::string &path, int error) {
    try {
        if (error == ENOENT && exists(path))
            inspect_program(path);
    } catch (const Failure &failure) {
        return failure;
    }
    return {error == ENOENT ? kNotFound : kNotExecutable,
            path + " cannot be executed: " + std::strerror(error)};
}

void give_to_shell(const std::string &path, std::vector<char *> &arguments) {
    arguments[0] = const_cast<char *>(path.c_str());
    arguments.insert(arguments.begin(), const_cast<char *>(kShell));
}

void become_program(const std::string &path, const std::vector<std::string> &words) {
    std::vector<char *> arguments = pointers(words);
    execv(path.c_str(), arguments.data());
    if (errno == ENOEXEC) {
        give_to_shell(path, arguments);
        execv(kShell, arguments.data());
    }
    throw not_executed(path, errno);
}

Inspection inspect_program(const std::string &path) {
    std::string current = path;
    for (int i = 0; i <= kMaxInterpreters; i++) {
        const std::string subject = i == 0 ? path : interpreter_of(current, path);
        const Descriptor file(open(current.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (!file.is_open())
            return inspect_unreadable(current, subject);
        if (const auto identity = elf::identify(file.get()))
            return inspect_elf(*identity, file.get(), current, subject);
        current = next_program(file.get(), current);
        if (current.empty())
            return {};
    }
    return {};
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    return "exit code " + std::to_string(WEXITSTATUS(status));
}

std::vector<std::string> present_environment() {
    std::vector<std::string> entries;
    for (char **entry = environ; *entry != nullptr; entry++)
        entries.emplace_back(*entry);
    return entries;
}

void check_input(const std::string &path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0)
        throw Failure(kFailed, "cannot open " + path + ": " + std::strerror(errno));
    if (S_ISDIR(status.st_mode))
        throw Failure(kFailed, "cannot read " + path + ": " + std::strerror(EISDIR));
}

} // namespace thrum
