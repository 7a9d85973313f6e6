// SPDX-License-Identifier: Apache-2.0
#include "stat/waits.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <map>

#include "stat/lock_table.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

// "pthread_mutex_lock" of "___pthread_mutex_lock".
std::string plain(const std::string &function) {
    const std::size_t at = std::min(function.find_first_not_of('_'), function.size());
    const std::string name = function.substr(at);
    return begins_with(name, "GI_") ? plain(name.substr(3)) : name;
}

// --- names -----------------------------------------------------------------------------------------------------

struct Waiter {
    const char *begins; // the function's name, without underscores in front
    Doing doing;
};
// The first of them that a function's name begins with tells.
constexpr Waiter kWaiters[] = {
    {"lll_lock_wait", Doing::kLockWait},
    {"lll_timedlock_wait", Doing::kLockWait},
    {"pthread_mutex_", Doing::kLockWait},
    {"pthread_rwlock_", Doing::kLockWait},
    {"pthread_spin_", Doing::kLockWait},
    {"pthread_once", Doing::kLockWait},
    {"mtx_", Doing::kLockWait},
    {"flockfile", Doing::kLockWait},
    {"cxa_guard_acquire", Doing::kLockWait},
    {"take_gil", Doing::kLockWait},
    {"gomp_mutex_lock", Doing::kLockWait},
    {"GOMP_critical", Doing::kLockWait},
    {"GOMP_atomic_start", Doing::kLockWait},
    {"omp_set_lock", Doing::kLockWait},
    {"omp_set_nest_lock", Doing::kLockWait},
    {"kmpc_critical", Doing::kLockWait},
    {"kmpc_set_lock", Doing::kLockWait},
    {"kmpc_set_nest_lock", Doing::kLockWait},
    {"std::mutex::lock", Doing::kLockWait},
    {"pthread_join", Doing::kJoinWait},
    {"pthread_timedjoin", Doing::kJoinWait},
    {"pthread_clockjoin", Doing::kJoinWait},
    {"pthread_tryjoin", Doing::kJoinWait},
    {"thrd_join", Doing::kJoinWait},
    {"std::thread::join", Doing::kJoinWait},
    {"pthread_cond_signal", Doing::kLockWait}, // the condition's own lock: waiters are just about to leave it
    {"pthread_cond_broadcast", Doing::kLockWait},
    {"pthread_cond_", Doing::kIdleWait},
    {"cnd_", Doing::kIdleWait},
    {"sem_", Doing::kIdleWait},
    {"new_sem_", Doing::kIdleWait},
    {"pthread_barrier_", Doing::kIdleWait},
    {"gomp_", Doing::kIdleWait},
    {"GOMP_", Doing::kIdleWait},
    {"kmpc_", Doing::kIdleWait},
    {"std::condition_variable", Doing::kIdleWait},
    {"std::__atomic_futex", Doing::kIdleWait},
    {"std::__detail::__platform_wait", Doing::kIdleWait},
};
std::optional<Doing> doing_by_name(const Frame &frame) {
    const std::string name = begins_with(frame.function, "std::") ? frame.function : plain(frame.function);
    for (const Waiter &waiter : kWaiters)
        if (begins_with(name, waiter.begins))
            return waiter.doing;
    return std::nullopt;
}

// --- system calls ----------------------------------------------------------------------------------------------

struct SystemCall {
    const char *name;
    Doing doing; // of one that sleeps in it
};

