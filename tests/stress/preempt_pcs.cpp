// SPDX-License-Identifier: Apache-2.0
//
// See preempt_pcs.h. The handler runs anywhere: it takes no lock, and touches no thread-local variable but errno, which it
// puts back.
#include "preempt_pcs.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>

#include "preempt_places.h"

namespace {

// --- texts of modules ---------------------------------------------------------------------------------------

enum Module : unsigned { kLibc, kUnwinder, kLibrary, kProgram, kOther, kModules };

struct Text {
    std::uintptr_t from = 0, to = 0;
    bool has(std::uintptr_t pc) const { return pc >= from && pc < to; }
};
std::array<Text, kOther> texts;

int look_for_text(dl_phdr_info *info, std::size_t, void *) {
    static constexpr std::array<const char *, kOther> kNames = {"/libc.so.6", "/libgcc_s.so.1",
                                                                "/libthrum.so", ""};
    for (std::size_t i = 0; i < kNames.size(); i++) {
        const bool is_it =
            i == kProgram ? *info->dlpi_name == '\0' : std::strstr(info->dlpi_name, kNames[i]) != nullptr;
        if (!is_it)
            continue;
        for (unsigned k = 0; k < info->dlpi_phnum; k++)
            if (info->dlpi_phdr[k].p_type == PT_LOAD && (info->dlpi_phdr[k].p_flags & PF_X) != 0) {
                texts[i].from = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
                texts[i].to = texts[i].from + info->dlpi_phdr[k].p_memsz;
            }
    }
    return 0;
}

Module module_of(std::uintptr_t pc) {
    unsigned module = 0;
    while (module < kOther && !texts[module].has(pc))
        module++;
    return static_cast<Module>(module);
}

// --- whose stack ----------------------------------------------------------------------------------------------

// From a page to the actor whose stack it is part of: open addressing, entries are added and changed but never taken out
// while there are ticks.
constexpr unsigned kPageBits = 12, kStackPages = 16;
constexpr std::size_t kEntries = std::size_t{1} << 17;

struct Entry {
    std::atomic<std::uintptr_t> page{0};
    std::atomic<Actor *> actor{nullptr};
};
std::array<Entry, kEntries> stacks;

// Where it is, or where it goes. There is room: a stack that is used again has its entries already.
Entry &entry_of(std::uintptr_t page, bool add) {
    for (std::size_t i = mixed(page) % kEntries;; i = (i + 1) % kEntries) {
        std::uintptr_t there = stacks[i].page.load(std::memory_order_acquire);
        if (there == page || (there == 0 && !add))
            return stacks[i];
        if (there == 0 && stacks[i].page.compare_exchange_strong(there, page))
            return stacks[i];
        if (there == page)
            return stacks[i];
    }
}

Actor *actor_at(std::uintptr_t sp) {
    return entry_of(sp >> kPageBits, false).actor.load(std::memory_order_acquire);
}

// --- what a signal interrupted ---------------------------------------------------------------------------------

#if defined(__x86_64__)
std::uintptr_t pc_of(const ucontext_t *interrupted) {
    return static_cast<std::uintptr_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
}
std::uintptr_t sp_of(const ucontext_t *interrupted) {
    return static_cast<std::uintptr_t>(interrupted->uc_mcontext.gregs[REG_RSP]);
}
#else
std::uintptr_t pc_of(const ucontext_t *interrupted) {
    return interrupted->uc_mcontext.pc;
}
std::uintptr_t sp_of(const ucontext_t *interrupted) {
    return interrupted->uc_mcontext.sp;
}
#endif

// --- the handler ----------------------------------------------------------------------------------------------

std::array<std::array<std::atomic<std::uint64_t>, kModules>, kPhases> counts;
std::atomic<std::uint64_t> ticks{0}, nested_sent{0}, nested_came{0};
std::atomic<unsigned> sent_ticks{0}; // by timers and by the monitor
struct sigaction original;
int tick_signal = 0;
bool sends_nested = false;

// Of the thread that is in that phase, in libc. kHits: none of these.
Hit hit_in_libc(unsigned phase) {
    switch (phase) {
    case kMalloc: return kHitMalloc;
    case kFree: return kHitFree;
    case kStdio: return kHitStdio;
    case kMutex: return kHitMutex;
    case kLock: return kHitLock;
    default: return kHits;
    }
}

void note(std::uintptr_t pc, std::uintptr_t sp) {
    const Module module = module_of(pc);
    unsigned phase = kElsewhere;
    if (Actor *actor = actor_at(sp); actor != nullptr) {
        actor->ticks.fetch_add(1, std::memory_order_relaxed);
        phase = actor->phase.load(std::memory_order_relaxed);
    }
    counts[phase][module].fetch_add(1, std::memory_order_relaxed);
    if (module == kUnwinder)
        places_add(kHitUnwinder, pc - texts[kUnwinder].from);
    if (module == kLibc) {
        places_add(kPlacesInLibc, pc - texts[kLibc].from);
        if (const Hit hit = hit_in_libc(phase); hit != kHits)
            places_add(hit, pc - texts[kLibc].from);
    }
}

// A tick that neither a timer nor the library sends is known by that it is queued. There may be no room for it. Not
// inlined: the compiler assumes that errno's address does not change.
__attribute__((noinline)) void send_another(int signal) {
    const int error = errno;
    siginfo_t info = {};
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, &info) == 0)
        nested_sent.fetch_add(1, std::memory_order_relaxed);
    errno = error;
}

