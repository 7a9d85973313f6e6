// SPDX-License-Identifier: Apache-2.0
//
// The list of functions with hidden locks (rules.hpp), of glibc and what stands on it. For each: in glibc 2.36 it takes a
// lock, or writes to what all threads share, whether the program has anything to share or not.
#include <sstream>
#include <unordered_map>

#include "stat/rules.hpp"

namespace thrum::stat {

namespace {

const HiddenLock kHiddenLocks[] = {
    {"random srandom initstate setstate", "", "Use random_r() with per-thread state.", false},
    {"rand srand", "", "Use rand_r() or random_r() with per-thread state.", false},
    {"localtime localtime_r gmtime gmtime_r ctime ctime_r", "",
     "Get the time zone's offset once and calculate; localtime_r() takes the same lock.", false},
    {"tz_convert", "localtime() or gmtime()",
     "Get the time zone's offset once and calculate; localtime_r() takes the same lock.", false},
    {"mktime timelocal strftime strftime_l wcsftime tzset", "",
     "Format times with an offset that was read once; all threads share the time zone's lock.", false},
    {"setenv putenv unsetenv clearenv", "",
     "Read the environment once, before there are threads, and keep it in variables.", false},
    {"add_to_environ", "setenv() or putenv()",
     "Read the environment once, before there are threads, and keep it in variables.", false},
    {"vfprintf_internal vfwprintf_internal", "printf() and its like",
     "Give each thread its own buffer or stream, or lock once (flockfile) around *_unlocked calls.", false},
    {"putc putchar fputc puts fputs fwrite printf fprintf vprintf vfprintf dprintf fputwc "
     "putwc "
     "fwprintf wprintf perror",
     "", "Give each thread its own buffer or stream, or lock once (flockfile) around *_unlocked calls.",
     false},
    {"getc getchar fgetc fgets gets fread getline getdelim ungetc scanf fscanf vfscanf fgetwc getwc", "",
     "Read large blocks, or lock once (flockfile) around getc_unlocked().", false},
    {"fflush fseek fseeko ftell ftello rewind fclose fopen fopen64 freopen fdopen fmemopen open_memstream "
     "fopencookie",
     "", "Keep streams open, one thread for each: opening and closing locks the list of all streams.", false},
    {"dl_iterate_phdr", "",
     "Use _dl_find_object() (glibc 2.35), which takes no lock, or keep the list of files.", false},
    {"Unwind_Find_FDE Unwind_RaiseException Unwind_Resume Unwind_Resume_or_Rethrow "
     "Unwind_Backtrace Unwind_ForcedUnwind backtrace cxa_throw cxa_rethrow",
     "stack unwinding, as by exceptions",
     "Throw fewer exceptions on this path; gcc 13 with glibc 2.35 unwinds without a lock.", false},
    {"dlsym dlvsym dlopen dlclose dladdr dladdr1 dlmopen", "", "Look symbols up once and keep the addresses.",
     false},
    {"strerror strerror_l strsignal gettext dgettext dcgettext ngettext dcngettext dcigettext", "",
     "Keep translated messages; strerrordesc_np() takes no lock.", false},
    {"syslog vsyslog openlog closelog", "", "Pass messages to one thread that logs for all.", false},
    {"getaddrinfo gethostbyname gethostbyname_r gethostbyaddr getnameinfo getservbyname getpwnam getpwnam_r "
     "getpwuid "
     "getpwuid_r getgrnam getgrnam_r getgrgid getgrgid_r initgroups nss_database_lookup",
     "", "Cache the answers: each query takes the locks of the name service switch.", false},
    {"setlocale newlocale duplocale freelocale", "", "Create each locale once and keep it.", false},
    {"regexec", "", "Compile the expression once per thread: matching holds a lock inside it.", false},
    {"readdir readdir_r readdir64 rewinddir", "", "Open the directory separately in each thread.", false},
    {"atexit cxa_atexit on_exit cxa_thread_atexit_impl", "", "Register once, not per object.", false},
    {"internal_atexit", "atexit()", "Register once, not per object.", false},
    {"tmpfile popen pclose system", "", "Start helper processes and create files ahead of time.", false},
    {"malloc calloc realloc reallocarray free cfree memalign aligned_alloc posix_memalign valloc "
     "malloc_trim int_malloc int_free int_realloc arena_get2 arena_get_retry sysmalloc systrim "
     "malloc_consolidate "
     "tcache_init libc_malloc libc_free libc_calloc libc_realloc libc_memalign",
     "the allocator", "", true},
};

// No lock: a processor that writes to that state takes its cache line from the others.
const HiddenLock kSharedState = {"drand48 lrand48 mrand48 srand48 seed48 lcong48", "",
                                 "Use erand48() or drand48_r() with per-thread state.", false, false};

void add_names(const HiddenLock &entry, std::unordered_map<std::string, const HiddenLock *> &names) {
    std::istringstream functions(entry.functions);
    for (std::string name; functions >> name;)
        names.emplace(name, &entry);
}

bool ends_in_number(const std::string &text, std::size_t from) {
    return from < text.size() && text.find_first_not_of("0123456789", from) == std::string::npos;
}

void remove_suffix(std::string &name, const std::string &suffix) {
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
        name.erase(name.size() - suffix.size());
}

void remove_prefix(std::string &name, const std::string &prefix) {
    if (name.compare(0, prefix.size(), prefix) == 0)
        name.erase(0, prefix.size());
}

const std::unordered_map<std::string, const HiddenLock *> &by_name() {
    static const auto map = [] {
        std::unordered_map<std::string, const HiddenLock *> names;
        for (const HiddenLock &entry : kHiddenLocks)
            add_names(entry, names);
        add_names(kSharedState, names);
        return names;
    }();
    return map;
}

} // namespace

std::string source_name(const std::string &function) {
    std::string name = function.substr(0, function.find('@'));
    for (const char *suffix : {"._omp_fn.", ".part.", ".isra.", ".constprop.", ".lto_priv.", ".cold"}) {
        const std::size_t at = name.find(suffix);
        const std::size_t behind = at == std::string::npos ? at : at + std::string(suffix).size();
        if (at != std::string::npos && at > 0 && (behind == name.size() || ends_in_number(name, behind)))
            name.erase(at);
    }
    return name;
}

std::string plain_name(const std::string &function) {
    std::string name = source_name(function);
    if (name.compare(0, 5, "__GI_") == 0)
        name.erase(0, 5);
    const std::size_t first = name.find_first_not_of('_');
    return first == std::string::npos ? name : name.substr(first);
}

std::string public_name(const std::string &function) {
    std::string name = plain_name(function);
    for (const char *prefix : {"IO_", "isoc99_", "isoc23_"})
        remove_prefix(name, prefix);
    remove_suffix(name, "_chk");
    return name;
}

std::string allocator_fix(const std::string &module) {
    std::string others;
    bool has_caches =
        module.find("tcmalloc") != std::string::npos || module.find("tbbmalloc") != std::string::npos;
    for (const char *name : {"jemalloc", "mimalloc"}) {
        const bool is_loaded = module.find(name) != std::string::npos;
        has_caches = has_caches || is_loaded;
        if (!is_loaded)
            others += (others.empty() ? "" : ", ") + std::string(name);
    }
    others += " by LD_PRELOAD";
    return has_caches ? "Reuse blocks, or allocate several at once; another allocator (" + others +
                            ") may share less."
                      : "Use an allocator with per-thread caches (" + others + "), or reuse blocks.";
}

const HiddenLock *find_hidden_lock(const Frame &frame) {
    if (frame.is_user || frame.function.empty())
        return nullptr;
    const auto &names = by_name();
    const auto found = names.find(public_name(frame.function));
    return found == names.end() ? nullptr : found->second;
}

} // namespace thrum::stat