// Those that an architecture has no more have been replaced by others that stand here as well.
const std::map<long, SystemCall> &system_calls() {
    constexpr Doing kWork = Doing::kIdleWait, kIo = Doing::kInputOutput, kOther = Doing::kKernel;
    static const std::map<long, SystemCall> known = {
#ifdef SYS_open
        {SYS_open, {"open", kIo}},
        {SYS_stat, {"stat", kIo}},
        {SYS_creat, {"creat", kIo}},
        {SYS_unlink, {"unlink", kIo}},
        {SYS_rename, {"rename", kIo}},
        {SYS_mkdir, {"mkdir", kIo}},
        {SYS_rmdir, {"rmdir", kIo}},
        {SYS_link, {"link", kIo}},
        {SYS_symlink, {"symlink", kIo}},
        {SYS_poll, {"poll", kWork}},
        {SYS_select, {"select", kWork}},
        {SYS_epoll_wait, {"epoll_wait", kWork}},
        {SYS_pause, {"pause", kWork}},
        {SYS_getdents, {"getdents", kIo}},
        {SYS_fork, {"fork", kOther}},
        {SYS_vfork, {"vfork", kWork}},
#endif
        {SYS_ppoll, {"ppoll", kWork}},
        {SYS_pselect6, {"pselect6", kWork}},
        {SYS_epoll_pwait, {"epoll_pwait", kWork}},
        {SYS_accept, {"accept", kWork}},
        {SYS_accept4, {"accept4", kWork}},
        {SYS_recvfrom, {"recvfrom", kWork}},
        {SYS_recvmsg, {"recvmsg", kWork}},
        {SYS_recvmmsg, {"recvmmsg", kWork}},
        {SYS_wait4, {"wait4", kWork}},
        {SYS_waitid, {"waitid", kWork}},
        {SYS_rt_sigtimedwait, {"rt_sigtimedwait", kWork}},
        {SYS_rt_sigsuspend, {"rt_sigsuspend", kWork}},
        {SYS_msgrcv, {"msgrcv", kWork}},
        {SYS_semop, {"semop", kWork}},
        {SYS_semtimedop, {"semtimedop", kWork}},
        {SYS_mq_timedreceive, {"mq_timedreceive", kWork}},
        {SYS_io_getevents, {"io_getevents", kWork}},
        {SYS_io_uring_enter, {"io_uring_enter", kWork}},
        {SYS_nanosleep, {"nanosleep", Doing::kSleep}},
        {SYS_clock_nanosleep, {"clock_nanosleep", Doing::kSleep}},
        {SYS_flock, {"flock", Doing::kLockWait}},
        {SYS_read, {"read", kIo}},
        {SYS_write, {"write", kIo}},
        {SYS_readv, {"readv", kIo}},
        {SYS_writev, {"writev", kIo}},
        {SYS_pread64, {"pread64", kIo}},
        {SYS_pwrite64, {"pwrite64", kIo}},
        {SYS_preadv, {"preadv", kIo}},
        {SYS_pwritev, {"pwritev", kIo}},
        {SYS_preadv2, {"preadv2", kIo}},
        {SYS_pwritev2, {"pwritev2", kIo}},
        {SYS_sendto, {"sendto", kIo}},
        {SYS_sendmsg, {"sendmsg", kIo}},
        {SYS_sendmmsg, {"sendmmsg", kIo}},
        {SYS_sendfile, {"sendfile", kIo}},
        {SYS_splice, {"splice", kIo}},
        {SYS_tee, {"tee", kIo}},
        {SYS_copy_file_range, {"copy_file_range", kIo}},
        {SYS_connect, {"connect", kIo}},
        {SYS_openat, {"openat", kIo}},
        {SYS_close, {"close", kIo}},
        {SYS_statx, {"statx", kIo}},
        {SYS_newfstatat, {"newfstatat", kIo}},
        {SYS_fstat, {"fstat", kIo}},
        {SYS_getdents64, {"getdents64", kIo}},
        {SYS_unlinkat, {"unlinkat", kIo}},
        {SYS_renameat2, {"renameat2", kIo}},
        {SYS_fsync, {"fsync", kIo}},
        {SYS_fdatasync, {"fdatasync", kIo}},
        {SYS_msync, {"msync", kIo}},
        {SYS_sync, {"sync", kIo}},
        {SYS_syncfs, {"syncfs", kIo}},
        {SYS_sync_file_range, {"sync_file_range", kIo}},
        {SYS_mkdirat, {"mkdirat", kIo}},
        {SYS_linkat, {"linkat", kIo}},
        {SYS_symlinkat, {"symlinkat", kIo}},
        {SYS_ftruncate, {"ftruncate", kIo}},
        {SYS_fallocate, {"fallocate", kIo}},
        {SYS_futex, {"futex", kWork}},
#ifdef SYS_epoll_pwait2 // which older headers lack
        {SYS_epoll_pwait2, {"epoll_pwait2", kWork}},
#endif
#ifdef SYS_futex_waitv
        {SYS_futex_waitv, {"futex_waitv", kWork}},
#endif
        {SYS_sched_yield, {"sched_yield", kOther}},
        {SYS_mmap, {"mmap", kOther}},
        {SYS_munmap, {"munmap", kOther}},
        {SYS_mprotect, {"mprotect", kOther}},
        {SYS_madvise, {"madvise", kOther}},
        {SYS_mremap, {"mremap", kOther}},
        {SYS_brk, {"brk", kOther}},
        {SYS_clone, {"clone", kOther}},
        {SYS_clone3, {"clone3", kOther}},
        {SYS_execve, {"execve", kOther}},
        {SYS_exit, {"exit", kOther}},
        {SYS_exit_group, {"exit_group", kOther}},
        {SYS_clock_gettime, {"clock_gettime", kOther}},
        {SYS_gettid, {"gettid", kOther}},
        {SYS_getpid, {"getpid", kOther}},
        {SYS_rt_sigaction, {"rt_sigaction", kOther}},
        {SYS_rt_sigprocmask, {"rt_sigprocmask", kOther}},
        {SYS_tgkill, {"tgkill", kOther}},
        {SYS_sched_setaffinity, {"sched_setaffinity", kOther}},
        {SYS_set_robust_list, {"set_robust_list", kOther}},
        {SYS_membarrier, {"membarrier", kOther}},
        {SYS_ioctl, {"ioctl", kOther}},
        {SYS_fcntl, {"fcntl", kOther}},
    };
    return known;
}

