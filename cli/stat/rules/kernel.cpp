// SPDX-License-Identifier: Apache-2.0
//
// The rules of what the kernel does for one thread at a time: a file's inode, the address space, the page tables that fork()
// copies, a socket or epoll set that many threads wait at.
#include "stat/rules/rule.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "stat/facts.hpp"
#include "stat/kernel_waits.hpp"
#include "stat/rules/findings.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

using Names = std::set<std::string>;

const Names kWriting = {"write",    "writev", "pwrite",    "pwritev",   "pwrite64",
                        "pwritev2", "append", "ftruncate", "fallocate", "copy_file_range",
                        "sendfile", "fsync",  "fdatasync"};
const Names kNaming = {"open",    "open64",   "openat", "openat64", "creat",     "creat64",
                       "unlink",  "unlinkat", "rename", "renameat", "renameat2", "mkdir",
                       "mkdirat", "rmdir",    "link",   "linkat",   "symlink",   "symlinkat"};

// The kernel's functions that lock a directory, in which a thread then waits for another that changes it.
constexpr const char *kDirectoryLocks[] = {
    "open_last_lookups", "path_openat",          "do_unlinkat",  "do_rmdir", "filename_create",
    "lock_rename",       "lock_two_directories", "do_renameat2", "start_dir"};
const Names kMapping = {"mmap",    "mmap64", "munmap", "mremap", "mprotect",
                        "madvise", "brk",    "sbrk",   "shmat",  "shmdt"};
const Names kForking = {"fork", "Fork", "libc_fork", "vfork", "daemon", "forkpty"};
// For which the kernel wakes more than one waiter. Of those in recv() or accept() on one socket it wakes one.
const Names kWaking = {"epoll_wait", "epoll_pwait", "poll", "ppoll"};

constexpr double kInCall = 0.25;   // of CPU time, in such a call
constexpr double kInKernel = 0.4;  // of CPU time, in the kernel
constexpr double kMoreThan = 0.05; // of CPU time, to that with the fewest threads
constexpr double kMuchMore = 0.15;
constexpr std::uint64_t kFewWaits = 5;
constexpr double kFewGained = 0.7; // of the speedup that the cores allow

// CPU time in calls of such functions, with the most threads and the fewest, by what the library's function is called; and the
// site that has most of it.
struct InCalls {
    double share = 0, share_one = 0, kernel = 0;
    const Site *most = nullptr;
    std::string call;
};

std::string called_in(const Site &site, const Names &names) {
    std::string outermost;
    for (const Frame &frame : site.stack) {
        if (frame.is_user)
            break;
        if (const std::string name = public_name(frame.function); names.count(name) != 0)
            outermost = name;
    }
    return outermost;
}

InCalls calls_of(const Facts &facts, const Names &names) {
    InCalls found;
    for (const Site &site : facts.report.burns) {
        const std::string call = called_in(site, names);
        if (call.empty())
            continue;
        found.share += site.share;
        found.kernel += site.share * site.kernel;
        if (found.most == nullptr) {
            found.most = &site;
            found.call = call;
        }
    }
    for (const Site &site : facts.report.burns_one)
        found.share_one += called_in(site, names).empty() ? 0 : site.share;
    return found;
}

// In the program's own code and in the kernel without a call: page faults.
double share_of_faults(const std::vector<Site> &burns) {
    double share = 0;
    for (const Site &site : burns)
        if (!site.stack.empty() && site.stack.front().is_user)
            share += site.share * site.kernel;
    return share;
}

const KernelWait *wait_of(const Facts &facts, const Names &names, bool with_file) {
    for (const KernelWait &wait : facts.report.kernel_waits)
        if (!wait.is_device && names.count(wait.call) != 0 && wait.file.empty() != with_file)
            return &wait;
    return nullptr;
}

// There is a loss, and the kernel has much of the CPU time.
bool is_lost_in_kernel(const Facts &facts, double share = kInKernel) {
    const bool lost = has_lost(facts) ||
                      (facts.is_compared() && facts.speedup > 0 && facts.speedup < kFewGained * facts.ideal);
    return facts.is_compared() && lost && facts.kernel_share.value_or(0) >= share && facts.threads > 1;
}

