// SPDX-License-Identifier: Apache-2.0
#include "stat/collect.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/atomic.h"
#include "preload.hpp"
#include "process.hpp"
#include "program.hpp"
#include "tools/failure.hpp"

namespace thrum::stat {

namespace {

constexpr const char *kLibrary = "libthrum-stat.so";
constexpr double kMapsShare = 0.002;       // of one CPU
constexpr double kBeginning = 0.2;         // seconds, in which programs load most of their libraries
constexpr std::size_t kSamplesMost = 8192; // with stacks of 8 KiB: 64 MiB

} // namespace

// --- maps ---------------------------------------------------------------------------------------------

void MapReader::another_program() {
    maps_.clear();
    next_ = paid_at_ = 0;
}

// Seldom and more seldom, as programs load most of their libraries in the beginning.
void MapReader::poll(double now) {
    if (now < next_ || pid_ == 0)
        return;
    const double begin = thread_cpu_time();
    const auto text = process::read_maps(pid_);
    if (text && !text->empty())
        take(*text);
    const double cost = thread_cpu_time() - begin;
    paid_at_ = now + (now < kBeginning ? 0 : cost / kMapsShare);
    next_ = std::max(paid_at_, now + (is_told_ ? std::max(0.05, now) : std::max(0.02, now / 8)));
}

void MapReader::take(const std::string &text) {
    if (maps_.empty())
        maps_.emplace_back();
    maps_.back().text = text;
    maps_.back().owner = pid_;
}

// --- samples ------------------------------------------------------------------------------------------

void SampleKeeper::begin(double now, bool is_last) {
    allowance_.begin(now);
    are_paid_for_ = is_last || allowance_.left() > 0;
    first_of_look_ =
        is_last ? 0 : profile_.samples.size(); // what has not found its samples by then was in all of the run
}

void SampleKeeper::end() {
    if (are_paid_for_ && passed_ > 0)
        spread();
    allowance_.end();
}

// Over all samples of this look: the first one of them is of the same CPU always.
void SampleKeeper::spread() {
    std::vector<CpuSample> &samples = profile_.samples;
    double weight = 0;
    for (std::size_t i = first_of_look_; i < samples.size(); i++)
        weight += samples[i].weight;
    if (weight <= 0)
        return;
    for (std::size_t i = first_of_look_; i < samples.size(); i++)
        samples[i].weight *= (weight + passed_) / weight;
    passed_ = 0;
}

void SampleKeeper::clear() {
    weight_ = passed_ = 0;
    first_of_look_ = 0;
    profile_.samples.clear();
    profile_.observed.stacks.clear();
}

void SampleKeeper::add(CpuSample sample, RawStack &&stack) {
    weight_ += sample.weight;
    if (++skipped_ < stride_)
        return;
    sample.weight = weight_;
    sample.stack = profile_.observed.stacks.size();
    skipped_ = 0;
    weight_ = 0;
    profile_.samples.push_back(sample);
    profile_.observed.stacks.push_back(std::move(stack));
    if (profile_.samples.size() >= kSamplesMost)
        thin();
}

void SampleKeeper::thin() {
    std::vector<CpuSample> &samples = profile_.samples;
    std::vector<RawStack> &stacks = profile_.observed.stacks;
    const std::size_t half = samples.size() / 2;
    for (std::size_t i = 0; i < half; i++) {
        const double weight = samples[2 * i].weight + samples[2 * i + 1].weight;
        samples[i] = samples[2 * i];
        samples[i].weight = weight;
        samples[i].stack = i;
        stacks[i] = std::move(stacks[2 * i]);
    }
    samples.resize(half);
    stacks.resize(half);
    first_of_look_ = (first_of_look_ + 1) / 2;
    stride_ *= 2;
}

RawStack raw_stack(const struct probe_stack &stack) {
    RawStack raw;
    raw.pc = stack.pc;
    raw.sp = stack.sp;
    raw.bp = stack.bp;
    raw.has_bp = true;
    const auto *bytes = reinterpret_cast<const std::byte *>(stack.bytes);
    raw.bytes.assign(bytes, bytes + std::min<std::uint64_t>(stack.length, PROBE_STACK));
    return raw;
}

// --- the probe ----------------------------------------------------------------------------------------

// In memory, so that nothing is left behind however this process ends. The program finds it under /proc, and so does whatever it
// runs: the size is sealed, for a page that is gone would end this process by SIGBUS.
ProbeFile::ProbeFile(probe_mode mode, std::uint64_t period)
    : file_(memfd_create("thrum-stat", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      environment_{"LD_PRELOAD=" + find_library(kLibrary), PROBE_VARIABLE "=/proc/" +
                                                               std::to_string(getpid()) + "/fd/" +
                                                               std::to_string(file_.get())} {
    void *at = MAP_FAILED;
    if (file_.get() >= 0 && ftruncate(file_.get(), sizeof *at_) == 0 &&
        fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        at = mmap(nullptr, sizeof *at_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED)
        throw Failure(kRefused, std::string("no memory to share with the program: ") + std::strerror(errno));
    at_ = static_cast<struct probe *>(at);
    at_->version = PROBE_VERSION;
    at_->size = sizeof *at_;
    at_->mode = mode;
    at_->period = period;
}

ProbeFile::~ProbeFile() {
    munmap(at_, sizeof *at_);
}

std::string ProbeFile::maps() const {
    const std::uint32_t length = load_acquire(&at_->maps_length);
    return {at_->maps, std::min<std::size_t>(length, PROBE_MAPS)};
}

std::string ProbeFile::trouble() const {
    const std::string error = at_->error != 0 ? std::string(": ") + std::strerror(at_->error) : "";
    if (loaded() == 0)
        return kLibrary +
               std::string(" was not loaded into the program (it may have set its own environment)");
    switch (load_acquire(&at_->trouble)) {
    case PROBE_NO_TROUBLE: return "";
    case PROBE_NO_FILTER: return "a seccomp filter was refused" + error;
    case PROBE_FIXED: return "the program turned address-space randomization off";
    case PROBE_NO_SIGNAL: return "the program uses all real-time signals";
    case PROBE_NO_TIMER: return "timers for threads were refused" + error;
    case PROBE_OWN_CALLS:
        return "the program makes system calls in its own code, as Go's runtime does, and is linked to a "
               "fixed address (with -no-pie), so that its calls cannot be told from those of programs that "
               "it executes";
    default: return "for an unknown reason";
    }
}

void ProbedMaps::begin(pid_t child) {
    probe_->program = child;
    reader_.begin(child);
}

bool ProbedMaps::is_another() {
    if (probe_.loaded() == loaded_)
        return false;
    loaded_ = probe_.loaded();
    reader_.another_program();
    return true;
}

void ProbedMaps::finish() {
    if (const std::string text = probe_.maps(); !text.empty())
        reader_.take(text);
}

std::vector<ThreadMaker> makers_of(const struct probe &probe) {
    std::vector<ThreadMaker> makers;
    for (const struct probe_maker &maker : probe.makers)
        if (load_acquire(&maker.ready) != 0)
            makers.push_back({raw_stack(maker.stack), maker.threads});
    return makers;
}

std::string preload_refusal(const std::string &program) {
    const Inspection inspection = inspect_program(program);
    if (!inspection.refusal.empty())
        return inspection.refusal;
    if (!inspection.exclusive.empty())
        return program + " is built with " + inspection.exclusive +
               ", which needs the thread functions for itself";
    return "";
}

} // namespace thrum::stat