// A poll or select of no files with a limit of time is a way to sleep.
bool is_sleep(const ProcSample &sample) {
    switch (sample.system_call) {
#ifdef SYS_poll
    case SYS_poll: return sample.arguments[1] == 0;
    case SYS_select:
#endif
    case SYS_pselect6: return sample.arguments[0] == 0;
    case SYS_ppoll: return sample.arguments[1] == 0;
    default: return false;
    }
}

// Sleeps in a lock's function until it tries again.
bool is_back_off(const ProcSample &sample, const std::vector<Frame> &stack) {
    const bool sleeps = is_sleep(sample) || sample.system_call == SYS_nanosleep ||
                        sample.system_call == SYS_clock_nanosleep || sample.system_call == SYS_sched_yield;
    const ListedLock *listed = sleeps ? lock_table().find(stack) : nullptr;
    return listed != nullptr && listed->is_lock();
}

Doing doing_in_system_call(const ProcSample &sample) {
    if (is_sleep(sample))
        return Doing::kSleep;
    if (sample.system_call == SYS_fcntl &&
        (sample.arguments[1] == F_SETLKW || sample.arguments[1] == F_OFD_SETLKW))
        return Doing::kLockWait;
    const auto known = system_calls().find(sample.system_call);
    return known != system_calls().end() ? known->second.doing : Doing::kKernel;
}

// --- futexes -----------------------------------------------------------------------------------------------------

constexpr std::uint64_t kFutexLockPi2 = 13; // FUTEX_LOCK_PI2, which older headers lack

// What calls syscall(2) has futexes of its own, whose words may be anything: a latch counts down in one, and Rust's conditions
// count up. The C library makes its calls without that function.
bool is_by_syscall(const std::vector<Frame> &stack) {
    return !stack.empty() && !stack.front().is_user && plain(stack.front().function) == "syscall";
}