void add_kernel_evidence(const Facts &facts, const InCalls &calls, const KernelWait *wait, Finding &found) {
    if (calls.share > 0)
        found.evidence.push_back(percent(calls.share) + " of CPU time in " + calls.call + "(), " +
                                 percent(calls.share_one) + " with the fewest threads");
    if (facts.kernel_share)
        found.evidence.push_back(percent(*facts.kernel_share) + " of CPU time in the kernel");
    if (wait != nullptr)
        found.evidence.push_back(counted(wait->threads, "thread") + " slept there in " +
                                 counted(static_cast<double>(wait->samples), "look") + ", and for no device" +
                                 (wait->channel.empty() ? "" : ": in the kernel's " + wait->channel + "()"));
}

std::string shown_file(const std::string &path) {
    return file_name(path.substr(0, path.find(" (deleted)")));
}

const Names kByPosition = {"read",   "readv",    "write",    "writev",     "lseek",
                           "llseek", "sendfile", "getdents", "getdents64", "readdir"};

// `what` threads wait for in the kernel, and the cure. A wait without a file is one for a directory: the place in the code says
// which, as far as it is known. Nothing where too few waits were seen, or too little is lost.
Findings waiting_for_one(const Facts &facts, const InCalls &calls, const KernelWait *wait,
                         const std::string &what, const char *cure) {
    const bool several = wait != nullptr && wait->threads > 1 && wait->samples >= kFewWaits;
    if (!is_lost_in_kernel(facts) || !several || (!facts.report.burns.empty() && calls.share < kInCall))
        return {};
    const Place place = place_of(wait->stack);
    const std::string where = wait->file.empty() ? "in one directory" : "on " + shown_file(wait->file);
    Finding found = finding(
        "one-file",
        "Threads wait in the kernel for " + what + ": " + wait->call + "() " + where + at_place(place), cure,
        facts.is_busy || wait->samples < kFewSamples ? Confidence::kMedium : Confidence::kHigh, place);
    add_kernel_evidence(facts, calls, wait, found);
    if (!wait->file.empty())
        found.evidence.push_back("file: " + wait->file);
    found.explains = std::max(calls.share, kInCall);
    return {found};
}

// Wrong if they share the descriptor for the sake of the order in which they read: then the kernel's lock is what they want.
Findings one_position(const Facts &facts) {
    const KernelWait *wait = nullptr;
    for (const KernelWait &one : facts.report.kernel_waits)
        if (wait == nullptr && one.channel.find("fdget_pos") != std::string::npos && !one.file.empty())
            wait = &one;
    return waiting_for_one(facts, calls_of(facts, kByPosition), wait, "one descriptor's position",
                           "Use pread() and pwrite(), or give each thread a descriptor of its own.");
}

Findings one_open_file(const Facts &facts) {
    return waiting_for_one(facts, calls_of(facts, kWriting), wait_of(facts, kWriting, true), "each other",
                           "Give each thread a file of its own, or let one thread write, from a buffer.");
}

// Of all calls that change directories: which of them a thread sleeps in is chance.
std::optional<KernelWait> wait_for_directory(const Facts &facts) {
    std::optional<KernelWait> all;
    for (const KernelWait &wait : facts.report.kernel_waits) {
        if (wait.is_device || kNaming.count(wait.call) == 0 ||
            !begins_with_any(wait.channel, kDirectoryLocks))
            continue;
        if (all) {
            all->samples += wait.samples;
            all->threads = std::max(all->threads, wait.threads);
        } else {
            all = wait;
            all->file.clear();
        }
    }
    return all;
}

// Wrong if the threads that wait do so at several directories, each of which two of them share.
Findings one_directory(const Facts &facts) {
    const std::optional<KernelWait> wait = wait_for_directory(facts);
    return waiting_for_one(facts, calls_of(facts, kNaming), wait ? &*wait : nullptr, "each other",
                           "Give each thread a directory of its own, or make and remove fewer files.");
}

} // namespace