bool is_kept(const Kept &kept, unsigned tick) {
    return tick % kept.of < kept.ticks;
}

void on_tick(int signal, siginfo_t *info, void *context) {
    const auto *const interrupted = static_cast<const ucontext_t *>(context);
    const bool is_sent = info->si_code == SI_TIMER; // the library sends them under this name, too
    const unsigned tick = is_sent ? sent_ticks.fetch_add(1, std::memory_order_relaxed) : 0;
    if (is_sent && is_kept(options.lost, tick))
        return;
    note(pc_of(interrupted), sp_of(interrupted));
    const bool is_nested = info->si_code == SI_QUEUE;
    if (is_nested)
        nested_came.fetch_add(1, std::memory_order_relaxed);
    // Not from one that was sent so, or it might never end.
    if (ticks.fetch_add(1, std::memory_order_relaxed) % 64 == 0 && sends_nested && !is_nested)
        send_another(signal);
    if (!is_sent || !is_kept(options.unheeded, tick))
        original.sa_sigaction(signal, info, context);
}

} // namespace

Interrupted pcs_interrupted(const void *context) {
    static constexpr std::array<const char *, kModules> kNames = {"libc", "the unwinder", "libthrum",
                                                                  "this program", "something else"};
    const auto *const interrupted = static_cast<const ucontext_t *>(context);
    return {kNames[module_of(pc_of(interrupted))], actor_at(sp_of(interrupted))};
}

const char *name_of(Phase phase) {
    static constexpr std::array<const char *, kPhases> kNames = {
        "nothing", "malloc",  "free",       "stdio",     "a mutex",   "a lock",
        "a cond",  "a throw", "the loader", "a process", "its depth", "its registers"};
    return kNames[phase];
}

const char *name_of(Hit hit) {
    static constexpr std::array<const char *, kHits> kNames = {"malloc", "free",     "stdio", "mutex",
                                                               "lock",   "unwinder", "deep",  "registers"};
    return kNames[hit];
}

HitCounts pcs_counts() {
    HitCounts hits{};
    for (unsigned phase = 0; phase < kPhases; phase++) {
        hits[kHitUnwinder] += counts[phase][kUnwinder];
        if (const Hit hit = hit_in_libc(phase); hit != kHits)
            hits[hit] += counts[phase][kLibc];
    }
    for (unsigned module = 0; module < kModules; module++) {
        hits[kHitDeep] += counts[kDeep][module];
        hits[kHitRegisters] += counts[kRegisters][module];
    }
    return hits;
}

bool can_be_hit(Hit hit, Mode mode) {
    switch (hit) {
    case kHitDeep: return mode != Mode::kPthread;
    case kHitRegisters: return widest_registers() > 0;
    default: return true;
    }
}

Nested pcs_nested() {
    return {nested_sent, nested_came};
}

std::uint64_t pcs_ticks() {
    return ticks;
}

void pcs_begin(int signal, bool nested) {
    for (Entry &entry : stacks)
        entry.page = 0;
    dl_iterate_phdr(look_for_text, nullptr);
    tick_signal = 0;
    sends_nested = nested;
    struct sigaction mine;
    CHECK_EQ(sigaction(signal, nullptr, &original), 0);
    if ((original.sa_flags & SA_SIGINFO) == 0) // no handler: there are no ticks
        return;
    mine = original;
    mine.sa_sigaction = on_tick;
    tick_signal = signal;
    CHECK_EQ(sigaction(signal, &mine, nullptr), 0);
}

void pcs_end() {
    if (tick_signal != 0)
        CHECK_EQ(sigaction(tick_signal, &original, nullptr), 0);
    tick_signal = 0;
    for (Entry &entry : stacks) // the actors go
        entry.actor = nullptr;
}

void pcs_here(Actor &actor) {
    char here = 0;
    const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(&here) >> kPageBits;
    for (unsigned i = 0; i < kStackPages; i++)
        entry_of(page - i, true).actor.store(&actor, std::memory_order_release);
}
