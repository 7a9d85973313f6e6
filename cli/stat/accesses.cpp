// SPDX-License-Identifier: Apache-2.0
//
// What the samples of a CPU profile say of memory (add_accesses of layers.hpp): which cache lines several threads access
// and write to, and whether that is one variable or several. A line that goes from CPU to CPU holds each access up, so
// samples gather at it.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "native.hpp"
#include "stat/facts.hpp"
#include "stat/rules.hpp"
#include "stat/sites.hpp"
#include "tools/text.hpp"

namespace thrum::stat {

namespace {

constexpr std::uint64_t kLine = 64, kWord = 8;
constexpr std::uint64_t kOwnStack = 1 << 20; // bytes around the stack pointer: hardly ever another thread's
constexpr std::uint64_t kFew = 5;            // samples of a line: of fewer, each may be chance
constexpr double kWorthKeeping = 0.02;       // of CPU time
constexpr double kByOne = 0.8;               // of the accesses to a word: one thread's own
constexpr double kMostly = 0.5;              // of the accesses to a line
// Of the accesses to a line, those of another thread than the one before, at least: threads that have the same memory one
// after the other do not share it.
constexpr double kInTurns = 0.05;
constexpr std::size_t kPartsMost = 4;         // variables and places of a line that are told
constexpr std::size_t kInstructionsMost = 20; // and that are looked at for these

struct Word {
    std::uint64_t samples = 0;
    std::map<pid_t, std::uint64_t> by_thread;
    bool is_of_one() const {
        for (const auto &[thread, count] : by_thread)
            if (static_cast<double>(count) >= kByOne * static_cast<double>(samples))
                return true;
        return false;
    }
    pid_t owner() const {
        return std::max_element(by_thread.begin(), by_thread.end(),
                                [](const auto &a, const auto &b) { return a.second < b.second; })
            ->first;
    }
};

struct Line {
    std::map<std::uint64_t, Word> words; // by address
    std::set<pid_t> threads;
    std::uint64_t samples = 0, writes = 0, adds = 0, swaps = 0, stores = 0, turns = 0;
    double weight = 0;
    pid_t last = 0;
    double last_at = 0;
    // By instruction: how many samples, and the first of them by index.
    std::map<std::uint64_t, std::pair<std::uint64_t, std::size_t>> places;
};

bool is_on_own_stack(std::uint64_t address, std::uint64_t sp) {
    return address + kOwnStack >= sp && address <= sp + kOwnStack;
}

// A function that raises a semaphore: the C library's, or one of the C++ library's that is inlined there.
bool is_post(const std::vector<Frame> &at) {
    return std::any_of(at.begin(), at.end(), [](const Frame &frame) {
        const std::string name = plain_name(frame.function);
        return name.rfind("sem_post", 0) == 0 || name.rfind("new_sem_post", 0) == 0 ||
               (name.find("semaphore") != std::string::npos && name.find("release") != std::string::npos);
    });
}

class Accesses {
  public:
    Accesses(const CpuProfile &profile, AllocationsLayer *allocations)
        : profile_(profile), allocations_(allocations), places_(profile.observed.maps) {}
    void add_to(Report &report);

  private:
    void add(std::size_t index);
    bool is_shared(const Line &line) const;
    Sharing sharing_of(const Line &line);
    void add_places(const Line &line, Sharing &found);
    Lock part_of(std::uint64_t address, const Line &line, std::size_t era);