// Wrong if the file's device is what they wait for: those waits are told by the kernel's function that sleeps. Or if each
// thread has a file of its own: then no two are seen at the same.
Findings one_file(const Facts &facts) {
    for (const auto find : {one_position, one_open_file, one_directory})
        if (Findings found = find(facts); !found.empty())
            return found;
    return {};
}

// Wrong if one thread maps a lot, and no other is kept by that: then the others' share of it, and the sleeps, are missing.
Findings address_space(const Facts &facts) {
    const InCalls calls = calls_of(facts, kMapping);
    const double faults = share_of_faults(facts.report.burns),
                 faults_one = share_of_faults(facts.report.burns_one);
    const KernelWait *wait = wait_of(facts, kMapping, false);
    const bool grown = calls.share + faults >= calls.share_one + faults_one + kMoreThan || has_lost(facts);
    const bool several = wait != nullptr ? wait->threads > 1 : calls.share >= calls.share_one + kMuchMore;
    // Of calls that are made in another function's lock, most of the time is spent outside the kernel.
    if (!is_lost_in_kernel(facts) || !several || calls.most == nullptr || 2 * calls.kernel < calls.share ||
        calls.share + faults < kInCall || !grown || calls.share < kMoreThan ||
        calls_of(facts, kForking).share >= kMoreThan)
        return {};
    const Place place = place_of(calls.most->stack);
    const bool allocates = is_in_allocator(calls.most->stack);
    Finding found = finding(
        "address-space",
        "Threads change one address space, which the kernel locks: " + calls.call + "()" +
            (allocates ? ", for large blocks of malloc() and free()," : "") + at_place(place),
        allocates
            ? "Keep large blocks and reuse them, or raise M_MMAP_THRESHOLD and M_TRIM_THRESHOLD (mallopt)."
            : "Map once and reuse the memory, in larger pieces; or use processes.",
        facts.is_busy ? Confidence::kMedium : Confidence::kHigh, place);
    add_kernel_evidence(facts, calls, wait, found);
    if (faults > 0)
        found.evidence.push_back(percent(faults) + " of CPU time in page faults, " + percent(faults_one) +
                                 " with the fewest threads");
    found.explains = calls.share + faults;
    return {found};
}

namespace {

constexpr double kForked = 0.15;     // of CPU time: in fork(), and in the faults after it
constexpr double kMuchMemory = 64e6; // bytes: of less, fork() is not dear

} // namespace

// Wrong if the memory is not shared with the child: vfork() and posix_spawn() copy nothing, and take no time here.
Findings fork_copies(const Facts &facts) {
    const InCalls calls = calls_of(facts, kForking);
    const double faults = share_of_faults(facts.report.burns);
    if (calls.most == nullptr || calls.share < kMoreThan || calls.share + faults < kForked ||
        facts.report.memory < kMuchMemory || facts.kernel_share.value_or(calls.kernel) < kForked)
        return {};
    const Place place = place_of(calls.most->stack);
    const double megabytes = facts.report.page_tables / 1e6;
    Finding found = finding(
        "fork-copies",
        "fork() copies " + (megabytes > 0 ? fixed(megabytes, megabytes < 10 ? 1 : 0) + " MB of " : "") +
            "page tables each time" + at_place(place),
        "Use posix_spawn() or vfork(), or fork from a small helper process.",
        facts.is_busy || !facts.is_compared() ? Confidence::kMedium : Confidence::kHigh, place);
    add_kernel_evidence(facts, calls, nullptr, found);
    found.evidence.push_back(fixed(facts.report.memory / 1e6, 0) +
                             " MB of memory: after each fork() the first write to a page copies that; " +
                             percent(faults) + " of CPU time in such faults");
    found.explains = calls.share + faults;
    return {found};
}