// The C library's own locks and mutexes wait while the word is 2, those of OpenMP while it is -1; other words of OpenMP's
// count up. The value alone tells nothing: the C library waits there, or a thread is the owner that stands beside the word.
bool is_lock_word(const ProcSample &sample, const std::vector<Frame> &stack, const std::set<pid_t> &threads) {
    const auto value = static_cast<std::uint32_t>(sample.arguments[2]);
    const bool is_openmp = std::any_of(
        stack.begin(), stack.end(), [](const Frame &frame) { return begins_with(frame.module, "libgomp"); });
    const bool is_librarys = !stack.empty() && is_of_libc(stack.front());
    const bool has_owner = sample.holder != 0 && threads.count(sample.holder) != 0;
    return (is_at_mutex(sample) && (is_librarys || has_owner) && !is_by_syscall(stack)) ||
           ((sample.arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && is_openmp && value == UINT32_MAX);
}

// The kernel clears the word and wakes the waiter; it does so as between processes.
bool is_thread_word(const ProcSample &sample, const std::set<pid_t> &threads) {
    return (sample.arguments[1] & FUTEX_PRIVATE_FLAG) == 0 &&
           threads.count(static_cast<pid_t>(sample.arguments[2])) != 0;
}

// "lock" of "Table<int>::lock<true>"; in small letters.
std::string last_name(const std::string &function) {
    std::string name;
    int depth = 0; // of template arguments
    for (const char letter : function) {
        depth += letter == '<' ? 1 : letter == '>' ? -1 : 0;
        if (depth == 0 && letter != '>')
            name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
    const std::size_t at = name.rfind("::");
    return at == std::string::npos ? name : name.substr(at + 2);
}

// A function that takes a lock, by its name.
bool takes_lock(const std::string &function) {
    static constexpr const char *kOthers[] = {"unlock", "locked", "lock_free", "lockfree",
                                              "block",  "clock",  "deadlock"};
    const std::string name = last_name(function);
    const bool is_other = std::any_of(std::begin(kOthers), std::end(kOthers), [&name](const char *part) {
        return name.find(part) != std::string::npos;
    });
    return !is_other && (name.find("lock") != std::string::npos || name.find("mutex") != std::string::npos);
}

// In a lock that the program has written itself, of a futex or of std::atomic::wait().
bool is_in_own_lock(const std::vector<Frame> &stack) {
    for (const Frame &frame : stack) {
        if (frame.is_user)
            return takes_lock(frame.function);
        if (plain(frame.function) != "syscall" && !begins_with(frame.function, "std::"))
            return false;
    }
    return false;
}

Doing doing_at_futex(const ProcSample &sample, const std::vector<Frame> &stack,
                     const std::set<pid_t> &threads) {
    switch (sample.arguments[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: break;
    case FUTEX_LOCK_PI:
    case kFutexLockPi2: return Doing::kLockWait;
    case FUTEX_WAIT_REQUEUE_PI: return Doing::kIdleWait;
    default: return Doing::kKernel;
    }
    const auto named = doing_by_names(stack);
    if (named && *named != Doing::kIdleWait)
        return *named;
    if (is_in_own_lock(stack))
        return Doing::kLockWait;
    // A thread woken from a condition variable takes the mutex again; barriers count up in theirs.
    const bool may_lock = !named || std::any_of(stack.begin(), stack.end(), [](const Frame &frame) {
        return begins_with(plain(frame.function), "pthread_cond_");
    });
    if (may_lock && is_lock_word(sample, stack, threads))
        return Doing::kLockWait;
    return !named && is_thread_word(sample, threads) ? Doing::kJoinWait : Doing::kIdleWait;
}

// Among what the program calls.
bool has_call(const std::vector<Frame> &stack, const char *begins) {
    for (const Frame &frame : stack) {
        if (frame.is_user)
            break;
        if (begins_with(plain(frame.function), begins))
            return true;
    }
    return false;
}

// --- surroundings --------------------------------------------------------------------------------------------------

constexpr const char *kWaysIn[] = {"lll_lock_wait", "lll_timedlock_wait",     "lll_mutex_lock", "futex_",
                                   "syscall",       "internal_syscall_cancel"};
// What takes Python's lock, and what runs Python's functions, which gives it up now and then.
constexpr const char *kInterpreter[] = {"PyEval_RestoreThread", "PyEval_AcquireThread", "PyEval_AcquireLock",
                                        "PyGILState_Ensure", "PyEval_EvalFrameDefault"};
constexpr const char *kBeginnings[] = {"start_thread", "clone", "thread_start", "libc_start_", "start"};

bool is_way_in(const Frame &frame) {
    return !frame.is_user &&
           (frame.function.empty() ? is_of_libc(frame) : begins_with_any(plain(frame.function), kWaysIn));
}

bool is_beginning(const Frame &frame) {
    return frame.function == "_start" ||
           (!frame.is_user && begins_with_any(plain(frame.function), kBeginnings));
}

} // namespace

bool is_at_mutex(const ProcSample &sample) {
    if (sample.system_call != SYS_futex)
        return false;
    switch (sample.arguments[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT: return static_cast<std::uint32_t>(sample.arguments[2]) == 2;
    case FUTEX_LOCK_PI:
    case kFutexLockPi2: return true;
    default: return false;
    }
}

bool is_in_mutex_call(const std::vector<Frame> &stack) {
    return has_call(stack, "pthread_mutex_") || has_call(stack, "mtx_");
}

bool is_in_condition_call(const std::vector<Frame> &stack) {
    return has_call(stack, "pthread_cond_") && !has_call(stack, "pthread_mutex_");
}

bool is_of_libc(const Frame &frame) {
    return begins_with(frame.module, "libc.so") || begins_with(frame.module, "libpthread");
}

std::optional<Doing> doing_by_names(const std::vector<Frame> &stack) {
    const Frame *at = nullptr;
    const ListedLock *listed = lock_table().find(stack, &at);
    const bool waits = listed != nullptr && listed->kind != ListedLock::kCount &&
                       at->function.find("unlock") == std::string::npos;
    if (waits)
        return listed->is_lock() ? Doing::kLockWait : Doing::kIdleWait;
    for (const Frame &frame : stack) {
        if (const auto doing = doing_by_name(frame))
            return doing;
        if (frame.is_user) // whose names tell nothing
            break;
    }
    return std::nullopt;
}

Doing doing_of(const ProcSample &sample, const std::vector<Frame> &stack, const std::set<pid_t> &threads) {
    if (sample.state == 'R')
        return Doing::kRunning;
    if (sample.state == 'T' || sample.state == 't')
        return Doing::kSleep;
    if (sample.system_call == SYS_futex)
        return doing_at_futex(sample, stack, threads);
    if (is_back_off(sample, stack))
        return Doing::kLockWait;
    return sample.system_call < 0 ? Doing::kKernel : doing_in_system_call(sample);
}

bool is_for_message(const ProcSample &sample) {
    static const std::set<long> calls = {SYS_read,    SYS_readv,    SYS_recvfrom,
                                         SYS_recvmsg, SYS_recvmmsg, SYS_mq_timedreceive};
    return sample.state == 'S' && calls.count(sample.system_call) != 0;
}

bool is_python(const Frame &frame) {
    const std::size_t at = frame.file.size() < 3 ? 0 : frame.file.size() - 3;
    return begins_with(frame.module, "python3") || begins_with(frame.module, "libpython3") ||
           frame.file.compare(at, std::string::npos, ".py") == 0;
}

// CPython waits for it as for a condition, with a mutex around. If the functions inside have no names, they are
// recognised by position: only they are between the mutex and the interpreter, not a module, and no lock of the
// program's.
bool is_python_lock(const std::vector<Frame> &stack, const Lock &lock) {
    const bool is_in_runtime = lock.symbol == "_PyRuntime";
    bool on_condition = false, on_mutex = false;
    for (const Frame &frame : stack) {
        const std::string name = plain(frame.function);
        if (name == "take_gil")
            return true;
        on_condition = on_condition || begins_with(name, "pthread_cond_");
        on_mutex = on_mutex || begins_with(name, "pthread_mutex_");
        if (is_of_libc(frame))
            continue;
        if (!is_python(frame) || begins_with(name, "PyThread_acquire_lock"))
            break;
        if (begins_with_any(name, kInterpreter))
            return on_condition || (on_mutex && is_in_runtime);
    }
    return on_condition && is_in_runtime;
}

std::vector<Frame> without_surroundings(std::vector<Frame> stack) {
    const bool has_user =
        std::any_of(stack.begin(), stack.end(), [](const Frame &frame) { return frame.is_user; });
    while (stack.size() > 1 && (is_beginning(stack.back()) ||
                                (has_user && !stack.back().is_user && stack.back().function.empty())))
        stack.pop_back();
    auto first = std::find_if_not(stack.begin(), stack.end(), is_way_in);
    // One that the program's code calls itself stays: it tells the program's system calls from those of the C library.
    if (first != stack.end() && first != stack.begin() && !is_of_libc(*first) &&
        plain(first[-1].function) == "syscall")
        first--;
    if (first != stack.end())
        stack.erase(stack.begin(), first);
    return stack;
}

bool takes_descriptor(long number) {
    static const std::set<long> calls = {
        SYS_read,       SYS_write,     SYS_readv,     SYS_writev,    SYS_pread64,     SYS_pwrite64,
        SYS_preadv,     SYS_pwritev,   SYS_preadv2,   SYS_pwritev2,  SYS_sendto,      SYS_sendmsg,
        SYS_sendmmsg,   SYS_recvfrom,  SYS_recvmsg,   SYS_recvmmsg,  SYS_accept,      SYS_accept4,
        SYS_fsync,      SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_epoll_pwait, SYS_epoll_ctl,
        SYS_getdents64, SYS_sendfile,  SYS_fchmod,    SYS_fchown,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
    };
    return calls.count(number) != 0;
}

bool polls(long number) {
#ifdef SYS_poll
    if (number == SYS_poll)
        return true;
#endif
    return number == SYS_ppoll;
}

bool waits_for_peers(long number) {
    static const std::set<long> calls = {
        SYS_accept,     SYS_accept4, SYS_epoll_pwait, SYS_recvfrom, SYS_recvmsg,
#ifdef SYS_epoll_wait
        SYS_epoll_wait,
#endif
    };
    return polls(number) || calls.count(number) != 0;
}

std::string system_call_name(long number) {
    const auto known = system_calls().find(number);
    return known != system_calls().end() ? known->second.name : "system call " + std::to_string(number);
}

} // namespace thrum::stat