    const CpuProfile &profile_;
    AllocationsLayer *allocations_;
    Places places_;
    std::map<std::uint64_t, Line> lines_;
    std::map<std::uint64_t, Posts> posts_; // by the semaphore's address
    double all_ = 0, known_ = 0;
};

void Accesses::add(std::size_t index) {
    const CpuSample &sample = profile_.samples[index];
    all_ += sample.weight;
    if (sample.stack >= profile_.observed.stacks.size())
        return;
    const RawStack &stack = profile_.observed.stacks[sample.stack];
    const std::size_t era = places_.era_of(sample.at);
    const std::optional<Operand> operand = places_.operand(stack, era);
    RawStack innermost;
    innermost.addresses = {(operand ? operand->instruction : stack.pc) + 1};
    if (!stack.registers.empty() && is_post(places_.frames(innermost, era))) {
        constexpr std::size_t kSome = 20;
        Posts &posts = posts_[operand ? operand->address : stack.registers[native::kPerfArgument]];
        posts.threads.insert(sample.thread);
        if (posts.stacks.size() < kSome)
            posts.stacks.push_back(places_.frames(stack, era));
    }
    if (!operand)
        return;
    known_ += sample.weight;
    if (is_on_own_stack(operand->address, stack.sp))
        return;
    Line &line = lines_[operand->address / kLine];
    Word &word = line.words[operand->address / kWord * kWord];
    word.samples++;
    word.by_thread[sample.thread]++;
    line.threads.insert(sample.thread);
    line.samples++;
    line.writes += operand->is_write ? 1 : 0;
    line.adds += operand->kind == Operand::kAdd ? 1 : 0;
    line.swaps += operand->kind == Operand::kSwap ? 1 : 0;
    line.stores += operand->kind == Operand::kPlain && operand->is_write ? 1 : 0;
    line.turns += line.last != 0 && line.last != sample.thread ? 1 : 0;
    line.last = sample.thread;
    line.last_at = std::max(line.last_at, sample.at);
    line.weight += sample.weight;
    line.places.try_emplace(operand->instruction, 0, index).first->second.first++;
}

bool Accesses::is_shared(const Line &line) const {
    return line.threads.size() > 1 && line.writes > 0 && line.samples >= kFew &&
           line.weight >= kWorthKeeping * all_ &&
           static_cast<double>(line.turns) >= kInTurns * static_cast<double>(line.samples);
}

Sharing Accesses::sharing_of(const Line &line) {
    const auto share = [&line](std::uint64_t part) {
        return static_cast<double>(part) / static_cast<double>(line.samples);
    };
    Sharing found;
    std::set<pid_t> owners;
    std::uint64_t in_common = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> words; // samples, address
    for (const auto &[address, word] : line.words) {
        words.emplace_back(word.samples, address);
        if (word.is_of_one())
            owners.insert(word.owner());
        else
            in_common += word.samples;
    }
    std::sort(words.rbegin(), words.rend());
    found.is_one = share(in_common) >= kMostly || owners.size() < 2;
    found.samples = line.samples;
    found.share = all_ > 0 ? line.weight / all_ : 0;
    found.threads = static_cast<unsigned>(line.threads.size());
    found.adds = share(line.adds);
    found.swaps = share(line.swaps);
    found.stores = share(line.stores);
    add_places(line, found);
    const std::size_t era = places_.era_of(line.last_at);
    for (const auto &[samples, address] : words)
        if (found.parts.size() < (found.is_one ? 1 : kPartsMost))
            found.parts.push_back(part_of(address, line, era));
    return found;
}

// By instruction, the most often first; those of one line of the program are one place.
void Accesses::add_places(const Line &line, Sharing &found) {
    std::vector<std::tuple<std::uint64_t, std::uint64_t, std::size_t>>
        all; // samples, instruction, first sample
    for (const auto &[instruction, place] : line.places)
        all.emplace_back(place.first, instruction, place.second);
    std::sort(all.rbegin(), all.rend());
    all.resize(std::min<std::size_t>(all.size(), kInstructionsMost));
    std::set<std::tuple<std::string, std::string, int, std::string>> known;
    for (const auto &[samples, instruction, index] : all) {
        const CpuSample &sample = profile_.samples[index];
        RawStack stack = profile_.observed.stacks[sample.stack];
        stack.pc = instruction; // itself, which may be another function's than the next one
        std::vector<Frame> frames = places_.frames(stack, places_.era_of(sample.at));
        const Place place = place_of(frames);
        if (found.places.size() < kPartsMost &&
            known.emplace(place.function, place.file, place.line, place.code).second)
            found.places.push_back(std::move(frames));
    }
    found.stack = found.places.front();
}

// Memory without a name is named by the call that has allocated it, where these were noted.
Lock Accesses::part_of(std::uint64_t address, const Line &line, std::size_t era) {
    Lock part = places_.lock(address, era);
    if (allocations_ != nullptr && part.symbol.empty())
        part.allocation = allocations_->site(address, line.last_at);
    return part;
}

void Accesses::add_to(Report &report) {
    for (std::size_t i = 0; i < profile_.samples.size(); i++)
        add(i);
    report.posts = posts_;
    report.accesses_known = all_ > 0 ? known_ / all_ : 0;
    if (known_ > 0)
        add_once(report.how_known,
                 {"What threads access: by the registers of CPU samples and the instruction there; the "
                  "address is known of " +
                  fixed(100 * report.accesses_known, 0) +
                  " % of CPU time. Samples gather at accesses that the processor waits for."});
    for (const auto &[number, line] : lines_)
        if (is_shared(line))
            report.shared.push_back(sharing_of(line));
    std::sort(report.shared.begin(), report.shared.end(),
              [](const Sharing &a, const Sharing &b) { return a.share > b.share; });
}

} // namespace

void add_accesses(Report &report, const CpuProfile &profile, AllocationsLayer *allocations) {
    Accesses(profile, allocations).add_to(report);
}

} // namespace thrum::stat