namespace {

// Voluntary switches with the most threads to those with the fewest. One thread reads several messages that are on their way
// without sleeping; of several threads each sleeps after every message. So they are up to three times as many if each that is
// woken finds something (100,000 to 33,000 in docs/guide/why-slower.md), and 10 to 16 times where all are woken.
constexpr double kMoreSwitches = 4;
// All switches, on a quiet machine, where one thread had to sleep for most messages: a message switches to its reader, its answer
// to the sender, whether these sleep before or lose their CPU to the other. So if each that is woken finds something, there are
// about as many with any number of threads; where one thread slept for few messages, CPU time has to tell that.
constexpr double kMoreOfAll = 1.6;
constexpr double kDearer = 1.15; // CPU time, where all switches tell
constexpr double kInKernelToo =
    0.25; // of CPU time: the rest may be what woken threads do before they find nothing

// Threads in one look: of a leader that waits with a lock held, and followers that wait for this, one is there at a time.
constexpr double kAtOnce = 1.5;

bool wakes_in_vain(const Facts &facts) {
    const Point &most = *facts.most, &few = *facts.few;
    const bool sleeps = facts.inflation >= kInflated && most.voluntary >= kMoreSwitches * few.voluntary;
    const bool switches = !facts.is_busy && facts.inflation >= kDearer &&
                          most.voluntary + most.involuntary >= kMoreOfAll * (few.voluntary + few.involuntary);
    return sleeps || switches;
}

} // namespace

// Wrong if there is enough to do for all that are woken: then each finds something, and CPU time does not grow. If each message
// wakes one thread, but another one than the last, CPU time grows, and switches do not. Of a single thread that never had to wait
// there are too few to compare with.
Findings herd(const Facts &facts) {
    const InCalls calls = calls_of(facts, kWaking);
    const KernelWait *wait = nullptr;
    for (const KernelWait &one : facts.report.kernel_waits)
        if (wait == nullptr && kWaking.count(one.call) != 0 &&
            (begins_with(one.file, "socket:") || is_epoll_set(one.file)))
            wait = &one;
    const bool several =
        wait != nullptr && wait->threads > 2 && wait->at_once >= kAtOnce && wait->samples >= kFewWaits;
    // What is woken for nothing is CPU time of these calls: with more threads that is no smaller part than before.
    const bool has_grown = calls.share >= calls.share_one;
    if (!is_lost_in_kernel(facts, kInKernelToo) || !several || !has_grown ||
        facts.voluntary_rate < kHandOvers || calls.share < kInKernelToo || !wakes_in_vain(facts))
        return {};
    const Place waits_at = place_of(wait->stack); // often not known of threads that are woken all the time
    const Place place =
        !waits_at.is_known() && calls.call == wait->call ? place_of(calls.most->stack) : waits_at;
    const std::size_t sets = wait->file.find(kInSets);
    const bool has_sets = sets != std::string::npos;
    Finding found = finding(
        "herd",
        "All threads are woken for what one of them gets: " + wait->call + "() on one " +
            (has_sets                   ? "socket" + wait->file.substr(sets) + ","
             : is_epoll_set(wait->file) ? std::string("epoll set")
                                        : "socket") +
            at_place(place),
        wait->call == "poll" || wait->call == "ppoll"
            ? "Wait with epoll: EPOLLEXCLUSIVE in a set for each thread, or EPOLLONESHOT in one set."
        : has_sets
            ? "Add it to the sets with EPOLLEXCLUSIVE, or have a socket (SO_REUSEPORT) for each thread."
            : "Use EPOLLONESHOT, or a socket (SO_REUSEPORT) and epoll set for each thread.",
        Confidence::kMedium, place);
    add_kernel_evidence(facts, calls, nullptr, found);
    found.evidence.push_back(counted(wait->threads, "thread") + " wait at descriptor " + wait->file + "; " +
                             fixed(facts.voluntary_rate, 0) +
                             " voluntary context switches per second of CPU time, " +
                             fixed(facts.most->voluntary, 0) + " in all; with the fewest threads " +
                             fixed(facts.few->voluntary, 0));
    found.explains = calls.share;
    return {found};
}

} // namespace thrum::stat
